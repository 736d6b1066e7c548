//! Claims: statements that a study tests, and their tests.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::amount::{Amount, NotAnAmount};
use crate::selector::Selector;

/// A statement, published or the author's own, with the tests that decide it. It holds if all tests hold, and does not
/// hold if a test is clearly violated; otherwise the result is inconclusive. With `each` and `needs` it is about some
/// or most of several levels ("some implementations").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A short identifier, for example `C1`.
    pub id: String,
    /// The statement as text.
    pub text: String,
    /// A factor with the levels that the claim is about; each level is a case: `{ implementation = ["quiche", "kwik"]
    /// }`. The tests apply to each case; a selector in `of` that does not name the factor has the level of the case.
    /// The report lists levels that a run lacks as not tested. Default: none; the tests name all levels themselves.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub each: Selector,
    /// Number of cases of `each` for which the tests must hold: `all`, `most` (more than half) or `some` (one or more).
    /// Default: `all`.
    #[serde(default, skip_serializing_if = "Needs::is_default")]
    pub needs: Needs,
    /// The tests that decide the claim. Empty: this study cannot test it, and `untested` gives the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Test>,
    /// Reason why the claim, or a part of it, is not tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
}

/// Number of cases for which the tests of a claim must hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Needs {
    /// All cases.
    #[default]
    All,
    /// More than half of the cases.
    Most,
    /// One or more cases.
    Some,
}

impl Needs {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the smallest sufficient number of `cases`, which is at least 1.
    #[must_use]
    pub const fn least(self, cases: usize) -> usize {
        match self {
            Self::All => cases,
            Self::Most => cases / 2 + 1,
            Self::Some => 1,
        }
    }
}

/// One test of a claim: an effect and a bound.
///
/// The effect is a product of cell values to the powers +1 and -1: one selector gives the value itself, two the ratio
/// a/b, four the ratio of ratios (a/b)/(c/d). With `with` it is a rank correlation over the cells of one selector. Each
/// combination of levels of the factors that neither `of` nor `where` fixes gives an effect with its own interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// Name of the metric.
    pub metric: String,
    /// A second metric: the effect is Spearman's rank correlation, from -1 to 1, between the medians of both metrics
    /// over the cells of the one selector in `of`, which lists at least five levels. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// One, two or four selectors: a; a/b; (a/b)/(c/d).
    pub of: Vec<Selector>,
    /// Levels that all selectors share.
    #[serde(default, rename = "where")]
    pub given: Selector,
    /// The expected bound of the effect: `> 1.2` for a ratio or a correlation; with the unit of the metric for a value,
    /// `< 50 ms`. A value without a unit is in the base unit: nanoseconds, bytes, bit/s, per second, share of 1.
    pub expect: Bound,
}

impl Test {
    /// Minimum number of cells of a correlation. Five values have 120 orders, so one order alone is significant at 2.5
    /// %; four values have only 24.
    pub const LEAST_CELLS: usize = 5;
}

/// A bound on an effect, written `"> 1"`, `"< 50 ms"` or `"3 to 12"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// The effect is above this value.
    Above(Amount),
    /// The effect is below this value.
    Below(Amount),
    /// The effect is between these values.
    Within(Amount, Amount),
}

impl Bound {
    /// The amounts of the bound.
    pub fn amounts(self) -> impl Iterator<Item = Amount> {
        match self {
            Self::Above(amount) | Self::Below(amount) => [Some(amount), None],
            Self::Within(low, high) => [Some(low), Some(high)],
        }
        .into_iter()
        .flatten()
    }
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
    type Err = NotABound;

    fn from_str(text: &str) -> Result<Self, NotABound> {
        let error = |why| NotABound { text: text.to_owned(), why };
        let amount = |text: &str| text.parse::<Amount>().map_err(|why| error(Some(why)));
        if let Some(rest) = text.trim().strip_prefix('>') {
            amount(rest).map(Self::Above)
        } else if let Some(rest) = text.trim().strip_prefix('<') {
            amount(rest).map(Self::Below)
        } else {
            let (low, high) = text.split_once(" to ").ok_or_else(|| error(None))?;
            // `3 to 12 ms` is `3 ms to 12 ms`.
            let high = amount(high)?;
            let low = amount(low)?.in_unit_of(high);
            if low.value() < high.value() { Ok(Self::Within(low, high)) } else { Err(error(None)) }
        }
    }
}

/// A text that is no bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotABound {
    text: String,
    /// The part that is wrong, if it is an amount.
    why: Option<NotAnAmount>,
}

impl fmt::Display for NotABound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a bound such as `> 1`, `< 50 ms` or `3 to 12`", self.text)?;
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

impl std::error::Error for NotABound {}

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
        json_schema!({ "type": "string", "examples": ["> 1", "< 50 ms", "3 to 12"] })
    }
}
