//! Amounts with a unit, for bounds on metrics: `50 ms`, `0.1 %`, `940 Mbit/s`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::metric::Unit;

/// A number as written, with its unit if one is written. Its text reads back as the same amount.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount {
    number: f64,
    symbol: Option<&'static Symbol>,
}

/// The symbol of a unit.
#[derive(Debug, PartialEq)]
struct Symbol {
    text: &'static str,
    unit: Unit,
    /// The size in the base unit is the number times `times`, divided by `per`.
    times: f64,
    per: f64,
}

const fn symbol(text: &'static str, unit: Unit, times: f64) -> Symbol {
    Symbol { text, unit, times, per: 1.0 }
}

static SYMBOLS: [Symbol; 26] = [
    symbol("ns", Unit::Nanoseconds, 1.0),
    symbol("us", Unit::Nanoseconds, 1e3),
    symbol("µs", Unit::Nanoseconds, 1e3),
    symbol("ms", Unit::Nanoseconds, 1e6),
    symbol("s", Unit::Nanoseconds, 1e9),
    symbol("min", Unit::Nanoseconds, 60e9),
    symbol("h", Unit::Nanoseconds, 3600e9),
    symbol("B", Unit::Bytes, 1.0),
    symbol("kB", Unit::Bytes, 1e3),
    symbol("KB", Unit::Bytes, 1e3),
    symbol("MB", Unit::Bytes, 1e6),
    symbol("GB", Unit::Bytes, 1e9),
    symbol("KiB", Unit::Bytes, 1024.0),
    symbol("MiB", Unit::Bytes, 1_048_576.0),
    symbol("GiB", Unit::Bytes, 1_073_741_824.0),
    symbol("bit/s", Unit::BitsPerSecond, 1.0),
    symbol("kbit/s", Unit::BitsPerSecond, 1e3),
    symbol("Mbit/s", Unit::BitsPerSecond, 1e6),
    symbol("Gbit/s", Unit::BitsPerSecond, 1e9),
    symbol("/s", Unit::PerSecond, 1.0),
    symbol("k/s", Unit::PerSecond, 1e3),
    symbol("M/s", Unit::PerSecond, 1e6),
    Symbol { text: "/min", unit: Unit::PerSecond, times: 1.0, per: 60.0 },
    // Divided, so that 7 % is exactly 0.07.
    Symbol { text: "%", unit: Unit::Share, times: 1.0, per: 100.0 },
    Symbol { text: "percent", unit: Unit::Share, times: 1.0, per: 100.0 },
    Symbol { text: "‰", unit: Unit::Share, times: 1.0, per: 1000.0 },
];

impl Amount {
    /// A number without a unit.
    #[must_use]
    pub const fn bare(number: f64) -> Self {
        Self { number, symbol: None }
    }

    /// The size in the base unit: nanoseconds, bytes, bit/s, per second, share of 1. A bare number is its own size.
    #[must_use]
    pub fn value(self) -> f64 {
        self.symbol.map_or(self.number, |symbol| self.number * symbol.times / symbol.per)
    }

    /// The unit as written.
    #[must_use]
    pub fn unit(self) -> Option<Unit> {
        self.symbol.map(|symbol| symbol.unit)
    }

    /// The same number with the unit of another amount, if it has none itself.
    #[must_use]
    pub fn in_unit_of(self, other: Self) -> Self {
        Self { symbol: self.symbol.or(other.symbol), ..self }
    }

    /// Checks that the amount is of a unit. A number without a unit is one of counts only.
    ///
    /// # Errors
    /// If the unit is missing or another one.
    pub fn fits(self, unit: Unit) -> Result<(), Unfit> {
        match self.unit() {
            Some(written) if written == unit => Ok(()),
            Some(_) => Err(Unfit::Other { expected: unit }),
            None if unit == Unit::Count => Ok(()),
            None => Err(Unfit::Bare { expected: unit }),
        }
    }
}

/// Why an amount does not fit a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It has no unit.
    Bare {
        /// The unit of the metric.
        expected: Unit,
    },
    /// It has another unit.
    Other {
        /// The unit of the metric.
        expected: Unit,
    },
}

/// For messages: the rest of a sentence about the amount.
impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (problem, expected) = match self {
            Self::Bare { expected } => ("has no unit", expected),
            Self::Other { expected } => ("has the wrong unit", expected),
        };
        write!(f, "{problem}: the metric is {}", described(*expected))
    }
}

/// A unit in words, with an example.
const fn described(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "a time, such as `50 ms` or `250 us`",
        Unit::Bytes => "a size, such as `32 KiB` or `100 KB`",
        Unit::BitsPerSecond => "a bit rate, such as `100 Mbit/s`",
        Unit::PerSecond => "a rate, such as `500/s`",
        Unit::Count => "a number without a unit, such as `12`",
        Unit::Share => "a share, such as `0.1 %`",
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol {
            None => write!(f, "{}", self.number),
            Some(symbol) if symbol.text.starts_with('/') => write!(f, "{}{}", self.number, symbol.text),
            Some(symbol) => write!(f, "{} {}", self.number, symbol.text),
        }
    }
}

impl FromStr for Amount {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let text = text.trim();
        let is_of_number =
            |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '_' | '+' | '-' | 'e' | 'E');
        let end = text.find(|letter| !is_of_number(letter)).unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim());
        let number = number.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
        let Some(number) = number else { return Err(NotAnAmount { text: text.to_owned(), meant: None }) };
        if unit.is_empty() {
            return Ok(Self::bare(number));
        }
        match SYMBOLS.iter().find(|symbol| symbol.text == unit) {
            Some(symbol) => Ok(Self { number, symbol: Some(symbol) }),
            None => Err(NotAnAmount {
                text: text.to_owned(),
                meant: crate::nearest::nearest(unit, SYMBOLS.iter().map(|symbol| symbol.text)),
            }),
        }
    }
}

/// A text that is no amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnAmount {
    text: String,
    meant: Option<&'static str>,
}

impl fmt::Display for NotAnAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an amount such as `50 ms`, `32 KiB`, `500/s` or `0.1 %`", self.text)?;
        self.meant.map_or(Ok(()), |meant| write!(f, ", did you mean the unit `{meant}`"))
    }
}

impl std::error::Error for NotAnAmount {}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_base_units_and_written_as_they_were() {
        for (text, value, unit) in [
            ("50 ms", 50e6, Some(Unit::Nanoseconds)),
            ("0.1 %", 0.001, Some(Unit::Share)),
            ("7 %", 0.07, Some(Unit::Share)),
            ("500/s", 500.0, Some(Unit::PerSecond)),
            ("1.5 MiB", 1_572_864.0, Some(Unit::Bytes)),
            ("940 Mbit/s", 940e6, Some(Unit::BitsPerSecond)),
            ("-3", -3.0, None),
        ] {
            let amount: Amount = text.parse().unwrap();
            assert_eq!((amount.value(), amount.unit()), (value, unit), "{text}");
            assert_eq!(amount.to_string(), text);
        }
        assert_eq!("1e9".parse::<Amount>().unwrap().value(), 1e9);
        assert_eq!("50ms".parse::<Amount>(), "50 ms".parse());
    }

    #[test]
    fn a_wrong_unit_is_answered_with_the_nearest_and_a_missing_one_with_an_example() {
        let error = "50 msec".parse::<Amount>().unwrap_err().to_string();
        assert!(error.contains("`50 msec` is not an amount"), "{error}");
        assert!("50 mss".parse::<Amount>().unwrap_err().to_string().contains("`ms`"));
        for text in ["", "ms", "1e", "inf", "NaN ms"] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
        let bare = Amount::bare(50.0);
        assert!(bare.fits(Unit::Count).is_ok());
        let unfit = bare.fits(Unit::Nanoseconds).unwrap_err().to_string();
        assert_eq!(unfit, "has no unit: the metric is a time, such as `50 ms` or `250 us`");
        let other = "50 ms".parse::<Amount>().unwrap().fits(Unit::Share).unwrap_err();
        assert_eq!(other, Unfit::Other { expected: Unit::Share });
    }
}
