//! Failures to make what the suite needs.

use std::error::Error;
use std::fmt;

/// The suite could not be set up; the endpoint is not at fault.
#[derive(Debug)]
pub struct SetUpError {
    attempt: String,
    source: Box<dyn Error + Send + Sync>,
}

impl SetUpError {
    pub(crate) fn new(attempt: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { attempt: attempt.into(), source: source.into() }
    }
}

impl fmt::Display for SetUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.attempt, self.source)
    }
}

impl Error for SetUpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
