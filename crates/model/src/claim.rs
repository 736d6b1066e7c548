//! A statement that a study tests, and how.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::selector::Selector;

/// A statement, published or the author's own, with the tests that decide it: it holds if all of them hold, does not
/// hold if any is clearly violated, otherwise the study cannot tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A short identifier, for example `C1`.
    pub id: String,
    /// The statement.
    pub text: String,
    /// What decides it. Empty: this study cannot test it, and `untested` says why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Test>,
    /// Why the claim, or a part of it, is not tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
}

/// One test of a claim: an effect, compared with a bound.
///
/// The effect is a product of cell values to the powers +1 and -1: one selector gives the value itself, two the ratio
/// a/b, four the ratio of ratios (a/b)/(c/d). Factors that neither `of` nor `where` fixes are gone through one by one,
/// and each combination gives an effect with an interval of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// The metric.
    pub metric: String,
    /// One, two or four selectors: a; a/b; (a/b)/(c/d).
    pub of: Vec<Selector>,
    /// Levels that all of them have.
    #[serde(default, rename = "where")]
    pub given: Selector,
    /// The bound that the effect is expected to keep.
    pub expect: Bound,
}

/// A bound on an effect, written `"> 1"`, `"< 0.5"` or `"3 to 12"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// The effect is above it.
    Above(f64),
    /// The effect is below it.
    Below(f64),
    /// The effect is between the two.
    Within(f64, f64),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Above(bound) => write!(f, "> {bound}"),
            Self::Below(bound) => write!(f, "< {bound}"),
            Self::Within(low, high) => write!(f, "{low} to {high}"),
        }
    }
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("`{text}` is not a bound such as `> 1`, `< 0.5` or `3 to 12`");
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite()).ok_or_else(error);
        if let Some(rest) = text.trim().strip_prefix('>') {
            number(rest).map(Self::Above)
        } else if let Some(rest) = text.trim().strip_prefix('<') {
            number(rest).map(Self::Below)
        } else {
            let (low, high) = text.split_once(" to ").ok_or_else(error)?;
            let (low, high) = (number(low)?, number(high)?);
            if low < high { Ok(Self::Within(low, high)) } else { Err(error()) }
        }
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Bound {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bound".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["> 1", "< 0.5", "3 to 12"] })
    }
}
