//! A simulated process that keeps the contract.

use std::collections::VecDeque;
use std::time::Instant;

use indexmap::IndexMap;
use wirelab_model::endpoint::UNSUPPORTED_STATUS;
use wirelab_model::event::{Command, Configured, Event};
use wirelab_model::outcome::ErrorKind;
use wirelab_model::spec::{ClientSpec, Recording};

use super::histograms::histograms;
use super::script::{Misbehaviour, Moment};
use super::simulation::Run;
use crate::{EventError, Exit, ExitStatus, LabError, Process, Role};

/// Port that the fake server reports. No process listens on it.
const PORT: u16 = 40_000;

/// Requests that a fake server reports as answered between two queries, times its number, which counts from 1.
const ANSWERED: u64 = 10;

/// A process that follows the script.
#[derive(Debug)]
pub struct FakeProcess {
    role: Role,
    number: u32,
    /// Number of queries for answered requests so far.
    queries: u64,
    run: Option<(ClientSpec, Run)>,
    misbehaviour: Option<(Moment, Misbehaviour)>,
    output: VecDeque<Result<Event, EventError>>,
    go_count: u8,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Hanging,
    Ended(ExitStatus),
}

impl FakeProcess {
    pub(super) fn new(
        role: Role,
        number: u32,
        run: Option<(ClientSpec, Run)>,
        misbehaviour: Option<(Moment, Misbehaviour)>,
    ) -> Self {
        let output = VecDeque::new();
        let mut process =
            Self { role, number, queries: 0, run, misbehaviour, output, go_count: 0, state: State::Running };
        let port = (role != Role::Client).then_some(PORT);
        process.emit(Moment::Start, Event::Ready { port, socket: None, configured: Configured::new() });
        if role != Role::Client && !process.misbehaves(Moment::Check) {
            process.misbehaves(Moment::Window);
        }
        process
    }

    /// Emits `event`, unless the script has a misbehaviour for this moment.
    fn emit(&mut self, moment: Moment, event: Event) {
        if !self.misbehaves(moment) {
            self.output.push_back(Ok(event));
        }
    }

    fn misbehaves(&mut self, moment: Moment) -> bool {
        if self.state != State::Running {
            return true;
        }
        let Some((_, misbehaviour)) = self.misbehaviour.take_if(|(when, _)| *when == moment) else { return false };
        match misbehaviour {
            Misbehaviour::Exits(status) => self.state = State::Ended(ExitStatus::Code(status)),
            Misbehaviour::Dies(signal) => self.state = State::Ended(ExitStatus::Signal(signal)),
            Misbehaviour::Hangs => self.state = State::Hanging,
            Misbehaviour::Nonsense(text) => self.output.push_back(Err(EventError::Nonsense(text))),
            Misbehaviour::Fails(kind, message) => {
                self.output.push_back(Ok(Event::Error { kind, message }));
                self.state = State::Ended(ExitStatus::Code(1));
            }
            Misbehaviour::Unsupported(message) => {
                self.output.push_back(Ok(Event::Unsupported { message }));
                self.state = State::Ended(ExitStatus::Code(UNSUPPORTED_STATUS));
            }
        }
        true
    }

    fn finish(&mut self) {
        if self.misbehaves(Moment::Finish) {
            return;
        }
        let done = match &self.run {
            None => {
                Event::Done { requests: None, errors: IndexMap::new(), configured: Configured::new(), transport: None }
            }
            Some((spec, run)) => match write(spec, run) {
                Ok(()) => done(spec, run),
                Err(error) => {
                    let message = error.to_string();
                    self.output.push_back(Ok(Event::Error { kind: ErrorKind::Other, message }));
                    self.state = State::Ended(ExitStatus::Code(1));
                    return;
                }
            },
        };
        self.output.push_back(Ok(done));
        self.state = State::Ended(ExitStatus::Code(0));
    }

    const fn exit(status: ExitStatus) -> Exit {
        Exit { status, usage: None, last_words: String::new() }
    }
}

fn done(spec: &ClientSpec, run: &Run) -> Event {
    let mut errors = IndexMap::new();
    for kind in run.samples.iter().filter_map(|sample| sample.error) {
        *errors.entry(kind).or_default() += 1;
    }
    let failed: u64 = errors.values().sum();
    let alpn = spec.protocol.alpn().map(|alpn| ("alpn".to_owned(), alpn.into()));
    Event::Done {
        requests: Some(run.samples.len() as u64 - failed),
        errors,
        configured: alpn.into_iter().collect(),
        transport: None,
    }
}

fn write(spec: &ClientSpec, run: &Run) -> Result<(), LabError> {
    let mut text = Vec::new();
    let written = match spec.recording {
        Recording::Samples => run.samples.iter().try_for_each(|sample| {
            serde_json::to_writer(&mut text, sample)?;
            text.push(b'\n');
            Ok(())
        }),
        Recording::Histograms => serde_json::to_writer(&mut text, &histograms(&run.samples)),
        Recording::Totals => return Err(LabError::unsupported("the fake lab starts no program as the client")),
        Recording::Loads => return Err(LabError::unsupported("the fake lab has no browsers, so it loads no pages")),
    };
    written
        .map_err(std::io::Error::from)
        .and_then(|()| std::fs::write(&spec.results, text))
        .map_err(|error| LabError::file(format!("cannot write the results {}", spec.results.display())).because(error))
}

impl Process for FakeProcess {
    fn next_event(&mut self, _deadline: Instant) -> Result<Event, EventError> {
        match (self.output.pop_front(), self.state) {
            (Some(output), _) => output,
            (None, State::Ended(status)) => Err(EventError::Ended(Self::exit(status))),
            (None, State::Running | State::Hanging) => Err(EventError::Deadline),
        }
    }

    fn send(&mut self, command: Command) -> Result<(), LabError> {
        match (self.state, command) {
            (State::Ended(_), _) => {
                let (word, role) = (command.word(), self.role.word());
                return Err(LabError::process(format!("cannot send `{word}` to the fake {role}: it has ended")));
            }
            (State::Hanging, _) => {}
            (State::Running, Command::Go) => {
                self.go_count += 1;
                if self.go_count == 1 {
                    self.emit(Moment::Check, Event::Warm { until_steady: None });
                } else {
                    let window_ns = self.run.as_ref().map_or(0, |(_, run)| run.window_ns);
                    self.emit(Moment::Window, Event::End { window_ns });
                }
            }
            (State::Running, Command::Finish) => self.finish(),
            (State::Running, Command::Count) => {
                self.queries += 1;
                let requests = self.queries * ANSWERED * (u64::from(self.number) + 1);
                self.output.push_back(Ok(Event::Counted { requests }));
            }
            (State::Running, Command::Reach) => self.emit(Moment::Reach, Event::Reached),
            (State::Running, Command::Stop) if self.role != Role::Client => self.finish(),
            (State::Running, Command::Stop) => self.state = State::Ended(ExitStatus::Code(0)),
        }
        Ok(())
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn end(&mut self, _deadline: Instant) -> Exit {
        let status = match self.state {
            State::Ended(status) => status,
            State::Hanging => ExitStatus::Killed,
            // The end of its standard input means `stop`.
            State::Running => ExitStatus::Code(0),
        };
        self.state = State::Ended(status);
        Self::exit(status)
    }
}
