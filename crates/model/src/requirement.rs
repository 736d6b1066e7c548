//! Requirements: statements about a metric that a run must meet, for gates.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::amount::{Amount, NotAnAmount};
use crate::selector::Selector;

/// A requirement of a study. `run` and `report` end with exit status 3 if one is not met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The required statement: `response_p99 at most 50 ms`, `request_rate at least 900/s`, `errors at most 0.1 %`, or
    /// `response_p99 no more than 5 % worse than the baseline`. Instead of the baseline, `the level NAME` names another
    /// level of the compared factor.
    pub that: Statement,
    /// The cells for which it must hold. Default: every cell; for `worse than`, every cell with another level.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub cells: Selector,
    /// Consequence of an inconclusive result: `pass`, or `fail` for the exit status 3. `--fail-on inconclusive` sets
    /// `fail` for all requirements. Default: `pass`.
    #[serde(default, skip_serializing_if = "Inconclusive::is_default")]
    pub inconclusive: Inconclusive,
}

/// Consequence of an inconclusive requirement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Inconclusive {
    /// It does not change the exit status.
    #[default]
    Pass,
    /// It counts as not met.
    Fail,
}

impl Inconclusive {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A bound on a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The metric's name.
    pub metric: String,
    /// The bound.
    pub limit: Limit,
}

/// The bound of a requirement.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// The value is at most this.
    AtMost(Amount),
    /// The value is at least this.
    AtLeast(Amount),
    /// The value is worse than that of another level by at most a share.
    NoWorse {
        /// The share, as written.
        by: Amount,
        /// The other level.
        than: Reference,
    },
}

/// The level with which a requirement compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The baseline of the study.
    Baseline,
    /// A level of the compared factor.
    Level(String),
}

/// Short names of metrics in requirements.
const SHORT: [(&str, &str); 11] = [
    ("errors", "error_share"),
    ("median", "response_median"),
    ("p50", "response_median"),
    ("p90", "response_p90"),
    ("p99", "response_p99"),
    ("p99.9", "response_p999"),
    ("p999", "response_p999"),
    ("mean", "response_mean"),
    ("max", "response_max"),
    ("min", "response_min"),
    ("rate", "request_rate"),
];

/// The full name of a metric; other words are returned as they are.
fn full_name(metric: &str) -> String {
    SHORT.iter().find(|(short, _)| *short == metric).map_or(metric, |(_, full)| full).to_owned()
}

impl Statement {
    /// The short names of metrics, with the full ones.
    #[must_use]
    pub const fn short_names() -> &'static [(&'static str, &'static str)] {
        &SHORT
    }

    /// The requirement behind a condition of failure: `p99 > 50 ms`, `rate < 900/s`, or `p99 5 % worse`.
    ///
    /// # Errors
    /// If the text is no such condition.
    pub fn from_failure(text: &str) -> Result<Self, NotAStatement> {
        let error = |why| NotAStatement { text: text.trim().to_owned(), form: Form::Failure, why };
        if let Some(place) = text.find(['<', '>']) {
            let metric = full_name(one_word(&text[..place]).ok_or_else(|| error(None))?);
            let amount = text[place + 1..].parse().map_err(|why| error(Some(why)))?;
            let is_above = text[place..].starts_with('>');
            return Ok(Self { metric, limit: if is_above { Limit::AtMost(amount) } else { Limit::AtLeast(amount) } });
        }
        let rest = text.trim().strip_suffix("worse").ok_or_else(|| error(None))?;
        let (metric, by) = rest.trim().split_once(char::is_whitespace).ok_or_else(|| error(None))?;
        let by = by.parse().map_err(|why| error(Some(why)))?;
        Ok(Self { metric: full_name(metric), limit: Limit::NoWorse { by, than: Reference::Baseline } })
    }
}

impl Limit {
    /// Whether a value in the metric's base unit keeps an absolute bound; `None` for a relative one.
    #[must_use]
    pub fn keeps(&self, value: f64) -> Option<bool> {
        match self {
            Self::AtMost(most) => Some(value <= most.value()),
            Self::AtLeast(least) => Some(value >= least.value()),
            Self::NoWorse { .. } => None,
        }
    }
}

fn one_word(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && !text.contains(char::is_whitespace)).then_some(text)
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.metric, self.limit)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(amount) => write!(f, "at most {amount}"),
            Self::AtLeast(amount) => write!(f, "at least {amount}"),
            Self::NoWorse { by, than: Reference::Baseline } => write!(f, "no more than {by} worse than the baseline"),
            Self::NoWorse { by, than: Reference::Level(level) } => {
                write!(f, "no more than {by} worse than the level {level}")
            }
        }
    }
}

impl FromStr for Statement {
    type Err = NotAStatement;

    fn from_str(text: &str) -> Result<Self, NotAStatement> {
        let error = |why| NotAStatement { text: text.trim().to_owned(), form: Form::Requirement, why };
        let (metric, limit) = text.trim().split_once(char::is_whitespace).ok_or_else(|| error(None))?;
        let limit = limit.trim();
        let amount = |text: &str| text.parse::<Amount>().map_err(|why| error(Some(why)));
        let limit = if let Some(most) = limit.strip_prefix("at most ") {
            Limit::AtMost(amount(most)?)
        } else if let Some(least) = limit.strip_prefix("at least ") {
            Limit::AtLeast(amount(least)?)
        } else {
            let (by, than) = limit
                .strip_prefix("no more than ")
                .and_then(|rest| rest.split_once(" worse than the "))
                .ok_or_else(|| error(None))?;
            let than = match than.trim() {
                "baseline" => Reference::Baseline,
                than => {
                    let level = than.strip_prefix("level ").map(str::trim).filter(|level| !level.is_empty());
                    Reference::Level(level.ok_or_else(|| error(None))?.to_owned())
                }
            };
            Limit::NoWorse { by: amount(by)?, than }
        };
        Ok(Self { metric: full_name(metric), limit })
    }
}

/// A text that is no requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAStatement {
    text: String,
    form: Form,
    /// The part that is wrong, if it is the amount.
    why: Option<NotAnAmount>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Requirement,
    Failure,
}

impl fmt::Display for NotAStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.why {
            return write!(f, "`{}`: {why}", self.text);
        }
        let examples = match self.form {
            Form::Requirement => {
                "a requirement such as `response_p99 at most 50 ms`, `errors at most 0.1 %`, `request_rate at least 900/s` \
                 or `response_p99 no more than 5 % worse than the baseline`"
            }
            Form::Failure => "a condition such as `p99 > 50 ms`, `errors > 0.1 %`, `rate < 900/s` or `p99 5 % worse`",
        };
        write!(f, "`{}` is not {examples}", self.text)
    }
}

impl std::error::Error for NotAStatement {}

impl Serialize for Statement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Statement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Statement {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Statement".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "examples": [
                "response_p99 at most 50 ms",
                "errors at most 0.1 %",
                "response_p99 no more than 5 % worse than the baseline",
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_read_and_written_back() {
        for text in [
            "response_p99 at most 50 ms",
            "request_rate at least 900/s",
            "response_p99 no more than 5 % worse than the baseline",
            "goodput no more than 2.5 % worse than the level old build",
        ] {
            assert_eq!(text.parse::<Statement>().unwrap().to_string(), text);
        }
        assert_eq!("errors at most 0.1 %".parse::<Statement>().unwrap().metric, "error_share");
    }

    #[test]
    fn a_condition_of_failure_is_the_opposite_of_a_requirement() {
        for (failure, requirement) in [
            ("p99>50ms", "response_p99 at most 50 ms"),
            ("errors > 0.1%", "error_share at most 0.1 %"),
            ("rate < 900/s", "request_rate at least 900/s"),
            ("p99 5% worse", "response_p99 no more than 5 % worse than the baseline"),
        ] {
            assert_eq!(Statement::from_failure(failure).unwrap().to_string(), requirement);
        }
        let limit = Statement::from_failure("p99>50ms").unwrap().limit;
        assert_eq!((limit.keeps(50e6), limit.keeps(51e6)), (Some(true), Some(false)));
    }

    #[test]
    fn a_wrong_requirement_is_answered_with_examples() {
        for text in [
            "",
            "response_p99",
            "response_p99 < 50 ms",
            "p99 no more than 5 % worse",
            "p99 at most",
            "p99 at most fast",
        ] {
            let error = text.parse::<Statement>().unwrap_err().to_string();
            assert!(error.contains("such as"), "{error}");
        }
        for text in ["p99", "p99 >", "> 50 ms", "p99 worse", "a b > 1"] {
            let error = Statement::from_failure(text).unwrap_err().to_string();
            assert!(error.contains("such as"), "{error}");
        }
    }
}
