//! Starts an endpoint as a child, so that the kernel's account of it comes home with its end.

use std::env;
use std::io::{self, Write};
use std::process::{Command, ExitCode};

use rustix::process::Pid;
use wirelab_model::usage::Usage;

use super::memory;
use wirelab_lab::ExitStatus;
use wirelab_lab::reap;

/// Where what the endpoint says on standard output ends and the account of it begins. In JSON no such byte can be.
pub(crate) const ACCOUNT: u8 = 0x1e;

/// Runs this program once more with these words and these streams. Ends as it does; by a signal, with 128 more than its number, as
/// the API server would say it of a process of its own.
pub(crate) fn start(words: &[&str]) -> io::Result<ExitCode> {
    let before = memory::kills();
    let child = Command::new(env::current_exe()?).args(words).spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (status, usage) = reap(pid.ok_or_else(|| io::Error::other("a child without a number"))?)?;
    if status == ExitStatus::Signal(libc::SIGKILL) && memory::kills() > before {
        // The child can no longer say so itself.
        writeln!(io::stderr(), "the kernel killed it, because its pod used more memory than it may")?;
    }
    io::stdout().write_all(&account(&usage))?;
    Ok(ExitCode::from(match status {
        ExitStatus::Code(code) => code as u8,
        ExitStatus::Signal(signal) => 128 + signal as u8,
        ExitStatus::Killed | ExitStatus::Lost => unreachable!("the kernel says nothing else of a process"),
    }))
}

fn account(usage: &Usage) -> Vec<u8> {
    let mut bytes = vec![ACCOUNT];
    bytes.extend(serde_json::to_vec(usage).expect("an account always serialises"));
    bytes
}

/// The standard output of an agent that starts an endpoint, told apart.
#[derive(Debug, Default)]
pub(crate) struct Output {
    account: Option<Vec<u8>>,
}

impl Output {
    /// What of these bytes the endpoint said.
    pub(crate) fn said<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if let Some(account) = &mut self.account {
            account.extend(bytes);
            return &[];
        }
        let Some(end) = bytes.iter().position(|byte| *byte == ACCOUNT) else { return bytes };
        self.account = Some(bytes[end + 1..].to_vec());
        &bytes[..end]
    }

    /// The account, once all was read. Absent: the agent was lost before the endpoint ended.
    pub(crate) fn usage(&self) -> Option<Usage> {
        serde_json::from_slice(self.account.as_ref()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_told_from_what_was_said_wherever_reads_end() {
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
