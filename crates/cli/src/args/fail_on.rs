//! Conditions under which a command ends with exit status 3.

use std::fmt;
use std::str::FromStr;

use wirelab_model::requirement::{NotAStatement, Statement};

/// A condition of `--fail-on`.
#[derive(Debug, Clone, PartialEq)]
pub enum FailOn {
    /// The opposite of a requirement.
    Violated(Statement),
    /// A requirement without a verdict.
    Inconclusive,
    /// A claim that does not hold.
    Claims,
}

impl FromStr for FailOn {
    type Err = NotACondition;

    fn from_str(text: &str) -> Result<Self, NotACondition> {
        match text.trim() {
            "inconclusive" => Ok(Self::Inconclusive),
            "claims" => Ok(Self::Claims),
            condition => Statement::from_failure(condition).map(Self::Violated).map_err(NotACondition),
        }
    }
}

/// A text that is no condition.
#[derive(Debug)]
pub struct NotACondition(NotAStatement);

impl fmt::Display for NotACondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; also `inconclusive` and `claims`", self.0)
    }
}

impl std::error::Error for NotACondition {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_words_or_bounds() {
        assert_eq!("inconclusive".parse::<FailOn>().unwrap(), FailOn::Inconclusive);
        assert_eq!("claims".parse::<FailOn>().unwrap(), FailOn::Claims);
        assert!(matches!("p99>50ms".parse::<FailOn>(), Ok(FailOn::Violated(_))));
        let error = "inconclusve".parse::<FailOn>().unwrap_err().to_string();
        assert!(error.contains("such as `p99 > 50 ms`") && error.contains("`inconclusive`"), "{error}");
    }
}
