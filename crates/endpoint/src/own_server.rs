//! A server that the user brings: any program that listens at a port or a Unix socket, behind the endpoint contract.
//!
//! This process starts the program, waits until the kernel has its port or Unix socket among the listening ones, and
//! ends it at `stop`. It asks the kernel, not the port, so that no connection of wirelab's own precedes the
//! measurement. The program writes to this process's standard error, which wirelab keeps as the log of the trial.

mod place;
mod sockets;

use std::fs;
use std::io::{self, BufReader, Stdout};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use wirelab_contract::endpoint::Description;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::{Command, Configured, Event};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ServerSpec;

use self::place::{Place, SocketFile};
use self::sockets::Carrier;
use crate::contract::{Output, read_spec, read_words};
use crate::own_program::{self, describe, role};
use crate::refusal::{Failure, Refusal};

/// Interval between two looks at the listening ports, for which the kernel has no event.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Interval between two looks at the running program; each costs microseconds of the server's processor time.
const WATCH_EVERY: Duration = Duration::from_millis(200);

/// The first of the ports for programs of the user, and how many of them are tried.
const FIRST_PORT: u16 = 10_000;
const TRIES: u32 = 100;

/// Time between the request to end and the kill.
const END_LIMIT: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// The description of a program of this name. It claims every HTTP version and raw transport: only the user knows.
#[must_use]
pub fn describe_own_server(name: &str) -> Description {
    Description { server: Some(role(Protocol::ALL.to_vec())), ..describe(name) }
}

/// Runs the program as the server of a spec. In its words, `{port}`, `{address}`, `{certificate}` and `{key}` stand for
/// values of the spec, and `{socket}` for the path of a Unix socket, `socket`, at which it must listen; the environment
/// variable `PORT` has the port, too. It must listen within `limit`. Returns the exit status of the contract.
#[must_use]
pub fn run_own_server(words: &[String], limit: Duration, spec_text: &str, socket: PathBuf) -> i32 {
    let mut output = Output(io::stdout());
    let result = serve(words, limit, spec_text, socket, &mut output);
    output.close(result)
}

fn serve(
    words: &[String],
    limit: Duration,
    spec_text: &str,
    socket: PathBuf,
    output: &mut Output<Stdout>,
) -> Result<(), Refusal> {
    let spec: ServerSpec = read_spec(spec_text)?;
    if spec.counts {
        return Err(Refusal::unsupported("`counts` is set, and a program of the user does not count its requests"));
    }
    let port = match spec.port {
        0 => free_port(spec.address, spec.protocol)?,
        port => port,
    };
    let has = |placeholder| words.iter().any(|word| word.contains(placeholder));
    let place = if has(SOCKET) {
        Place::Socket(SocketFile::new(socket)?)
    } else {
        let carrier = if spec.protocol.uses_udp() { Carrier::Udp } else { Carrier::Tcp };
        Place::Port { carrier, at: SocketAddr::new(spec.address, port), is_told: has(PORT) }
    };
    let words: Vec<_> = words.iter().map(|word| filled(word, &spec, port, &place)).collect();
    let shown = words.join(" ");
    let mut program = Program::start(&words, port)?;
    let inbox = commands();
    program.until_listening(&shown, &place, limit, &inbox)?;
    output.say(&Event::Ready {
        port: Some(port),
        socket: place.socket().map(Path::to_owned),
        configured: Configured::new(),
    })?;
    loop {
        match inbox.recv_timeout(WATCH_EVERY) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(status) = program.ended()? {
            return Err(Refusal::failed(format!("`{shown}` ended during the trial with {status}")));
        }
    }
    program.end();
    output.say(&Event::Done {
        requests: None,
        errors: Default::default(),
        configured: Configured::new(),
        transport: None,
    })
}

/// The placeholder of the port.
const PORT: &str = "{port}";

/// The placeholder of the path of a Unix socket, at which a program listens that has it in its words.
const SOCKET: &str = "{socket}";

/// A word of the command line with the values of the spec.
fn filled(word: &str, spec: &ServerSpec, port: u16, place: &Place) -> String {
    let tls = spec.tls.as_ref();
    let path = |path: Option<&PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
    word.replace(PORT, &port.to_string())
        .replace(SOCKET, &place.socket().map(|path| path.display().to_string()).unwrap_or_default())
        .replace("{address}", &spec.address.to_string())
        .replace("{certificate}", &path(tls.map(|tls| &tls.certificate)))
        .replace("{key}", &path(tls.map(|tls| &tls.key)))
}

/// A port without a listener, for TCP or UDP. It is below the range from which the kernel gives ports (ip(7)), so that
/// no other program gets it before the program of the user listens.
fn free_port(address: IpAddr, protocol: Protocol) -> Result<u16, Refusal> {
    let bind = |port: u16| {
        if protocol.uses_udp() {
            UdpSocket::bind((address, port)).and_then(|socket| socket.local_addr())
        } else {
            TcpListener::bind((address, port)).and_then(|socket| socket.local_addr())
        }
    };
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(FIRST_PORT);
    let count = end.saturating_sub(FIRST_PORT);
    let tried = (0..TRIES).filter(|_| count > 0).find_map(|_| bind(FIRST_PORT + random()? % count).ok());
    tried
        .map_or_else(|| bind(0), Ok)
        .map(|found| found.port())
        .map_err(|error| Refusal::failed(format!("finding a free port at {address}: {error}")))
}

fn random() -> Option<u16> {
    let mut bytes = [0; 2];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(u16::from_ne_bytes(bytes))
}

/// A channel that gets each command; the end of standard input is `stop`.
fn commands() -> Receiver<Command> {
    let (sender, inbox) = channel();
    read_words(BufReader::new(io::stdin()), move |command, _| sender.send(command).is_ok());
    inbox
}

/// The started program. Drop kills it.
struct Program(Child);

impl Program {
    fn start(words: &[String], port: u16) -> Result<Self, Refusal> {
        let output = io::stderr().as_fd().try_clone_to_owned();
        let output = output.map_err(|error| Refusal::failed(format!("sharing standard error: {error}")))?;
        own_program::start(words, |command| {
            command.env("PORT", port.to_string()).stdin(Stdio::null()).stdout(Stdio::from(output))
        })
        .map(Self)
    }

    fn until_listening(
        &mut self,
        shown: &str,
        place: &Place,
        limit: Duration,
        inbox: &Receiver<Command>,
    ) -> Result<(), Refusal> {
        let deadline = Instant::now() + limit;
        while !place.is_listening() {
            if let Some(status) = self.ended()? {
                return Err(Refusal::failed(place.after_its_end(shown, status)));
            }
            if Instant::now() >= deadline {
                return Err(Refusal::failed(place.missing(shown, limit)));
            }
            match inbox.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(_) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(Refusal::failed("the server got `stop` before it listened"));
                }
            }
        }
        Ok(())
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, Refusal> {
        self.0.try_wait().map_err(|error| {
            Refusal::Failed(Failure::new(ErrorKind::Other, format!("waiting for the program of the user: {error}")))
        })
    }

    /// Asks the program to end, and kills it if it does not.
    fn end(&mut self) {
        let program = Pid::from_child(&self.0);
        if kill_process(program, Signal::TERM).is_ok()
            && let Ok(pidfd) = pidfd_open(program, PidfdFlags::empty())
        {
            // Becomes readable at the end of the program. After an error, drop kills the program at once.
            let _ = retry_on_intr(|| poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&END_LIMIT)));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
