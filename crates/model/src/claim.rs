//! A statement that a study tests, and how.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::selector::Selector;

/// A statement, published or the author's own, with the tests that decide it: it holds if all of them hold, does not
/// hold if any is clearly violated, otherwise the study cannot tell. With `each` and `needs` it is about some or most of
/// several levels ("some implementations").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A short identifier, for example `C1`.
    pub id: String,
    /// The statement.
    pub text: String,
    /// A factor with the levels that the claim speaks of, each a case of its own: `{ implementation = ["quiche", "kwik"] }`. The tests
    /// are made for each of them; a selector in `of` that does not name the factor has the level of the case. Levels that a run
    /// does not have are no cases, and are named as not tested. Default: none; the tests name all levels themselves.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub each: Selector,
    /// For how many of the cases of `each` the tests have to hold: `all`, `most` (more than half) or `some` (one or more). Default: `all`.
    #[serde(default, skip_serializing_if = "Needs::is_default")]
    pub needs: Needs,
    /// What decides it. Empty: this study cannot test it, and `untested` says why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Test>,
    /// Why the claim, or a part of it, is not tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
}

/// For how many cases the tests of a claim have to hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Needs {
    /// For every one.
    #[default]
    All,
    /// For more than half of them.
    Most,
    /// For one or more.
    Some,
}

impl Needs {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The smallest number of `cases`, of which there is at least one, that will do.
    #[must_use]
    pub const fn least(self, cases: usize) -> usize {
        match self {
            Self::All => cases,
            Self::Most => cases / 2 + 1,
            Self::Some => 1,
        }
    }
}

/// One test of a claim: an effect, compared with a bound.
///
/// The effect is a product of cell values to the powers +1 and -1: one selector gives the value itself, two the ratio
/// a/b, four the ratio of ratios (a/b)/(c/d). With `with` it is a rank correlation over the cells of one selector. Factors
/// that neither `of` nor `where` fixes are gone through one by one, and each combination gives an effect with an interval of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// The metric.
    pub metric: String,
    /// A second metric: the effect is how the two go together over the cells of the one selector in `of`, which names at least five levels
    /// in a list, as Spearman's rank correlation of their medians, from -1 to 1. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// One, two or four selectors: a; a/b; (a/b)/(c/d).
    pub of: Vec<Selector>,
    /// Levels that all of them have.
    #[serde(default, rename = "where")]
    pub given: Selector,
    /// The bound that the effect is expected to keep.
    pub expect: Bound,
}

impl Test {
    /// The fewest cells of a correlation. Five values have 120 orders, so that one order alone is beyond chance at 2.5 %; four have 24.
    pub const LEAST_CELLS: usize = 5;
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
