//! Errors of labs: the attempt, the cause and the remedy.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use wirelab_model::reason::{LabFailure, LabFault, Reason};

const MORE_PROCESSES: &str = "raise the limit of processes: `ulimit -u`, or `pids.max` of the control group";

/// An action that a lab failed to do: its kind, the attempt, the cause and the remedy.
#[derive(Debug, Clone)]
pub struct LabError {
    failure: Box<LabFailure>,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl LabError {
    fn new(fault: LabFault, attempt: impl Into<String>) -> Self {
        let failure = LabFailure { fault, attempt: attempt.into(), cause: None, remedy: None };
        Self { failure: Box::new(failure), cause: None }
    }

    /// This lab cannot do what the job asks for.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::new(LabFault::Unsupported, what)
    }

    /// The system or the cluster refused it, for lack of rights or resources.
    pub fn refused(attempt: impl Into<String>) -> Self {
        Self::new(LabFault::Refused, attempt)
    }

    /// The network could not be set up, changed or measured.
    pub fn network(attempt: impl Into<String>) -> Self {
        Self::new(LabFault::Network, attempt)
    }

    /// A process could not be started or reached.
    pub fn process(attempt: impl Into<String>) -> Self {
        Self::new(LabFault::Process, attempt)
    }

    /// The system refused a thread for this purpose.
    pub fn thread(purpose: &str, error: io::Error) -> Self {
        Self::refused(format!("cannot start a thread {purpose}")).because(error).remedy(MORE_PROCESSES)
    }

    /// A process could not be started. It is the system's refusal if it lacks open files, processes or memory, whatever
    /// program it was.
    pub fn start(attempt: impl Into<String>, error: io::Error) -> Self {
        let remedy = match error.raw_os_error() {
            Some(libc::EMFILE) => "raise the limit of open files: `ulimit -n 1024`",
            Some(libc::ENFILE) => "the whole system has no open file left: raise `fs.file-max`, or end other programs",
            Some(libc::EAGAIN) => MORE_PROCESSES,
            Some(libc::ENOMEM) => "end other programs, or raise the memory limit of the control group",
            _ => return Self::process(attempt).because(error),
        };
        Self::refused(attempt).because(error).remedy(remedy)
    }

    /// A file could not be read or written.
    pub fn file(attempt: impl Into<String>) -> Self {
        Self::new(LabFault::File, attempt)
    }

    /// The cluster could not be used.
    pub fn cluster(attempt: impl Into<String>) -> Self {
        Self::new(LabFault::Cluster, attempt)
    }

    /// An endpoint is missing, cannot be used, or broke the contract.
    pub fn endpoint(attempt: impl Into<String>) -> Self {
        Self::new(LabFault::Endpoint, attempt)
    }

    /// The user stopped it.
    pub fn interrupted(attempt: impl Into<String>) -> Self {
        Self::new(LabFault::Interrupted, attempt)
    }

    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let cause: Arc<dyn Error + Send + Sync> = Arc::from(cause.into());
        self.failure.cause = Some(cause.to_string());
        self.cause = Some(cause);
        self
    }

    /// Adds the remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.failure.remedy = Some(remedy.into());
        self
    }

    /// The kind of failure.
    #[must_use]
    pub const fn fault(&self) -> LabFault {
        self.failure.fault
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl Error for LabError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl PartialEq for LabError {
    fn eq(&self, other: &Self) -> bool {
        self.failure == other.failure
    }
}

impl From<LabFailure> for LabError {
    fn from(failure: LabFailure) -> Self {
        Self { failure: Box::new(failure), cause: None }
    }
}

impl From<LabError> for LabFailure {
    fn from(error: LabError) -> Self {
        *error.failure
    }
}

impl From<LabError> for Reason {
    fn from(error: LabError) -> Self {
        Self::Lab(error.failure)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_text_has_attempt_cause_and_remedy_and_the_cause_stays_an_error() {
        let error =
            LabError::file("cannot create the log").because(io::Error::other("full")).remedy("is the disk full?");
        assert_eq!(error.to_string(), "cannot create the log: full; is the disk full?");
        assert!(error.source().unwrap().downcast_ref::<io::Error>().is_some());
        assert_eq!(LabError::cluster("no pods").to_string(), "no pods");
    }
}
