//! How a command fails: what is printed on standard error, and the exit status.

use std::fmt::Display;
use std::process::ExitCode;

/// A command that could not do what it was asked for.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: u8,
}

/// What every command returns.
pub type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    /// The user's input is wrong: exit status 2.
    pub fn input(message: impl Display) -> Self {
        Self { message: message.to_string(), status: 2 }
    }

    /// Something did not work: exit status 1.
    pub fn failed(message: impl Display) -> Self {
        Self { message: message.to_string(), status: 1 }
    }

    /// The user stopped it: exit status 130, as a shell has it for SIGINT.
    pub fn interrupted(message: impl Display) -> Self {
        Self { message: message.to_string(), status: 130 }
    }

    /// Prints the message and gives the exit status.
    pub fn report(&self) -> ExitCode {
        eprintln!("wirelab: {}", self.message);
        ExitCode::from(self.status)
    }
}
