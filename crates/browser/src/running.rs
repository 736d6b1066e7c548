//! A browser that runs: its process, its folder, and the connection that it is driven over. Dropping it ends the process with
//! all its descendants, and removes the folder.

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

/// How long a browser may take to start. Fifteen times what it took on two busy processors.
const STARTING: Duration = Duration::from_secs(60);

/// How long a browser may take for a command that waits for no network.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The longest path of a folder in which Chromium can have the socket by which its processes find each other: its own part of
/// the path has 56 bytes, and the whole at most 107 (unix(7)).
const LONGEST: usize = 51;

/// Between two looks at the file that says where a browser listens.
const LOOK: Duration = Duration::from_millis(10);

/// How long a browser whose connection broke may take to be seen as ended.
const ENDING: Duration = Duration::from_secs(2);

/// Where a browser listens, by the file in which it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listens {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The path of its WebSocket.
    pub path: String,
}

/// A browser that runs. The order of the fields is that in which they end.
#[derive(Debug)]
pub struct Running {
    name: &'static str,
    pub wire: Wire,
    process: LocalProcess,
    folder: Folder,
}

impl Running {
    /// Starts a program that writes to `file` where it listens; `read` understands that file once it is complete.
    pub fn start(
        name: &'static str,
        mut program: Command,
        folder: Folder,
        (file, read): (&Path, fn(&str) -> Option<Listens>),
        guard: &Arc<Guard>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Trouble> {
        // Whatever it leaves behind goes with the folder, and nothing of the user's own profile comes in.
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
        let wire = wire.map_err(|error| trouble(name, &mut process, "connecting to it", error))?;
        Ok(Self { name, wire, process, folder })
    }

    /// Sends a command and waits for its result.
    pub fn call(&mut self, what: &str, command: Value) -> Result<Value, Trouble> {
        let answer = self.wire.call(command, Instant::now() + PATIENCE);
        answer.map_err(|error| self.trouble(what, error))
    }

    /// Tells the browser to end, and waits until it has.
    pub fn end(&mut self, command: Value) -> Result<(), Trouble> {
        let sent = self.wire.post(command);
        sent.map_err(|error| self.trouble("telling it to end", error))?;
        match self.process.ends_by(Instant::now() + PATIENCE) {
            Some(_) => Ok(()),
            None => Err(client(format!("{} did not end within {} s", self.name, PATIENCE.as_secs()))),
        }
    }

    /// The folder that goes with it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it means that there is no message, while `what` was attempted.
    pub fn trouble(&mut self, what: &str, error: WireError) -> Trouble {
        trouble(self.name, &mut self.process, what, error)
    }
}

/// Waits until the browser says where it listens.
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

fn trouble(name: &str, process: &mut LocalProcess, what: &str, error: WireError) -> Trouble {
    let reason = match error {
        WireError::Stopped => return Trouble::Stopped,
        WireError::Deadline => format!("{name} did not answer within {} s, {what}", PATIENCE.as_secs()),
        WireError::Refused(words) => format!("{name} refused, {what}: {words}"),
        WireError::Lost(words) => match process.ends_by(Instant::now() + ENDING) {
            Some(exit) => format!("{name} ended, {what}: {}", ending(&exit)),
            None => format!("the connection to {name} was lost, {what}: {words}"),
        },
    };
    client(reason)
}

/// The browser is the client of a load.
fn client(reason: String) -> Trouble {
    Trouble::Failed { blame: Blame::Client, reason }
}

/// How a process ended, and the last line that it wrote.
pub fn ending(exit: &Exit) -> String {
    let how = match exit.status {
        ExitStatus::Code(code) => format!("exit status {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
        ExitStatus::Killed => "killed".to_owned(),
        ExitStatus::Lost => "nobody knows how".to_owned(),
    };
    match exit.last_words.lines().rfind(|line| !line.trim().is_empty()) {
        Some(words) => format!("{how}; its last words: {}", words.trim()),
        None => how,
    }
}
