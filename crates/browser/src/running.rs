//! A running browser: its process, its folder, and the connection to it. Dropping it ends the process with all its
//! descendants, and removes the folder.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use wirelab_lab::{Exit, ExitStatus, Folder, Guard, LocalProcess};
use wirelab_model::outcome::Blame;

use crate::session::Trouble;
use crate::wire::{Wire, WireError};

/// Time-out of a browser's start, and of each command until it is ready: thirty times the time on two busy processors.
/// Beside other browsers that start, it may take more than half a minute.
const STARTING: Duration = Duration::from_secs(120);

/// Time-out of a command that does not wait for the network.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest path of a temporary folder for Chromium, in bytes. The socket that connects its processes adds 56 bytes
/// to the path, and the limit is 107 (unix(7)).
const LONGEST: usize = 51;

/// Interval of reads of the file with the browser's address.
const LOOK: Duration = Duration::from_millis(10);

/// How long to wait for the end of a browser whose connection broke.
const ENDING: Duration = Duration::from_secs(2);

/// The address of a browser's debugging interface, from the file that the browser writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listens {
    pub host: String,
    pub port: u16,
    /// The path of the WebSocket.
    pub path: String,
}

/// A running browser. Its fields are dropped in this order.
#[derive(Debug)]
pub struct Running {
    name: &'static str,
    pub wire: Wire,
    process: LocalProcess,
    folder: Folder,
    /// Time-out of a command.
    timeout: Duration,
}

impl Running {
    /// Starts a browser that writes its address to `file`; `read` parses the file, and returns `None` while it is
    /// incomplete.
    pub fn start(
        name: &'static str,
        mut program: Command,
        folder: Folder,
        (file, read): (&Path, fn(&str) -> Option<Listens>),
        guard: &Arc<Guard>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Trouble> {
        // All its files go into the folder, and it does not read the user's own profile.
        program.env("HOME", folder.path()).current_dir(folder.path());
        if folder.path().as_os_str().len() <= LONGEST {
            program.env("TMPDIR", folder.path());
        }
        for variable in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            program.env_remove(variable);
        }
        let mut process = LocalProcess::program(name, program, guard)?;
        let listens = ready(name, &mut process, file, read, stop)?;
        let Listens { host, port, path } = listens;
        let wire = Wire::connect(&host, port, &path, Arc::clone(stop));
        let wire = wire.map_err(|error| trouble(name, &mut process, STARTING, "connecting to it", error))?;
        Ok(Self { name, wire, process, folder, timeout: STARTING })
    }

    /// Ends the start: from now on, the browser must answer commands sooner.
    pub fn is_ready(&mut self) {
        self.timeout = TIMEOUT;
    }

    /// Sends a command and waits for its result.
    pub fn call(&mut self, what: &str, command: Value) -> Result<Value, Trouble> {
        self.ask(command).map_err(|error| self.trouble(what, error))
    }

    /// As [`Running::call`], for a command that the browser may refuse.
    pub fn ask(&mut self, command: Value) -> Result<Value, WireError> {
        self.wire.call(command, Instant::now() + self.timeout)
    }

    /// Sends the command that ends the browser, and waits for its end.
    pub fn end(&mut self, command: Value) -> Result<(), Trouble> {
        let sent = self.wire.post(command);
        sent.map_err(|error| self.trouble("telling it to end", error))?;
        match self.process.ends_by(Instant::now() + TIMEOUT) {
            Some(_) => Ok(()),
            None => Err(client(format!("{} did not end within {} s", self.name, TIMEOUT.as_secs()))),
        }
    }

    /// The browser's temporary folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Explains an error on the connection; `what` is the attempted action.
    pub fn trouble(&mut self, what: &str, error: WireError) -> Trouble {
        trouble(self.name, &mut self.process, self.timeout, what, error)
    }
}

/// Waits until the browser has written its address.
fn ready(
    name: &str,
    process: &mut LocalProcess,
    file: &Path,
    read: fn(&str) -> Option<Listens>,
    stop: &AtomicBool,
) -> Result<Listens, Trouble> {
    let deadline = Instant::now() + STARTING;
    loop {
        if let Some(listens) = std::fs::read_to_string(file).ok().and_then(|text| read(&text)) {
            return Ok(listens);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Trouble::Stopped);
        }
        if let Some(exit) = process.ends_by(Instant::now() + LOOK) {
            return Err(client(format!("{name} ended before it was ready: {}", ending(&exit))));
        }
        if Instant::now() > deadline {
            return Err(client(format!("{name} was not ready after {} s", STARTING.as_secs())));
        }
    }
}

fn trouble(name: &str, process: &mut LocalProcess, timeout: Duration, what: &str, error: WireError) -> Trouble {
    let reason = match error {
        WireError::Stopped => return Trouble::Stopped,
        WireError::Deadline => format!("{name} did not answer within {} s, {what}", timeout.as_secs()),
        WireError::Refused(words) => format!("{name} refused, {what}: {words}"),
        WireError::Lost(words) => match process.ends_by(Instant::now() + ENDING) {
            Some(exit) => format!("{name} ended, {what}: {}", ending(&exit)),
            None => format!("the connection to {name} was lost, {what}: {words}"),
        },
    };
    client(reason)
}

/// Blames the client, which is the browser.
fn client(reason: String) -> Trouble {
    Trouble::Failed { blame: Blame::Client, reason }
}

/// How a process ended, with the last line of its standard error.
pub fn ending(exit: &Exit) -> String {
    let how = match exit.status {
        ExitStatus::Code(code) => format!("exit status {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
        ExitStatus::Killed => "killed".to_owned(),
        ExitStatus::Lost => "unknown end".to_owned(),
    };
    match exit.last_words.lines().rfind(|line| !line.trim().is_empty()) {
        Some(words) => format!("{how}; its last words: {}", words.trim()),
        None => how,
    }
}
