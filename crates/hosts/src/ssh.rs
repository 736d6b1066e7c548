//! The system's `ssh`, so that its configuration, agent, jump hosts and known hosts apply. All commands on a host share
//! one connection (`ControlMaster`, ssh_config(5)).

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread;
use std::time::Instant;

use wirelab_agent::{Ended, Piece, Stream};
use wirelab_lab::LabError;

/// The exit status of `ssh` itself if the connection failed (ssh(1)).
const CONNECTION_FAILED: i32 = 255;

/// Chunks of standard output that wait for the reader; beyond these the command on the host blocks.
const WAITING: usize = 64;

/// Options of every connection. Without a terminal, ssh must not ask for passwords. A connection without a sign of life
/// for 15 s is lost. The shared connection ends 5 s after its last command, also if wirelab was killed.
const OPTIONS: [&str; 6] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ControlMaster=auto",
    "ControlPersist=5",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
];

/// A destination, and the socket of its shared connection.
#[derive(Debug, Clone)]
pub(crate) struct Ssh {
    pub(crate) destination: String,
    socket: Option<PathBuf>,
}

impl Ssh {
    /// Commands share a connection with this socket. Its path may have at most 107 bytes (unix(7)), and ssh appends 17
    /// while it creates one.
    pub(crate) fn shared(destination: &str, socket: PathBuf) -> Self {
        Self { destination: destination.to_owned(), socket: Some(socket) }
    }

    /// Each command has a connection of its own.
    pub(crate) fn single(destination: &str) -> Self {
        Self { destination: destination.to_owned(), socket: None }
    }

    /// Starts a command on the host. Its words are quoted for the login shell there.
    ///
    /// # Errors
    /// If `ssh` cannot be started here.
    pub(crate) fn start(&self, words: &[&str]) -> Result<RemoteCommand, LabError> {
        let quoted = shlex::try_join(words.iter().copied()).map_err(|error| {
            LabError::process(format!("cannot send the command to {}", self.destination)).because(error)
        })?;
        let child =
            self.command().arg(quoted).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.map_err(|error| {
            LabError::process("cannot start `ssh`").because(error).remedy("install the client of OpenSSH")
        })?;
        Ok(RemoteCommand::new(child))
    }

    /// Whether the shared connection exists.
    pub(crate) fn is_connected(&self) -> bool {
        self.control("check")
    }

    /// Ends the shared connection at once.
    pub(crate) fn close(&self) {
        // Without a shared connection, nothing is left to end.
        self.control("exit");
    }

    /// Sends a word to the process that has the shared connection; returns false if none has it.
    fn control(&self, word: &str) -> bool {
        let mut command = self.command();
        command.args(["-O", word]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    fn command(&self) -> Command {
        let mut command = Command::new("ssh");
        command.arg("-T").args(OPTIONS.iter().flat_map(|option| ["-o", option]));
        let control = self.socket.as_ref().map_or("none".into(), |socket| socket.display().to_string());
        command.arg("-o").arg(format!("ControlPath={control}")).arg(&self.destination);
        command
    }

    /// The name to which the configuration of `ssh` translates the destination.
    ///
    /// # Errors
    /// If `ssh` cannot be started, or its configuration has a mistake.
    pub(crate) fn host_name(&self) -> io::Result<String> {
        let output = Command::new("ssh").arg("-G").arg(&self.destination).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let name = text.lines().find_map(|line| line.strip_prefix("hostname "));
        name.map(str::to_owned)
            .ok_or_else(|| io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

/// Standard input of a command, which ends when this is dropped. What is sent waits in a queue, because a host that
/// does not read must not hold up its user.
pub(crate) type Input = Sender<Vec<u8>>;

/// A command that runs on a host.
pub(crate) struct RemoteCommand {
    input: Option<Input>,
    stderr: Option<Box<dyn Read + Send>>,
    output: Receiver<Output>,
    end: Option<Ended>,
}

enum Output {
    Bytes(Vec<u8>),
    Ended(Ended),
}

impl RemoteCommand {
    fn new(mut child: Child) -> Self {
        let stderr = child.stderr.take().map(|stderr| Box::new(stderr) as Box<dyn Read + Send>);
        let mut stdin = child.stdin.take().expect("standard input is piped");
        let mut stdout = child.stdout.take().expect("standard output is piped");
        let (input, inputs) = channel::<Vec<u8>>();
        thread::spawn(move || {
            // A failed write means that the command has ended, which its reader notices.
            while inputs.recv().is_ok_and(|bytes| stdin.write_all(&bytes).is_ok()) {}
        });
        let (sender, output) = sync_channel(WAITING);
        // The thread also reaps the child, so that a dropped session leaves no zombie.
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            loop {
                match stdout.read(&mut buffer) {
                    // Without a receiver, output is discarded, so that the command can end.
                    Ok(count @ 1..) => drop(sender.send(Output::Bytes(buffer[..count].to_vec()))),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                }
            }
            let _ = sender.send(Output::Ended(ended(&mut child)));
        });
        Self { input: Some(input), stderr, output, end: None }
    }

    /// Standard input, which then ends with the returned value.
    pub(crate) fn take_input(&mut self) -> Option<Input> {
        self.input.take()
    }
}

fn ended(child: &mut Child) -> Ended {
    match child.wait().map(|status| status.code()) {
        Ok(Some(CONNECTION_FAILED)) => Ended::Lost("the connection of ssh ended".to_owned()),
        Ok(Some(code)) => Ended::Code(code),
        Ok(None) => Ended::Lost("ssh was killed".to_owned()),
        Err(error) => Ended::Lost(format!("ssh cannot be waited for: {error}")),
    }
}

impl Stream for RemoteCommand {
    fn read(&mut self, deadline: Instant) -> Piece {
        if let Some(end) = &self.end {
            return Piece::Ended(end.clone());
        }
        match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Output::Bytes(bytes)) => Piece::Bytes(bytes),
            Ok(Output::Ended(ended)) => Piece::Ended(self.end.insert(ended).clone()),
            Err(RecvTimeoutError::Timeout) => Piece::Deadline,
            Err(RecvTimeoutError::Disconnected) => Piece::Ended(Ended::Lost("the reader of ssh ended".to_owned())),
        }
    }

    fn write(&self, bytes: Vec<u8>) -> bool {
        self.input.as_ref().is_some_and(|input| input.send(bytes).is_ok())
    }

    fn close(&mut self) {
        self.input = None;
    }

    fn stderr(&mut self) -> Option<Box<dyn Read + Send>> {
        self.stderr.take()
    }
}
