//! Why a request fails, and why an endpoint does not begin: it cannot do what the spec asks for, or something went wrong.

use std::fmt;

use wirelab_model::outcome::ErrorKind;

/// Why a connection or a request failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The class.
    pub kind: ErrorKind,
    /// What was attempted and what happened.
    pub message: String,
}

impl Failure {
    /// A failure of this class.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// What keeps an endpoint from doing its spec.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// The spec asks for something that this endpoint or this machine cannot do: exit status 127.
    Unsupported(String),
    /// Something went wrong: exit status 1.
    Failed(Failure),
}

impl Refusal {
    /// The spec asks for something that cannot be done here.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// Something of no particular kind went wrong.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(Failure { kind: ErrorKind::Other, message: message.into() })
    }

    /// The same once it is too late to refuse: what could be done at first cannot any more.
    #[must_use]
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Failed(failure) => failure,
            Self::Unsupported(message) => Failure::new(ErrorKind::Other, message),
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(message) => write!(f, "unsupported: {message}"),
            Self::Failed(failure) => f.write_str(&failure.message),
        }
    }
}
