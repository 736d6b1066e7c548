//! Starts an endpoint as a child, so that the kernel's resource usage of it can be reported with its end.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::ExitCode;

use rustix::process::Pid;
use wirelab_model::endpoint::{Endpoint, UNSUPPORTED_STATUS};
use wirelab_model::event::Event;
use wirelab_model::usage::Usage;

use super::{memory, root, say};
use wirelab_lab::endpoints;
use wirelab_lab::{ExitStatus, LabError, process, reap};

/// Separates the endpoint's standard output from its resource usage. JSON never contains this byte.
pub(crate) const ACCOUNT: u8 = 0x1e;

/// The identity of an endpoint that was not installed.
pub(crate) const NOT_INSTALLED: &str = "none";

/// Runs an endpoint in a role with the agent's streams, and ends with its exit status; after a signal, with 128 plus
/// its number. An endpoint that the host lacks is unsupported.
pub(crate) fn start((name, identity, remedy): (&str, &str, &str), role: &str, spec: &str) -> io::Result<ExitCode> {
    let endpoint = match endpoint(name, identity, remedy) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            let message = error.to_string();
            say(&serde_json::to_string(&Event::Unsupported { message })?)?;
            return Ok(ExitCode::from(UNSUPPORTED_STATUS as u8));
        }
    };
    let before = memory::kills();
    let spec = root::spec(role, spec)?;
    let arguments = [OsStr::new(role), OsStr::new("--spec"), spec.as_os_str()];
    let command = process::program(&endpoint, &arguments);
    let child = command.ok_or_else(|| io::Error::other(format!("the command of `{name}` is empty")))?.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (status, usage) = reap(pid.ok_or_else(|| io::Error::other("a child without a number"))?)?;
    if status == ExitStatus::Signal(libc::SIGKILL) && memory::kills() > before {
        // The killed child cannot report this itself.
        writeln!(io::stderr(), "the kernel killed it, because its container used more memory than it may")?;
    }
    io::stdout().write_all(&account(&usage))?;
    Ok(ExitCode::from(match status {
        ExitStatus::Code(code) => code as u8,
        ExitStatus::Signal(signal) => 128 + signal as u8,
        ExitStatus::Killed | ExitStatus::Lost => unreachable!("the kernel says nothing else of a process"),
    }))
}

/// The endpoint of this name, if its installation has this identity.
fn endpoint(name: &str, identity: &str, remedy: &str) -> Result<Endpoint, LabError> {
    let program = env::current_exe()
        .map_err(|error| LabError::process("the agent does not know its own program").because(error))?;
    if let Some(own) = endpoints::own(&program).into_iter().find(|own| own.name == name) {
        return Ok(own);
    }
    let endpoint = endpoints::find(&program, name, None).map_err(|error| {
        LabError::endpoint(format!("the agent's host does not have `{name}`; {remedy}")).because(error)
    })?;
    if endpoint.installation.as_deref().unwrap_or(NOT_INSTALLED) == identity {
        Ok(endpoint)
    } else {
        let what = format!("the agent's host has another version of `{name}` than the machine that started the run");
        Err(LabError::endpoint(what).remedy(remedy))
    }
}

fn account(usage: &Usage) -> Vec<u8> {
    let mut bytes = vec![ACCOUNT];
    bytes.extend(serde_json::to_vec(usage).expect("an account always serialises"));
    bytes
}

/// Splits the standard output of `agent start` into the endpoint's output and its resource usage.
#[derive(Debug, Default)]
pub(crate) struct Output {
    account: Option<Vec<u8>>,
}

impl Output {
    /// The part of these bytes that the endpoint wrote.
    pub(crate) fn said<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if let Some(account) = &mut self.account {
            account.extend(bytes);
            return &[];
        }
        let Some(end) = bytes.iter().position(|byte| *byte == ACCOUNT) else { return bytes };
        self.account = Some(bytes[end + 1..].to_vec());
        &bytes[..end]
    }

    /// The resource usage, after all output was read; `None` if the agent was lost before the endpoint ended.
    pub(crate) fn usage(&self) -> Option<Usage> {
        serde_json::from_slice(self.account.as_ref()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_endpoint_is_there_and_of_another_one_the_remedy_is_named() {
        for (name, arguments) in [("builtin", &["endpoint"][..]), ("engine", &["endpoint", "--engine"])] {
            assert_eq!(endpoint(name, NOT_INSTALLED, "install it").unwrap().command[1..], *arguments);
        }
        let why = endpoint("no-such-endpoint", NOT_INSTALLED, "install it").unwrap_err().to_string();
        assert!(why.contains("does not have `no-such-endpoint`; install it: "), "{why}");
    }

    #[test]
    fn the_account_is_separated_from_events_wherever_reads_end() {
        let usage = Usage { user_ns: 7, peak_memory: 4096, ..Usage::default() };
        let all = [&b"{\"event\":\"warm\"}\n"[..], &account(&usage)].concat();
        for cut in 0..=all.len() {
            let mut output = Output::default();
            let said = [output.said(&all[..cut]), output.said(&all[cut..])].concat();
            assert_eq!(said, b"{\"event\":\"warm\"}\n");
            assert_eq!(output.usage(), Some(usage));
        }
        let mut cut_off = Output::default();
        assert_eq!(cut_off.said(b"{}"), b"{}");
        assert_eq!(cut_off.usage(), None);
    }
}
