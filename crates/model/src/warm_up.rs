//! The length of a warm-up: a number of requests, a time, or until response times are steady.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::spec::Extent;
use crate::units::Span;

/// A warm-up as a study writes it: `100` requests, `"300 ms"`, or `"until steady"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// A number of requests; 0 for no warm-up.
    Requests(u64),
    /// A length of time, at least 1 ms.
    Lasting(Span),
    /// Until response times are steady, at most for this time.
    UntilSteady(Span),
}

/// The words of a warm-up until response times are steady.
const UNTIL_STEADY: &str = "until steady";

/// The words before its longest time.
const WITHIN: &str = " within ";

impl WarmUp {
    /// The largest number of requests.
    pub const MOST_REQUESTS: u64 = 1_000_000_000;

    /// The shortest and the longest time.
    pub const TIMES: [Span; 2] = [Span::from_millis(1), Span::from_secs(86_400)];

    /// The default of the longest time of a warm-up until response times are steady.
    pub const LONGEST: Span = Span::from_secs(5);

    /// The range of that time.
    pub const LONGEST_TIMES: [Span; 2] = [Span::from_secs(1), Span::from_secs(3600)];

    /// The warm-up of a client's spec, or its longest time; `None` for no warm-up.
    #[must_use]
    pub const fn extent(self) -> Option<Extent> {
        match self {
            Self::Requests(0) => None,
            Self::Requests(requests) => Some(Extent::Requests(requests)),
            Self::Lasting(time) | Self::UntilSteady(time) => Some(Extent::DurationNs(time.nanos())),
        }
    }

    /// Whether it ends as soon as response times are steady.
    #[must_use]
    pub const fn is_until_steady(self) -> bool {
        matches!(self, Self::UntilSteady(_))
    }

    /// Reads every kind but numbers.
    fn of_words(text: &str) -> Option<Self> {
        let within = |time: &Span, [shortest, longest]: [Span; 2]| (shortest..=longest).contains(time);
        let Some(longest) = text.strip_prefix(UNTIL_STEADY) else {
            return text.parse().ok().filter(|time| within(time, Self::TIMES)).map(Self::Lasting);
        };
        if longest.is_empty() {
            return Some(Self::UntilSteady(Self::LONGEST));
        }
        let longest = longest.strip_prefix(WITHIN)?.parse().ok().filter(|time| within(time, Self::LONGEST_TIMES));
        longest.map(Self::UntilSteady)
    }
}

/// A text that is no warm-up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a number of requests, at most {max}, nor a time from {shortest} to {longest} such as `300 ms`, \
    nor `until steady` or `until steady within TIME`, from {least} to {most}",
    least = WarmUp::LONGEST_TIMES[0], most = WarmUp::LONGEST_TIMES[1], max = WarmUp::MOST_REQUESTS, shortest = WarmUp::TIMES[0], longest = WarmUp::TIMES[1])]
pub struct WarmUpError(String);

impl FromStr for WarmUp {
    type Err = WarmUpError;

    fn from_str(text: &str) -> Result<Self, WarmUpError> {
        let requests = text.parse().ok().filter(|requests| *requests <= Self::MOST_REQUESTS);
        requests.map(Self::Requests).or_else(|| Self::of_words(text)).ok_or_else(|| WarmUpError(text.to_owned()))
    }
}

impl fmt::Display for WarmUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(requests) => requests.fmt(f),
            Self::Lasting(time) => time.fmt(f),
            Self::UntilSteady(Self::LONGEST) => f.write_str(UNTIL_STEADY),
            Self::UntilSteady(longest) => write!(f, "{UNTIL_STEADY}{WITHIN}{longest}"),
        }
    }
}

impl Serialize for WarmUp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Requests(requests) => serializer.serialize_u64(*requests),
            Self::Lasting(time) => time.serialize(serializer),
            Self::UntilSteady(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for WarmUp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = WarmUp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let [shortest, longest] = WarmUp::TIMES;
                let most = WarmUp::MOST_REQUESTS;
                write!(
                    f,
                    "a number of requests from 0 to {most}, or a time from {shortest} to {longest} such as `300 ms`, or \
                     `until steady`"
                )
            }

            fn visit_u64<E: de::Error>(self, requests: u64) -> Result<WarmUp, E> {
                match requests {
                    0..=WarmUp::MOST_REQUESTS => Ok(WarmUp::Requests(requests)),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(requests), &self)),
                }
            }

            fn visit_i64<E: de::Error>(self, requests: i64) -> Result<WarmUp, E> {
                match u64::try_from(requests) {
                    Ok(requests) => self.visit_u64(requests),
                    Err(_) => Err(E::invalid_value(de::Unexpected::Signed(requests), &self)),
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<WarmUp, E> {
                WarmUp::of_words(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for WarmUp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WarmUp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "oneOf": [
                { "type": "integer", "minimum": 0, "maximum": Self::MOST_REQUESTS },
                { "type": "string", "examples": ["300 ms", "until steady", "until steady within 10 s"] },
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_warm_up_is_written_as_it_is_read() {
        for (written, extent) in [
            (json!(0), None),
            (json!(20), Some(Extent::Requests(20))),
            (json!("300 ms"), Some(Extent::DurationNs(300_000_000))),
            (json!("until steady"), Some(Extent::DurationNs(5_000_000_000))),
            (json!("until steady within 10 s"), Some(Extent::DurationNs(10_000_000_000))),
        ] {
            let warm_up: WarmUp = serde_json::from_value(written.clone()).unwrap();
            assert_eq!((warm_up.extent(), serde_json::to_value(warm_up).unwrap()), (extent, written));
        }
    }

    #[test]
    fn a_command_line_has_either_kind() {
        assert_eq!("20".parse(), Ok(WarmUp::Requests(20)));
        assert_eq!("300ms".parse(), Ok(WarmUp::Lasting(Span::from_millis(300))));
        assert_eq!("until steady within 2s".parse(), Ok(WarmUp::UntilSteady(Span::from_secs(2))));
        for wrong in ["", "-1", "1000000001", "0 ms", "soon", "until steady within 1 ms", "until steady, 2 s"] {
            let why = wrong.parse::<WarmUp>().unwrap_err().to_string();
            assert!(why.contains("neither a number of requests"), "{wrong}: {why}");
        }
    }

    #[test]
    fn other_values_are_refused_with_what_is_expected() {
        for wrong in [
            json!(-1),
            json!(1_000_000_001),
            json!("20"),
            json!("0 ms"),
            json!("2000 h"),
            json!("until 2 s"),
            json!(true),
            Value::Null,
        ] {
            let why = serde_json::from_value::<WarmUp>(wrong.clone()).unwrap_err().to_string();
            assert!(
                why.contains("a number of requests from 0 to 1000000000, or a time from 1 ms to"),
                "{wrong}: {why}"
            );
        }
    }
}
