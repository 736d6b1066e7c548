//! Values in the output of a program: a regular expression with one group finds each.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use wirelab_contract::totals::{Printed, nanoseconds_of};

/// Where the output of a program has values.
pub struct Patterns(Vec<(Printed, Regex)>);

/// A value that cannot be read.
#[derive(Debug)]
pub enum OutputError {
    Pattern { value: Printed, pattern: String, why: String },
    NotFound { value: Printed, pattern: String },
    NotANumber { value: Printed, text: String },
    NoUnit { value: Printed, text: String },
}

impl Patterns {
    /// Compiles the expressions.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if one is not valid, or has not exactly one group.
    pub fn new(patterns: &BTreeMap<Printed, String>) -> Result<Self, OutputError> {
        let compiled = patterns.iter().map(|(value, pattern)| {
            let why = |why: String| OutputError::Pattern { value: *value, pattern: pattern.clone(), why };
            let regex = Regex::new(pattern).map_err(|error| why(error.to_string()))?;
            if regex.captures_len() != 2 {
                return Err(why("it has no group in parentheses, or several".to_owned()));
            }
            Ok((*value, regex))
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// The values in the output; times in nanoseconds.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a value is missing, is no number, or lacks its unit.
    pub fn read(&self, output: &str) -> Result<BTreeMap<Printed, u64>, OutputError> {
        self.0.iter().map(|(value, regex)| Ok((*value, read(*value, regex, output)?))).collect()
    }
}

fn read(value: Printed, regex: &Regex, output: &str) -> Result<u64, OutputError> {
    let found = regex.captures(output).and_then(|captures| captures.get(1));
    let text =
        found.ok_or_else(|| OutputError::NotFound { value, pattern: regex.as_str().to_owned() })?.as_str().trim();
    let not_a_number = || OutputError::NotANumber { value, text: text.to_owned() };
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if value.time().is_none() {
        return text.parse().map_err(|_| not_a_number());
    }
    let (digits, ns) = match regex.capture_names().flatten().next() {
        Some(unit) => (text, nanoseconds_of(unit)),
        None => {
            let digits = text.trim_end_matches(|letter: char| letter.is_alphabetic());
            (digits, nanoseconds_of(&text[digits.len()..]))
        }
    };
    let ns = ns.ok_or_else(|| OutputError::NoUnit { value, text: text.to_owned() })?;
    Ok((number(digits).ok_or_else(not_a_number)? * ns).round() as u64)
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |value: &Printed| serde_json::to_value(value).ok().and_then(|name| Some(name.as_str()?.to_owned()));
        let name = |value: &Printed| format!("`client_output.{}`", name(value).unwrap_or_default());
        match self {
            Self::Pattern { value, pattern, why } => write!(f, "{} is `{pattern}`: {why}", name(value)),
            Self::NotFound { value, pattern } => write!(f, "{}: the program printed no `{pattern}`", name(value)),
            Self::NotANumber { value, text } => write!(f, "{}: `{text}` is no number", name(value)),
            Self::NoUnit { value, text } => write!(
                f,
                "{}: `{text}` has no unit. Let the pattern find the unit too, or name the group by it: `(?<ms>...)`",
                name(value)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read_one(value: Printed, pattern: &str, output: &str) -> Result<u64, String> {
        let patterns = [(value, pattern.to_owned())].into_iter().collect();
        let read = Patterns::new(&patterns).and_then(|patterns| patterns.read(output));
        read.map(|read| read[&value]).map_err(|error| error.to_string())
    }

    #[test]
    fn times_have_the_unit_that_the_program_prints_or_the_group_names() {
        let median = |pattern, output| read_one(Printed::ResponseMedian, pattern, output);
        assert_eq!(median(r"50%\s+(\S+)", "  50%  635.91us\n  99%    1.20ms\n"), Ok(635_910));
        assert_eq!(median(r"50%\s+([0-9.]+ \S+)", "50%  1.5 ms"), Ok(1_500_000));
        assert_eq!(median(r#""p50":\s*(?<s>[0-9.e-]+)"#, r#"{"p50": 2.5e-3}"#), Ok(2_500_000));
        assert_eq!(median(r"50% in ([0-9.]+ secs)", "50% in 0.0012 secs"), Ok(1_200_000));
        for (pattern, output, words) in [
            (r"50%\s+(\S+)", "nothing", "printed no"),
            (r"50%\s+(\S+)", "50%  12", "`12` has no unit"),
            (r"50%\s+(\S+)", "50%  fast", "has no unit"),
            (r"50%\s+(\S+)", "50%  -1ms", "is no number"),
            (r"50%\s+\S+", "50%  1ms", "no group in parentheses"),
            (r"(a)(b)", "ab", "or several"),
            (r"(", "", "`client_output.response_median`"),
        ] {
            let error = median(pattern, output).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn counts_are_whole_numbers() {
        assert_eq!(read_one(Printed::Requests, r"(\d+) requests", "1000 requests in 2.5s"), Ok(1000));
        assert!(read_one(Printed::Failed, r"failed: (\S+)", "failed: 1.5").unwrap_err().contains("is no number"));
    }
}
