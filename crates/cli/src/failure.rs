//! Failed commands: the message on standard error and the exit status.

use std::fmt::{self, Display};
use std::process::ExitCode;

use crate::stderr;

/// The reason why a command failed, with its exit status.
#[derive(Debug, Clone)]
pub struct Failure {
    message: String,
    status: u8,
}

/// Result of a command.
pub type Result<T = ()> = std::result::Result<T, Failure>;

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Wrong input: exit status 2.
    pub fn input(message: impl Display) -> Self {
        Self { message: message.to_string(), status: 2 }
    }

    /// Any other failure: exit status 1.
    pub fn failed(message: impl Display) -> Self {
        Self { message: message.to_string(), status: 1 }
    }

    /// The command did its work, and the result is not as required: exit status 3.
    pub fn unmet(message: impl Display) -> Self {
        Self { message: message.to_string(), status: 3 }
    }

    /// The user stopped the command: exit status 130, as shells use it for SIGINT.
    pub fn interrupted(message: impl Display) -> Self {
        Self { message: message.to_string(), status: 130 }
    }

    /// The same failure, with the part of the command in which it happened.
    pub fn within(self, part: &str) -> Self {
        Self { message: format!("{part}: {}", self.message), ..self }
    }

    /// Prints the message and returns the exit status.
    pub fn report(&self) -> ExitCode {
        stderr::write_line(format_args!("wirelab: {}", self.message));
        ExitCode::from(self.status)
    }
}
