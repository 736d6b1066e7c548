//! Axes: places for values, and round ticks.

use wirelab_model::metric::Unit;

use crate::numbers::{Scale, significant};

/// A linear or logarithmic axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    /// A linear axis over values with some room at both ends.
    pub(crate) fn linear(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = extent(values);
        let room = if high > low { (high - low) * 0.06 } else { (high.abs() * 0.1).max(1e-9) };
        // An axis of positive values must not show negative ticks.
        let bottom = if low >= 0.0 { (low - room).max(0.0) } else { finite(low - room) };
        Self { low: bottom, high: finite(high + room), log: false, from, to }
    }

    /// A linear axis from 0, for bars.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (_, high) = extent(values);
        Self { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, log: false, from, to }
    }

    /// A logarithmic axis over the positive values with some room at both ends.
    pub(crate) fn log(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = extent(values.into_iter().filter(|value| *value > 0.0));
        let (low, high) = if low > 0.0 { (low, high) } else { (1.0, 10.0) };
        // Differences of logarithms, because the ratio of two finite numbers may be infinite.
        let room = (0.05 * (high.ln() - low.ln())).exp().max(1.02);
        Self { low: (low / room).max(f64::MIN_POSITIVE), high: finite(high * room), log: true, from, to }
    }

    /// A linear axis between exactly these values.
    pub(crate) const fn exact(low: f64, high: f64, from: f64, to: f64) -> Self {
        Self { low, high, log: false, from, to }
    }

    /// The place of a value; a value beyond the axis is placed at its end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(f64::MIN_POSITIVE).ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// About `count` round values on the axis with their labels in a unit.
    pub(crate) fn ticks(&self, count: usize, scale: Scale) -> Vec<(f64, String)> {
        let (low, high) = (finite(scale.apply(self.low)), finite(scale.apply(self.high)));
        let numbers = if self.log { log_ticks(low, high, count) } else { linear_ticks(low, high, count) };
        numbers.into_iter().map(|number| (scale.undo(number), short(number))).collect()
    }

    /// Round values on a logarithmic axis over several orders of magnitude; each label has a fitting unit.
    pub(crate) fn labelled(&self, count: usize, unit: Unit) -> Vec<(f64, String)> {
        log_ticks(self.low, self.high, count)
            .into_iter()
            .map(|value| {
                // Slightly more, because 1000 times 0.001 may be slightly less than 1.
                let scale = Scale::of(unit, [value * 1.000_001]);
                (value, format!("{} {}", short(scale.apply(value)), scale.name).trim_end().to_owned())
            })
            .collect()
    }
}

/// The nearest finite number: values near the largest one leave no room beyond them.
fn finite(number: f64) -> f64 {
    number.clamp(f64::MIN, f64::MAX)
}

fn extent(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), value| (l.min(value), h.max(value)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let raw = high / count.max(1) as f64 - low / count.max(1) as f64;
    if !raw.is_normal() {
        return vec![low];
    }
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= raw * 0.999).unwrap_or(raw);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    // Bounded, because a step is never much smaller than the axis divided by the count.
    (first..=last.min(first.saturating_add(4 * count as i64))).map(|n| n as f64 * step).collect()
}

/// Powers of ten, or their multiples by 1, 2 and 5 if the space allows it; multiples of a step on a short axis.
fn log_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    // In its unit, the smallest number may be 0, which has no decade.
    let (low, high) = (low.max(f64::MIN_POSITIVE), high.max(f64::MIN_POSITIVE));
    let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let on_axis = |value: &f64| value.is_normal() && *value >= low * 0.999 && *value <= high * 1.001;
    let multiples = |of: &[f64]| -> Vec<f64> {
        decades.clone().flat_map(|d| of.iter().map(move |m| m * 10f64.powi(d))).filter(on_axis).collect()
    };
    let fine = multiples(&[1.0, 2.0, 5.0]);
    if fine.len() < 3 {
        let finer = multiples(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]);
        return if (3..=count).contains(&finer.len()) { finer } else { linear_ticks(low, high, count) };
    }
    if fine.len() <= count {
        return fine;
    }
    let coarse = multiples(&[1.0]);
    let skip = coarse.len().div_ceil(count.max(1)).max(1);
    if coarse.len() < 2 { fine.into_iter().step_by(2).collect() } else { coarse.into_iter().step_by(skip).collect() }
}

/// A tick's number without trailing zeros.
fn short(number: f64) -> String {
    if number != 0.0 && number.abs() < 1e-3 {
        return significant(number);
    }
    let text = format!("{number:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        assert_eq!(linear_ticks(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(log_ticks(0.9, 120.0, 9), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(log_ticks(0.9, 1200.0, 4), [1.0, 10.0, 100.0, 1000.0]);
        let axis = Axis::log([1e3, 1e6], 0.0, 100.0);
        let labels: Vec<_> = axis.labelled(4, Unit::Nanoseconds).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["1 µs", "10 µs", "100 µs", "1 ms"]);
    }

    #[test]
    fn the_largest_and_smallest_numbers_make_axes_with_few_ticks() {
        let extremes = [f64::MIN_POSITIVE / 4.0, 1e-310, f64::MIN_POSITIVE, 1.0, 1e300, f64::MAX];
        for (low, high) in extremes.into_iter().flat_map(|low| extremes.map(|high| (low, high))) {
            let values = [low, high];
            for axis in
                [Axis::linear(values, 0.0, 100.0), Axis::from_zero(values, 0.0, 100.0), Axis::log(values, 0.0, 100.0)]
            {
                for unit in [Unit::Nanoseconds, Unit::Share] {
                    let (ticks, labels) = (axis.ticks(5, Scale::of(unit, values)), axis.labelled(5, unit));
                    assert!(ticks.len() <= 25 && labels.len() <= 25, "{low:e} to {high:e}");
                }
                assert!(axis.at(low).is_finite() && axis.at(high).is_finite(), "{low:e} to {high:e}");
            }
        }
    }

    #[test]
    fn equal_values_and_no_values_still_make_an_axis() {
        for axis in [Axis::linear([5.0, 5.0], 0.0, 10.0), Axis::linear([], 0.0, 10.0), Axis::log([], 0.0, 10.0)] {
            assert!(axis.at(5.0).is_finite());
            assert!(!axis.ticks(4, Scale::of(Unit::Count, [1.0])).is_empty());
        }
    }
}
