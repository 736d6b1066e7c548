//! The client over the streams of a local shell, which plays the agent.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command as Program, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use wirelab_lab::{Beside, EventError, ExitStatus, LabError, Launch, Process, Role};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Command, Configured, Event};

use crate::{Call, Ended, Loss, Piece, Remote, RemoteProcess, Sent, State, Stream};

/// A host whose agent is this shell script. Its arguments are the words of the command.
struct Shell {
    script: &'static str,
    state: State,
}

impl Remote for Shell {
    fn name(&self) -> &str {
        "the shell"
    }

    fn run(&self, words: &[&str]) -> Result<Box<dyn Stream>, LabError> {
        let mut program = Program::new("/bin/sh");
        program.args(["-c", self.script, "agent"]).args(words);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program.spawn().map_err(|error| LabError::process("cannot start the shell").because(error))?;
        let (sender, pieces) = channel();
        let mut stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Ok(Box::new(ShellStream { child, stdin, pieces }))
    }

    fn state(&self, _: Duration) -> State {
        self.state.clone()
    }

    fn doubt(&self) {}

    fn remedy(&self, endpoint: &str) -> String {
        format!("install {endpoint}")
    }
}

struct ShellStream {
    child: Child,
    stdin: Option<ChildStdin>,
    pieces: Receiver<Vec<u8>>,
}

impl Stream for ShellStream {
    fn read(&mut self, deadline: Instant) -> Piece {
        match self.pieces.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(bytes) => Piece::Bytes(bytes),
            Err(RecvTimeoutError::Timeout) => Piece::Deadline,
            Err(RecvTimeoutError::Disconnected) => {
                let code = self.child.wait().unwrap().code();
                Piece::Ended(code.map_or_else(|| Ended::Lost("by a signal".to_owned()), Ended::Code))
            }
        }
    }

    fn write(&self, bytes: Vec<u8>) -> bool {
        self.stdin.as_ref().is_some_and(|mut stdin| stdin.write_all(&bytes).is_ok())
    }

    fn close(&mut self) {
        self.stdin = None;
    }

    fn stderr(&mut self) -> Option<Box<dyn Read + Send>> {
        self.child.stderr.take().map(|stderr| Box::new(stderr) as Box<dyn Read + Send>)
    }
}

fn shell(script: &'static str) -> Shell {
    Shell { script, state: State::Works("the shell still runs".to_owned()) }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[test]
fn a_call_that_says_too_much_fails_and_its_complaints_are_cut() {
    let flood = Call::start(&shell("yes"), &["look"], Vec::new()).unwrap().at_most(1000).answer(soon());
    assert_eq!(flood.unwrap_err().to_string(), "`look` in the shell said more than 1000 bytes");
    let long = Call::start(&shell("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 3"), &["look"], Vec::new());
    let complaint = long.unwrap().answer(soon()).unwrap_err().to_string();
    assert!(complaint.len() < 100_000 && complaint.contains("exit status 3: xxx"), "{}", complaint.len());
}

#[test]
fn a_call_returns_what_the_agent_said_or_why_it_failed() {
    let echo = Call::start(&shell("cat; echo $*"), &["look"], b"input ".to_vec()).unwrap().answer(soon());
    assert_eq!(echo.unwrap(), Some(b"input look\n".to_vec()));
    let failed = Call::start(&shell("echo broken >&2; exit 3"), &["look"], Vec::new()).unwrap().answer(soon());
    assert_eq!(failed.unwrap_err().to_string(), "`look` in the shell failed with exit status 3: broken");
}

/// An agent that takes files and starts a sidecar, which ends with this status.
const AGENT: &str = r#"
    case $1 in
        take) cat > /dev/null ;;
        start)
            echo '{"event":"ready","port":7}'
            read word; echo '{"event":"reached"}'
            read word; echo '{"event":"done"}'
            echo last words >&2
            exit 3 ;;
    esac"#;

/// Runs a sidecar to its end on a host in this state; returns its exit status and last words.
fn exit_on(state: State) -> (ExitStatus, String) {
    let folder = tempfile::tempdir().unwrap();
    let (spec, upstreams, log) =
        (folder.path().join("spec"), folder.path().join("upstreams"), folder.path().join("log"));
    std::fs::write(&upstreams, "[]").unwrap();
    let text = format!(
        r#"{{ "contract": 1, "protocol": "h2c", "upstream_protocol": "h2c", "address": "127.0.0.1", "port": 0, "upstreams": {upstreams:?} }}"#
    );
    std::fs::write(&spec, text).unwrap();
    let endpoint = Endpoint {
        name: "proxy".to_owned(),
        command: Vec::new(),
        environment: Default::default(),
        folder: None,
        installation: None,
    };
    let role = Role::Sidecar(Beside::Clients);
    let launch = Launch { role, number: 0, endpoint: &endpoint, spec: &spec, log: &log };
    let facts: Configured = [("node".to_owned(), "a".into())].into_iter().collect();
    let remote = Arc::new(Shell { script: AGENT, state });
    let mut sidecar = RemoteProcess::start(remote, &mut Sent::default(), facts.clone(), &launch).unwrap();
    assert_eq!(sidecar.next_event(soon()), Ok(Event::Ready { port: Some(7), socket: None, configured: facts }));
    sidecar.send(Command::Reach).unwrap();
    assert_eq!(sidecar.next_event(soon()), Ok(Event::Reached));
    sidecar.send(Command::Stop).unwrap();
    assert!(matches!(sidecar.next_event(soon()), Ok(Event::Done { .. })));
    let Err(EventError::Ended(exit)) = sidecar.next_event(soon()) else { panic!("it has not ended") };
    (exit.status, exit.last_words)
}

#[test]
fn an_endpoint_is_controlled_over_any_stream() {
    let works = State::Works("the shell still runs".to_owned());
    assert_eq!(exit_on(works), (ExitStatus::Code(3), "last words".to_owned()));
}

#[test]
fn a_lost_host_explains_why_an_endpoint_cannot_start() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, log) = (folder.path().join("spec"), folder.path().join("log"));
    std::fs::write(&spec, r#"{ "contract": 1, "protocol": "grpcc", "address": "127.0.0.1", "port": 0, "server_name": "a", "members": "/dev/null" }"#).unwrap();
    let endpoint = Endpoint {
        name: "plane".to_owned(),
        command: Vec::new(),
        environment: Default::default(),
        folder: None,
        installation: None,
    };
    let launch = Launch { role: Role::ControlPlane, number: 0, endpoint: &endpoint, spec: &spec, log: &log };
    let state = State::Lost(Loss { what: "the power failed".to_owned(), is_memory: false });
    let remote = Arc::new(Shell { script: "exit 4", state });
    let error = RemoteProcess::start(remote, &mut Sent::default(), Configured::new(), &launch).err().unwrap();
    assert!(error.to_string().starts_with("the shell: the power failed: "), "{error}");
}
