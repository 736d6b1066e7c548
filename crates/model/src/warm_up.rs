//! The length of a warm-up, in requests or in time.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::spec::Extent;
use crate::units::Span;

/// A warm-up as a study writes it: `100` requests, or `"300 ms"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// A number of requests; 0 for no warm-up.
    Requests(u64),
    /// A length of time, at least 1 ms.
    Lasting(Span),
}

impl WarmUp {
    /// The largest number of requests.
    pub const MOST_REQUESTS: u64 = 1_000_000_000;

    /// The shortest and the longest time.
    pub const TIMES: [Span; 2] = [Span::from_millis(1), Span::from_secs(86_400)];

    /// The warm-up of a client's spec; `None` for no warm-up.
    #[must_use]
    pub const fn extent(self) -> Option<Extent> {
        match self {
            Self::Requests(0) => None,
            Self::Requests(requests) => Some(Extent::Requests(requests)),
            Self::Lasting(time) => Some(Extent::DurationNs(time.nanos())),
        }
    }
}

/// A text that is no warm-up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a number of requests, at most {max}, nor a time from {shortest} to {longest} such as `300 ms`",
    max = WarmUp::MOST_REQUESTS, shortest = WarmUp::TIMES[0], longest = WarmUp::TIMES[1])]
pub struct WarmUpError(String);

impl FromStr for WarmUp {
    type Err = WarmUpError;

    fn from_str(text: &str) -> Result<Self, WarmUpError> {
        let requests = text.parse().ok().filter(|requests| *requests <= Self::MOST_REQUESTS);
        let is_valid = |time: &Span| (Self::TIMES[0]..=Self::TIMES[1]).contains(time);
        let time = || text.parse().ok().filter(is_valid).map(Self::Lasting);
        requests.map(Self::Requests).or_else(time).ok_or_else(|| WarmUpError(text.to_owned()))
    }
}

impl fmt::Display for WarmUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(requests) => requests.fmt(f),
            Self::Lasting(time) => time.fmt(f),
        }
    }
}

impl Serialize for WarmUp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Requests(requests) => serializer.serialize_u64(*requests),
            Self::Lasting(time) => time.serialize(serializer),
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
                    "a number of requests from 0 to {most}, or a time from {shortest} to {longest} such as `300 ms`"
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
                let [shortest, longest] = WarmUp::TIMES;
                match text.parse::<Span>() {
                    Ok(time) if (shortest..=longest).contains(&time) => Ok(WarmUp::Lasting(time)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
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
                { "type": "string", "examples": ["300 ms"] },
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
        ] {
            let warm_up: WarmUp = serde_json::from_value(written.clone()).unwrap();
            assert_eq!((warm_up.extent(), serde_json::to_value(warm_up).unwrap()), (extent, written));
        }
    }

    #[test]
    fn a_command_line_has_either_kind() {
        assert_eq!("20".parse(), Ok(WarmUp::Requests(20)));
        assert_eq!("300ms".parse(), Ok(WarmUp::Lasting(Span::from_millis(300))));
        for wrong in ["", "-1", "1000000001", "0 ms", "soon"] {
            let why = wrong.parse::<WarmUp>().unwrap_err().to_string();
            assert!(why.contains("neither a number of requests"), "{wrong}: {why}");
        }
    }

    #[test]
    fn other_values_are_refused_with_what_is_expected() {
        for wrong in
            [json!(-1), json!(1_000_000_001), json!("20"), json!("0 ms"), json!("2000 h"), json!(true), Value::Null]
        {
            let why = serde_json::from_value::<WarmUp>(wrong.clone()).unwrap_err().to_string();
            assert!(
                why.contains("a number of requests from 0 to 1000000000, or a time from 1 ms to"),
                "{wrong}: {why}"
            );
        }
    }
}
