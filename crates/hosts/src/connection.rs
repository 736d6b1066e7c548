//! A host during a run: wirelab's program in a folder of the run, and an agent that removes both when the run ends or
//! is lost.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wirelab_agent::{Call, Complaints, Ended, Held, Piece, SIGN_OF_LIFE, SUBCOMMAND, Stream};
use wirelab_lab::LabError;

use crate::ssh::{Input, RemoteCommand, Ssh};

/// Time-out of each step of a connection but the copy.
const STEP: Duration = Duration::from_secs(30);

/// Time-out of the copy of wirelab's program, some 50 MB.
const COPY: Duration = Duration::from_secs(600);

/// Time-out of the removal of the folder.
const REMOVAL: Duration = Duration::from_secs(20);

/// The longest answer of a step in bytes. The login shell of a host may print a few pages before it.
const ANSWER: usize = 64 * 1024;

/// The longest part of an answer in a message, in characters.
const SHOWN: usize = 200;

/// Begins the line with the facts, because the login shell of a host may print lines of its own.
const FACTS: &str = "wirelab-host";

/// Makes the folder, and prints kernel, architecture and folder.
const ARRIVE: &str = r#"umask 077 && folder=$(mktemp -d "${TMPDIR:-/tmp}/wirelab-XXXXXXXX") && printf 'wirelab-host %s %s\n' "$(uname -sm)" "$folder""#;

/// Writes the program.
const WRITE: &str = r#"cat > "$0/wirelab" && chmod 700 "$0/wirelab""#;

/// A connected host.
pub(crate) struct Connection {
    /// Name for messages, such as `the host b.example`.
    pub(crate) name: String,
    pub(crate) ssh: Ssh,
    /// The folder of the run on the host.
    pub(crate) folder: String,
    pub(crate) held: Held,
    loss: Arc<Loss>,
    /// Signs of life go on until this is dropped.
    life: Option<Sender<()>>,
    listener: Option<JoinHandle<()>>,
}

/// The running agent that holds the folder.
struct Holder {
    command: RemoteCommand,
    complaints: Complaints,
    input: Input,
}

/// Why the connection was lost, once it is.
#[derive(Default)]
struct Loss {
    why: Mutex<Option<String>>,
    news: Condvar,
}

impl Connection {
    /// Connects, copies the program and starts the agent that holds the folder.
    ///
    /// # Errors
    /// If a step fails, with the host, the words of ssh, and the remedy.
    pub(crate) fn open(name: &str, ssh: Ssh, program: &Path) -> Result<Self, LabError> {
        let name = format!("the host {name}");
        let folder = arrive(&name, &ssh)?;
        match Self::hold(&name, &ssh, &folder, program) {
            Ok((held, holder)) => Ok(Self::new(name, ssh, folder, held, holder)),
            Err(error) => {
                // The agent that would remove the folder does not run.
                let _ = step(&name, &ssh, &["rm", "-rf", &folder], Vec::new(), STEP);
                Err(error)
            }
        }
    }

    fn hold(name: &str, ssh: &Ssh, folder: &str, program: &Path) -> Result<(Held, Holder), LabError> {
        let bytes = fs::read(program).map_err(|error| {
            LabError::file(format!("cannot read wirelab's program {}", program.display())).because(error)
        })?;
        let length = bytes.len() as u64;
        step(name, ssh, &["sh", "-c", WRITE, folder], bytes, COPY)?;
        let program = format!("{folder}/wirelab");
        let mut command = ssh.start(&[&program, SUBCOMMAND, "hold", folder])?;
        let mut complaints = Complaints::of(command.stderr());
        let attempt = || LabError::process(format!("cannot start wirelab's agent on {name}"));
        let held = first_line(&mut command, &mut complaints).map_err(|words| {
            attempt().because(words).remedy(
                "the host may lack the C library of this wirelab; a static build needs none (docs/labs.md, hosts)",
            )
        })?;
        let held: Held = serde_json::from_str(&held).map_err(|error| attempt().because(error))?;
        if held.program != length {
            let what = format!("{} of {length} bytes of the program arrived", held.program);
            return Err(attempt().because(what).remedy("is the disk there full?"));
        }
        let input = command.take_input().expect("standard input is taken once");
        Ok((held, Holder { command, complaints, input }))
    }

    fn new(name: String, ssh: Ssh, folder: String, held: Held, holder: Holder) -> Self {
        let Holder { mut command, mut complaints, input } = holder;
        let loss = Arc::new(Loss::default());
        let (life, beats) = channel::<()>();
        thread::spawn(move || {
            // A failure means that the command has ended, which the listener notices.
            while beats.recv_timeout(SIGN_OF_LIFE) == Err(RecvTimeoutError::Timeout)
                && input.send(b".".to_vec()).is_ok()
            {}
        });
        let listener = thread::spawn({
            let loss = Arc::clone(&loss);
            move || {
                let why = listen(&mut command, &mut complaints);
                *loss.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                loss.news.notify_all();
            }
        });
        tracing::info!(host = name, folder, "host connected");
        Self { name, ssh, folder, held, loss, life: Some(life), listener: Some(listener) }
    }

    /// Why the connection was lost; waits for the news until the time-out.
    pub(crate) fn loss(&self, timeout: Duration) -> Option<String> {
        let why = self.loss.why.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.loss.news.wait_timeout_while(why, timeout, |why| why.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.life = None;
        if self.loss(REMOVAL).is_none() {
            tracing::warn!(host = self.name, folder = self.folder, "the folder was not removed in time");
        } else if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        self.ssh.close();
    }
}

/// Reads to the end of a command, and says how it ended.
fn listen(command: &mut RemoteCommand, complaints: &mut Complaints) -> String {
    loop {
        match command.read(Instant::now() + Duration::from_secs(3600)) {
            Piece::Bytes(_) | Piece::Deadline => {}
            Piece::Ended(Ended::Code(code)) => {
                return format!("its agent ended with status {code}{}", last(complaints));
            }
            Piece::Ended(Ended::Lost(why)) => return format!("{why}{}", last(complaints)),
        }
    }
}

/// The words of standard error after a colon.
fn last(complaints: &mut Complaints) -> String {
    let words = complaints.words();
    if words.is_empty() { words } else { format!(": {words}") }
}

/// Makes the run's folder on a host of the right architecture; returns the folder.
fn arrive(name: &str, ssh: &Ssh) -> Result<String, LabError> {
    let output = step(name, ssh, &["sh", "-c", ARRIVE], Vec::new(), STEP)?;
    let facts = output.lines().find_map(|line| line.strip_prefix(FACTS)).unwrap_or_default();
    let [system, architecture, folder] = facts.split_whitespace().collect::<Vec<_>>()[..] else {
        let said: String = output.trim().chars().take(SHOWN).collect();
        return Err(
            LabError::process(format!("{name} did not say where its folder is")).because(format!("it said `{said}`"))
        );
    };
    let own = std::env::consts::ARCH;
    if (system, architecture) == ("Linux", own) {
        return Ok(folder.to_owned());
    }
    let _ = step(name, ssh, &["rm", "-rf", folder], Vec::new(), STEP);
    Err(LabError::unsupported(format!("{name} is {system} {architecture}, and this wirelab is built for Linux {own}"))
        .remedy(format!("use hosts with Linux on {own}, or run a wirelab that is built for {architecture} there")))
}

/// Runs a short command on the host with this input, and returns what it printed.
fn step(name: &str, ssh: &Ssh, words: &[&str], input: Vec<u8>, timeout: Duration) -> Result<String, LabError> {
    let command = ssh.start(words)?;
    let mut call = Call::over(Box::new(command), format!("`{}` on {name}", words[0]), input).at_most(ANSWER);
    let answer = call.answer(Instant::now() + timeout).map_err(|error| {
        LabError::process(format!("cannot use {name} by `ssh {}`", ssh.destination)).because(error).remedy(format!(
            "`ssh {}` must work without questions: the host key must be known, and a key must be accepted (`ssh-add`)",
            ssh.destination
        ))
    })?;
    let answer = answer.ok_or_else(|| LabError::process(format!("{name} did not answer within {timeout:?}")))?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The first line of a command; or how it ended, with its standard error.
fn first_line(command: &mut RemoteCommand, complaints: &mut Complaints) -> io::Result<String> {
    let mut said = Vec::new();
    let deadline = Instant::now() + STEP;
    loop {
        if let Some(end) = said.iter().position(|byte| *byte == b'\n') {
            return Ok(String::from_utf8_lossy(&said[..end]).into_owned());
        }
        match command.read(deadline) {
            Piece::Bytes(bytes) if said.len() < ANSWER => said.extend(bytes),
            Piece::Bytes(_) => return Err(io::Error::other(format!("its first line has more than {ANSWER} bytes"))),
            Piece::Deadline => return Err(io::Error::other(format!("it said nothing within {STEP:?}"))),
            Piece::Ended(ended) => {
                let words = last(complaints);
                return Err(io::Error::other(format!("it {}{words}", ended.phrase("ended"))));
            }
        }
    }
}
