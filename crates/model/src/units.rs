//! Units as types, so that a number cannot be read in the wrong unit.
//!
//! Study files and reports write quantities with their unit (`"10 ms"`, `"32 KiB"`, `"500/s"`). In the endpoint
//! contract the unit is part of the field name (`timeout_ns`) and the value is an integer, so that endpoints need no
//! parser for units.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Parse error of a quantity, with the text and the expected form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.text, self.expected)
    }
}

impl std::error::Error for UnitError {}

/// Splits `"1.5 ms"` into number and unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// Parses `"1.5 ms"` with a table of units and their factors.
fn parse(text: &str, units: &[(&str, f64)], expected: &'static str) -> Result<f64, UnitError> {
    let error = || UnitError { text: text.to_owned(), expected };
    let (number, unit) = split(text);
    let number: f64 = number.replace('_', "").parse().map_err(|_| error())?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
    let value = number * factor;
    if value.is_finite() && value <= 2f64.powi(63) { Ok(value) } else { Err(error()) }
}

/// Writes `value` in the largest unit that leaves an exact, short number.
fn show(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    for (name, factor) in units {
        if value >= *factor && value.is_multiple_of(*factor) {
            return write!(f, "{} {name}", value / factor);
        }
    }
    let (name, _) = units.last().expect("a unit table is never empty");
    write!(f, "{value} {name}")
}

macro_rules! textual {
    ($type:ident, $name:literal, $pattern:literal, $example:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "examples": [$example] })
            }
        }
    };
}

/// A length of time in whole nanoseconds (0 to 292 years), written `"10 ms"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

const SPAN_EXPECTED: &str = "a length of time such as `250 us`, `10 ms`, `1.5 s` or `2 min`";

impl Span {
    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// The length in nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The length in seconds.
    #[must_use]
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The length as [`std::time::Duration`].
    #[must_use]
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        const UNITS: [(&str, f64); 8] =
            [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("m", 60e9), ("h", 3600e9)];
        parse(text, &UNITS, SPAN_EXPECTED).map(|nanos| Self(nanos.round() as u64))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(
            f,
            self.0,
            &[
                ("h", 3_600_000_000_000),
                ("min", 60_000_000_000),
                ("s", 1_000_000_000),
                ("ms", 1_000_000),
                ("us", 1000),
                ("ns", 1),
            ],
        )
    }
}

textual!(Span, "Span", r"^[0-9][0-9_.]* *(ns|us|µs|ms|s|min|m|h)$", "10 ms");

/// A number of bytes, written `"32 KiB"` (1024) or `"100 KB"` (1000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size(pub u64);

impl Size {
    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        const UNITS: [(&str, f64); 8] = [
            ("B", 1.0),
            ("kB", 1e3),
            ("KB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
        ];
        parse(text, &UNITS, "a size such as `512 B`, `32 KiB`, `100 KB` or `1 MiB`")
            .map(|bytes| Self(bytes.round() as u64))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
        const DECIMAL: [(&str, u64); 4] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000), ("B", 1)];
        let table = if self.0.is_multiple_of(1000) { &DECIMAL } else { &BINARY };
        show(f, self.0, table)
    }
}

textual!(Size, "Size", r"^[0-9][0-9_.]* *(B|kB|KB|MB|GB|KiB|MiB|GiB)$", "32 KiB");

/// Bits per second (0 to 2^63), written `"100 Mbit/s"`; prefixes are decimal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(pub u64);

const BIT_RATES: [(&str, u64); 4] = [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000), ("bit/s", 1)];

impl FromStr for BitRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let units = BIT_RATES.map(|(name, factor)| (name, factor as f64));
        parse(text, &units, "a bit rate such as `100 Mbit/s`").map(|bits| Self(bits.round() as u64))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, &BIT_RATES)
    }
}

textual!(BitRate, "BitRate", r"^[0-9][0-9_.]* *(bit|kbit|Mbit|Gbit)/s$", "100 Mbit/s");

/// A rate per second, written `"500/s"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Frequency(pub f64);

impl FromStr for Frequency {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        const EXPECTED: &str = "a rate above zero such as `500/s` or `60/min`";
        const UNITS: [(&str, f64); 4] = [("/s", 1.0), ("/min", 1.0 / 60.0), ("k/s", 1e3), ("M/s", 1e6)];
        let per_second = parse(text, &UNITS, EXPECTED)?;
        if per_second > 0.0 {
            Ok(Self(per_second))
        } else {
            Err(UnitError { text: text.to_owned(), expected: EXPECTED })
        }
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

textual!(Frequency, "Frequency", r"^[0-9][0-9_.]* *(k|M)?/(s|min)$", "500/s");

/// A share, written `"5 %"`; 1.0 is the whole.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &[("%", 0.01)], "a share such as `5 %`").map(Self)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded so that 0.07 * 100 does not show as 7.000000000000001.
        write!(f, "{} %", (self.0 * 1e8).round() / 1e6)
    }
}

textual!(Share, "Share", r"^[0-9][0-9_.]* *%$", "5 %");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_unit() {
        assert_eq!("1.5 ms".parse(), Ok(Span(1_500_000)));
        assert_eq!("250us".parse(), Ok(Span(250_000)));
        assert_eq!("32 KiB".parse(), Ok(Size(32_768)));
        assert_eq!("100 KB".parse(), Ok(Size(100_000)));
        assert_eq!("2k/s".parse(), Ok(Frequency(2000.0)));
        assert_eq!("1.6 Mbit/s".parse(), Ok(BitRate(1_600_000)));
        assert_eq!("5 %".parse(), Ok(Share(0.05)));
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_an_example() {
        let error = "10".parse::<Span>().unwrap_err().to_string();
        assert!(error.contains("`10` is not a length of time") && error.contains("`10 ms`"), "{error}");
        assert!("-1 ms".parse::<Span>().is_err());
        assert!("1e99 s".parse::<Span>().is_err());
        assert!("0/s".parse::<Frequency>().is_err());
    }

    #[test]
    fn what_is_written_reads_back_as_the_same_value() {
        for nanos in [0, 1, 999, 1000, 1_500_000, 60_000_000_000, 90_000_000_000] {
            let span = Span(nanos);
            assert_eq!(span.to_string().parse(), Ok(span), "{span}");
        }
        for bytes in [0, 1, 1000, 1024, 1500, 65_536, 100_000, 524_288] {
            let size = Size(bytes);
            assert_eq!(size.to_string().parse(), Ok(size), "{size}");
        }
        for bits in [0, 1, 768_000, 1_600_000, 1_500_000_000] {
            let rate = BitRate(bits);
            assert_eq!(rate.to_string().parse(), Ok(rate), "{rate}");
        }
        assert_eq!(Share(0.07).to_string(), "7 %");
    }
}
