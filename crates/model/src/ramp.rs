//! Rates that change over time, as the command line writes them: `0..500/s in 30 s, 500/s for 1 min`.

use std::fmt;
use std::str::FromStr;

use crate::amount::Amount;
use crate::metric::Unit;
use crate::spec::Stage;
use crate::units::{Frequency, Span};

/// The words between the rates and the time of a stage, which mean the same.
const WORDS: [&str; 3] = ["in", "for", "over"];

/// The longest ramp.
const LONGEST: Span = Span::from_secs(30 * 86_400);

/// Stages of linear or constant rate, one after the other. At least one rate is not 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Ramp(Vec<Stage>);

impl Ramp {
    /// The stages; at least one.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.0
    }

    /// The time of all stages.
    #[must_use]
    pub fn length(&self) -> Span {
        Span(self.0.iter().map(|stage| stage.duration_ns).sum())
    }

    /// The lowest and the highest rate, per second.
    #[must_use]
    pub fn range(&self) -> [f64; 2] {
        let rates = || self.0.iter().flat_map(|stage| [stage.from_per_s, stage.to_per_s]);
        [rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)]
    }

    /// The mean rate of an interval within the ramp, per second.
    #[must_use]
    pub fn mean_rate(&self, from_ns: u64, to_ns: u64) -> f64 {
        (self.arrivals_until(to_ns) - self.arrivals_until(from_ns)) / Span(to_ns - from_ns).secs()
    }

    fn arrivals_until(&self, ns: u64) -> f64 {
        let mut left = ns;
        let mut until = |stage: &Stage| {
            let within = left.min(stage.duration_ns);
            left -= within;
            Stage { to_per_s: stage.rate_at(within), duration_ns: within, ..*stage }.arrivals()
        };
        self.0.iter().map(&mut until).sum()
    }
}

impl fmt::Display for Ramp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Stage { from_per_s, to_per_s, duration_ns }) in self.0.iter().enumerate() {
            let (comma, time) = (if number > 0 { ", " } else { "" }, Span(*duration_ns));
            match from_per_s == to_per_s {
                true => write!(f, "{comma}{from_per_s}/s for {time}")?,
                false => write!(f, "{comma}{from_per_s}..{to_per_s}/s in {time}")?,
            }
        }
        Ok(())
    }
}

/// A text that is no ramp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotARamp {
    /// A stage has another form.
    #[error("stage {number}, `{stage}`, {problem}; write `{nearest}`")]
    Stage {
        /// Its number, from 1.
        number: usize,
        /// As written.
        stage: String,
        /// What is wrong with it.
        problem: Problem,
        /// The nearest valid stage.
        nearest: String,
    },
    /// No request would be sent.
    #[error("all rates are 0, so nothing is sent; write `0..500/s in 30 s`")]
    Nothing,
    /// The stages last too long.
    #[error("the stages last longer than {max} h", max = LONGEST.secs() / 3600.0)]
    Long,
}

/// What is wrong with a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No word stands before a time.
    #[error("has no `in` or `for` with a time")]
    NoTime,
    /// The time is none, or 0.
    #[error("has no valid time after `in` or `for`")]
    Time,
    /// A rate is no number per time, or negative.
    #[error("has no valid rate")]
    Rate,
    /// A rate has no unit.
    #[error("has a rate without a unit")]
    NoUnit,
}

impl FromStr for Ramp {
    type Err = NotARamp;

    fn from_str(text: &str) -> Result<Self, NotARamp> {
        let stages = text.split(',').enumerate().map(|(index, text)| {
            stage(text).map_err(|problem| NotARamp::Stage {
                number: index + 1,
                stage: text.trim().to_owned(),
                problem,
                nearest: nearest(text),
            })
        });
        let stages = stages.collect::<Result<Vec<_>, _>>()?;
        let length = stages.iter().map(|stage| stage.duration_ns).fold(0, u64::saturating_add);
        if length > LONGEST.nanos() {
            return Err(NotARamp::Long);
        }
        let ramp = Self(stages);
        if ramp.range()[1] > 0.0 { Ok(ramp) } else { Err(NotARamp::Nothing) }
    }
}

fn stage(text: &str) -> Result<Stage, Problem> {
    let words: Vec<_> = text.split_whitespace().collect();
    let place = words.iter().position(|word| WORDS.contains(word)).ok_or(Problem::NoTime)?;
    let time = words[place + 1..].join(" ").parse::<Span>().ok().filter(|time| *time > Span(0));
    let duration_ns = time.ok_or(Problem::Time)?.nanos();
    let rates = words[..place].join(" ");
    let (from, to) = rates.split_once("..").unwrap_or((&rates, &rates));
    let [from, to] = [from, to].map(|rate| rate.parse::<Amount>().map_err(|_| Problem::Rate));
    let (from, to) = (from?, to?);
    // `0..500/s`: the unit stands for both.
    let [from_per_s, to_per_s] = [per_second(from.in_unit_of(to))?, per_second(to)?];
    Ok(Stage { from_per_s, to_per_s, duration_ns })
}

fn per_second(rate: Amount) -> Result<f64, Problem> {
    match rate.unit() {
        None => Err(Problem::NoUnit),
        Some(Unit::PerSecond) if rate.value() >= 0.0 => Ok(rate.value()),
        Some(_) => Err(Problem::Rate),
    }
}

/// The valid stage with the most of what a text says: its first two rates and its time, wherever they stand.
fn nearest(text: &str) -> String {
    let mut rates: Vec<f64> = Vec::new();
    let mut time = None;
    let spaced = text.replace("..", " ").replace([':', '=', '>', '@'], " ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    for (place, word) in words.iter().enumerate() {
        // `30 s` in two words.
        let joined = words.get(place + 1).map(|next| format!("{word} {next}"));
        match joined.and_then(|joined| joined.parse::<Span>().ok()).or_else(|| word.parse().ok()) {
            Some(span) if span > Span(0) => time = time.or(Some(span)),
            _ => match word.parse::<Amount>() {
                Ok(rate) if rate.value() >= 0.0 && rate.unit().is_none_or(|unit| unit == Unit::PerSecond) => {
                    rates.push(rate.value());
                }
                _ => {}
            },
        }
    }
    let time = time.unwrap_or(Span::from_secs(30));
    match rates[..] {
        [] => format!("0..500/s in {time}"),
        [rate] => format!("{} for {time}", Frequency(rate)),
        [from, to, ..] => format!("{from}..{} in {time}", Frequency(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(text: &str) -> Ramp {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn stages_are_read_and_written() {
        let read = ramp("0..500/s in 30 s, 500/s for 1min,500/s..60/min over 10s");
        let stage =
            |from_per_s, to_per_s, seconds: u64| Stage { from_per_s, to_per_s, duration_ns: seconds * 1_000_000_000 };
        assert_eq!(read.stages(), [stage(0.0, 500.0, 30), stage(500.0, 500.0, 60), stage(500.0, 1.0, 10)]);
        assert_eq!(read.to_string(), "0..500/s in 30 s, 500/s for 1 min, 500..1/s in 10 s");
        assert_eq!(ramp(&read.to_string()), read);
        assert_eq!((read.length(), read.range()), (Span::from_secs(100), [0.0, 500.0]));
        assert_eq!(ramp("0 .. 2k/s in 1 s").range(), [0.0, 2000.0]);
    }

    #[test]
    fn the_mean_rate_of_an_interval_is_that_of_its_arrivals() {
        let ramp = ramp("0..100/s in 10 s, 100/s for 10 s, 0/s for 1 s");
        let second = 1_000_000_000;
        assert_eq!(ramp.mean_rate(0, second), 5.0);
        assert_eq!(ramp.mean_rate(9 * second, 10 * second), 95.0);
        assert_eq!(ramp.mean_rate(5 * second, 15 * second), (0.5 * 75.0) + 50.0);
        assert_eq!(ramp.mean_rate(20 * second, 21 * second), 0.0);
    }

    #[test]
    fn a_wrong_stage_is_answered_with_the_nearest_valid_one() {
        for (text, problem, nearest) in [
            ("0..500/s", "has no `in` or `for`", "`0..500/s in 30 s`"),
            ("0..500 in 20s", "without a unit", "`0..500/s in 20 s`"),
            ("500 for 1 min", "without a unit", "`500/s for 1 min`"),
            ("10s:500", "has no `in` or `for`", "`500/s for 10 s`"),
            ("0/s to 500/s within 20 s", "has no `in` or `for`", "`0..500/s in 20 s`"),
            ("0..500/s in 0 s", "no valid time", "`0..500/s in 30 s`"),
            ("0..500/s in 20", "no valid time", "`0..500/s in 30 s`"),
            ("-5..500/s in 20 s", "no valid rate", "`500/s for 20 s`"),
            ("500 ms for 20 s", "no valid rate", "in 500 ms`"),
            ("fast for 20 s", "no valid rate", "`0..500/s in 20 s`"),
            ("", "has no `in` or `for`", "`0..500/s in 30 s`"),
        ] {
            let error = format!("1/s for 1 s, {text}").parse::<Ramp>().unwrap_err().to_string();
            for words in ["stage 2", &format!("`{}`", text.trim()), problem, nearest] {
                assert!(error.contains(words), "{text}: {error} lacks {words}");
            }
            let nearest = error.rsplit('`').nth(1).unwrap();
            assert!(nearest.parse::<Ramp>().is_ok(), "{nearest}");
        }
        assert_eq!("0/s for 1 s".parse::<Ramp>(), Err(NotARamp::Nothing));
        assert_eq!("1/s for 800 h".parse::<Ramp>(), Err(NotARamp::Long));
        assert!(NotARamp::Long.to_string().contains("720 h"));
    }
}
