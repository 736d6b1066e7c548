//! Units of columns.

use wirelab_model::metric::{Better, Unit};

use crate::error::StudyError;
use crate::words::{nearest, one_of};

/// The unit as written, its base unit, and the conversion factor.
type Known = (&'static str, Unit, f64);

const KNOWN: [Known; 23] = [
    ("ns", Unit::Nanoseconds, 1.0),
    ("us", Unit::Nanoseconds, 1e3),
    ("ms", Unit::Nanoseconds, 1e6),
    ("s", Unit::Nanoseconds, 1e9),
    ("min", Unit::Nanoseconds, 6e10),
    ("h", Unit::Nanoseconds, 3.6e12),
    ("B", Unit::Bytes, 1.0),
    ("KiB", Unit::Bytes, 1024.0),
    ("MiB", Unit::Bytes, 1_048_576.0),
    ("GiB", Unit::Bytes, 1_073_741_824.0),
    ("KB", Unit::Bytes, 1e3),
    ("MB", Unit::Bytes, 1e6),
    ("GB", Unit::Bytes, 1e9),
    ("bit/s", Unit::BitsPerSecond, 1.0),
    ("kbit/s", Unit::BitsPerSecond, 1e3),
    ("Mbit/s", Unit::BitsPerSecond, 1e6),
    ("Gbit/s", Unit::BitsPerSecond, 1e9),
    ("/s", Unit::PerSecond, 1.0),
    ("/min", Unit::PerSecond, 1.0 / 60.0),
    ("k/s", Unit::PerSecond, 1e3),
    ("share", Unit::Share, 1.0),
    ("%", Unit::Share, 0.01),
    ("count", Unit::Count, 1.0),
];

/// The base unit of a unit, and the conversion factor.
pub(super) fn unit(name: &str) -> Result<(Unit, f64), StudyError> {
    let name = if name == "µs" { "us" } else { name };
    KNOWN.iter().find(|(known, ..)| *known == name).map(|(_, unit, factor)| (*unit, *factor)).ok_or_else(|| {
        let names: Vec<_> = KNOWN.iter().map(|(name, ..)| *name).collect();
        let meant = nearest(name, names.iter().copied());
        StudyError::new(format!("unknown unit `{name}`, expected {}", one_of(&names))).meant(meant)
    })
}

/// The unit suffix of a column name: `onload_s`, `latency_ms`.
pub(super) fn of_column(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once(['_', ' ', '(', '['])?;
    let end = end.trim_end_matches([')', ']']);
    // Rates and shares are rarely written as suffixes, and `h`, `min` and `count` are ambiguous.
    ["ns", "us", "ms", "s", "B", "KiB", "MiB", "KB", "MB", "bytes"]
        .into_iter()
        .find(|unit| *unit == end)
        .map(|unit| if unit == "bytes" { "B" } else { unit })
}

/// Usual direction of improvement for this unit.
pub(super) const fn usually(unit: Unit) -> Better {
    match unit {
        Unit::BitsPerSecond | Unit::PerSecond => Better::Higher,
        Unit::Nanoseconds | Unit::Bytes | Unit::Count | Unit::Share => Better::Lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_parsed_and_misspelt_ones_get_the_nearest() {
        assert_eq!(unit("s").unwrap(), (Unit::Nanoseconds, 1e9));
        assert_eq!(unit("µs").unwrap(), (Unit::Nanoseconds, 1e3));
        assert_eq!(unit("Mbits").unwrap_err().suggestion(), Some("Mbit/s"));
        assert_eq!(unit("bananas").unwrap_err().suggestion(), None);
    }

    #[test]
    fn a_column_may_say_its_unit() {
        assert_eq!(of_column("h1_onload_s"), Some("s"));
        assert_eq!(of_column("latency (ms)"), Some("ms"));
        assert_eq!(of_column("size_bytes"), Some("B"));
        assert_eq!((of_column("requests"), of_column("ms"), of_column("h1_onloads")), (None, None, None));
    }
}
