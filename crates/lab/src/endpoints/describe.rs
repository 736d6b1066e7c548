//! Runs `describe` of an endpoint, which prints its capabilities.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::{Description, Endpoint};

use crate::endpoints::MANIFEST;
use crate::guard::Guard;
use crate::lines::shortened;
use crate::process::LocalProcess;
use crate::{EventError, Exit, ExitStatus, LabError, Process};

/// Time limit for `describe`, including the start of an interpreter.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum size of a description, in bytes.
const LONGEST_DESCRIPTION: usize = 64 * 1024;

/// The description of an endpoint from `<endpoint> describe`, checked for contract version and name.
///
/// # Errors
/// If the endpoint cannot be started, does not answer in time, or prints no valid description.
pub fn describe(endpoint: &Endpoint) -> Result<Description, LabError> {
    let name = &endpoint.name;
    let wrong =
        |why: String| LabError::endpoint(format!("the endpoint `{name}` does not describe itself")).because(why);
    let deadline = Instant::now() + DESCRIBE_TIMEOUT;
    let (answer, exit) = output(endpoint, &[OsStr::new("describe")], LONGEST_DESCRIPTION, deadline)?;
    if exit.status != ExitStatus::Code(0) {
        return Err(wrong(ended(&exit)));
    }
    let description: Description = serde_json::from_slice(&answer)
        .map_err(|error| wrong(format!("`describe` printed {}: {error}", shortened(&answer))))?;
    if description.contract != CONTRACT_VERSION {
        return Err(wrong(format!(
            "it has contract version {}, but this wirelab has version {CONTRACT_VERSION}; update the older one",
            description.contract
        )));
    }
    let (own, version) = name.split_once('@').map_or((&**name, None), |(own, version)| (own, Some(version)));
    if let Some(version) = version.filter(|version| description.version != *version) {
        return Err(wrong(format!(
            "its version is `{}` instead of {version}; `version_steps` in {MANIFEST} must install that version",
            description.version
        )));
    }
    if description.name != own {
        return Err(wrong(format!("its `name` is `{}`; `describe` and {MANIFEST} must agree", description.name)));
    }
    Ok(description)
}

/// Runs an endpoint until it exits, and returns its standard output.
pub(crate) fn output(
    endpoint: &Endpoint,
    arguments: &[&OsStr],
    limit: usize,
    deadline: Instant,
) -> Result<(Vec<u8>, Exit), LabError> {
    let mut process = LocalProcess::spawn(endpoint, arguments, None, Guard::shared(), None)?;
    let failure = match process.read_all(limit, deadline) {
        Ok(answer) => return Ok((answer, process.end(deadline))),
        Err(EventError::Nonsense(why)) => format!("it printed {why}"),
        Err(EventError::Deadline | EventError::Ended(_)) => "it did not end in time".to_owned(),
    };
    let words = process.end(Instant::now()).last_words;
    let command = arguments.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned());
    Err(LabError::endpoint(format!(
        "`{command}` of the endpoint `{}` failed: {failure}{}",
        endpoint.name,
        quoted(&words)
    )))
}

/// The exit of a process, as the end of a sentence.
pub(crate) fn ended(exit: &Exit) -> String {
    let how = match exit.status {
        ExitStatus::Code(code) => format!("it exited with status {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal} ended it"),
        ExitStatus::Killed => "it did not end in time".to_owned(),
        ExitStatus::Lost => "it was lost".to_owned(),
    };
    format!("{how}{}", quoted(&exit.last_words))
}

fn quoted(last_words: &str) -> String {
    let line = last_words.lines().next_back().unwrap_or_default();
    if line.is_empty() { String::new() } else { format!("; its last words: {}", shortened(line.as_bytes())) }
}
