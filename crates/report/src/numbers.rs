//! Numbers for readers: three significant digits, one unit per column, signed changes.

use wirelab_model::metric::Unit;
use wirelab_stats::analysis::Interval;

/// A no-break space between a number and its unit. Plain text replaces it after breaking its lines.
pub(crate) const NBSP: char = '\u{a0}';

/// The unit of a column or an axis: every number in it is divided by the same factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    factor: f64,
    /// The unit's name; empty for plain numbers.
    pub name: &'static str,
}

impl Scale {
    /// The scale that suits the middle of the values' magnitudes.
    pub(crate) fn of(unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let positive = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = positive.fold((f64::INFINITY, 0_f64), |(low, high), value| (low.min(value), high.max(value)));
        // The geometric mean of the extremes, so that neither end needs many digits.
        let middle = if high > 0.0 { (low * high).sqrt() } else { 0.0 };
        let steps = steps(unit);
        let (factor, name) =
            steps.iter().copied().find(|(factor, _)| middle >= *factor).unwrap_or(steps[steps.len() - 1]);
        Self { factor, name }
    }

    /// A value without the unit's name.
    pub(crate) fn number(self, value: f64) -> String {
        significant(value / self.factor)
    }

    /// A value in this scale, for the ticks of an axis.
    pub(crate) fn apply(self, value: f64) -> f64 {
        value / self.factor
    }

    /// The value behind a number in this scale.
    pub(crate) fn undo(self, number: f64) -> f64 {
        number * self.factor
    }
}

/// The steps of a unit, largest first.
const fn steps(unit: Unit) -> &'static [(f64, &'static str)] {
    match unit {
        Unit::Nanoseconds => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
        Unit::Bytes => &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")],
        Unit::BitsPerSecond => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
        Unit::PerSecond => &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
        Unit::Count => &[(1.0, "")],
        Unit::Share => &[(0.01, "%")],
    }
}

/// A number with its unit: `1.52 ms`.
pub(crate) fn quantity(value: f64, unit: Unit) -> String {
    let scale = Scale::of(unit, [value.abs()]);
    format!("{}{NBSP}{}", scale.number(value), scale.name).trim_end().to_owned()
}

/// Three significant digits, without an exponent; integers of more digits keep them.
pub(crate) fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    // Nine decimals suffice for every number in a scale.
    let decimals = (2.0 - magnitude).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    // Rounding can carry into a further digit: 9.996 has two decimals and becomes 10.00.
    let rounded: f64 = text.parse().unwrap_or(value);
    let again = (2.0 - rounded.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    minus(&if rounded != 0.0 && again < decimals { format!("{value:.again$}") } else { text })
}

/// The typographic minus, which is as wide as a plus and never breaks a line.
fn minus(text: &str) -> String {
    text.replace('-', "−")
}

/// The change for a ratio: `−20 %`, `+8.3 %`, and `×6.20` from a doubling on, where percentages mislead.
pub(crate) fn change(ratio: f64) -> String {
    if ratio >= 2.0 { format!("×{}", significant(ratio)) } else { format!("{}{NBSP}%", percent(ratio)) }
}

/// A ratio's change with its interval in the same unit: `−20 % [−22, −18]` or `×6.20 [5.90, 6.51]`.
pub(crate) fn change_with(ratio: f64, interval: Option<&Interval>) -> String {
    match interval {
        Some(interval) if ratio >= 2.0 => format!("{} {}", change(ratio), plain_interval(interval)),
        Some(interval) => format!("{} [{}, {}]", change(ratio), percent(interval.low), percent(interval.high)),
        None => format!("{}, no interval", change(ratio)),
    }
}

/// An interval of ratios as changes in percent: `[−2.1 %, +3.0 %]`.
pub(crate) fn percent_interval(interval: &Interval) -> String {
    format!("[{}{NBSP}%, {}{NBSP}%]", percent(interval.low), percent(interval.high))
}

/// `[0.782, 0.815]`.
pub(crate) fn plain_interval(interval: &Interval) -> String {
    format!("[{}, {}]", significant(interval.low), significant(interval.high))
}

/// The change in percent with its sign and without the `%`.
pub(crate) fn percent(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let decimals = usize::from(change.abs() < 9.95);
    let text = format!("{change:+.decimals$}");
    if text.trim_start_matches(['+', '-']).parse() == Ok(0.0) { format!("{:.decimals$}", 0.0) } else { minus(&text) }
}

/// The size of a change in percent without a sign, for sentences with the direction as a word.
pub(crate) fn magnitude(ratio: f64) -> String {
    let change = ((ratio - 1.0) * 100.0).abs();
    let decimals = usize::from(change < 9.95);
    format!("{change:.decimals$}{NBSP}%")
}

/// A p value as papers print it.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// An integer with a comma between groups of three digits: `183,680`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as percent, without trailing zeros: `5 %`.
pub(crate) fn share(share: f64) -> String {
    format!("{}{NBSP}%", (share * 1e4).round() / 1e2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_never_round_to_nothing() {
        for (value, expected) in [
            (0.0, "0"),
            (0.000_412, "0.000412"),
            (9.996, "10.0"),
            (1.0, "1.00"),
            (123.4, "123"),
            (54_321.0, "54321"),
            (-2.5, "−2.50"),
        ] {
            assert_eq!(significant(value), expected, "{value}");
        }
    }

    #[test]
    fn thousands_are_separated_by_commas() {
        let texts = [0, 999, 1000, 183_680, 1_000_000].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "183,680", "1,000,000"]);
    }

    #[test]
    fn changes_are_percents_up_to_a_doubling_and_factors_beyond() {
        for (ratio, expected) in
            [(0.8, "−20 %"), (1.083, "+8.3 %"), (1.0, "0.0 %"), (1.999, "+100 %"), (2.0, "×2.00"), (6.2, "×6.20")]
        {
            assert_eq!(change(ratio).replace(NBSP, " "), expected, "{ratio}");
        }
        let interval = Interval { low: 0.78, high: 0.82, confidence: 0.95 };
        assert_eq!(change_with(0.8, Some(&interval)).replace(NBSP, " "), "−20 % [−22, −18]");
        assert_eq!(change_with(3.0, Some(&interval)), "×3.00 [0.780, 0.820]");
    }

    #[test]
    fn a_column_takes_the_unit_in_the_middle_of_its_values() {
        let scale = Scale::of(Unit::Nanoseconds, [45e3, 450e6]);
        assert_eq!((scale.name, scale.number(45e3).as_str(), scale.number(450e6).as_str()), ("ms", "0.0450", "450"));
        assert_eq!(Scale::of(Unit::Bytes, []).name, "B");
    }
}
