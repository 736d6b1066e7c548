//! The endpoint contract on standard input and output: events as JSON lines out, commands in.

use std::io::{self, BufRead, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use tokio::runtime::Builder;
use wirelab_contract::CONTRACT_VERSION;
use wirelab_contract::endpoint::UNSUPPORTED_STATUS;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::{Command, Event};
use wirelab_contract::exposition::Exposed;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientSpec, ServerSpec};

use crate::client::transport::Failure;
use crate::client::{Control, Driver, Ended, Message};
use crate::exporter::Exporter;
use crate::file_limit::raise_file_limit;
use crate::refusal::Refusal;
use crate::server::{Bound, Site, Stop};
use crate::stderr::write_line;

/// Time limit for a stopping server to close its connections.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

/// A future that binds a server.
pub(crate) type Binding = Pin<Box<dyn Future<Output = Result<Bound, Refusal>>>>;

/// Runs the server that `bind` binds. Returns the exit status after its stop.
pub(crate) fn serve(
    spec_text: &str,
    bind: impl FnOnce(ServerSpec, Arc<Site>, Stop) -> Binding,
    input: impl BufRead + Send + 'static,
    output: impl Write,
) -> i32 {
    let mut output = Output(output);
    let result = unwinding(|| try_serve(spec_text, bind, input, &mut output));
    output.close(result)
}

/// Runs a client with the driver of its protocol. Returns the exit status after the results are written.
pub(crate) fn request(
    spec_text: &str,
    driver: impl FnOnce(Protocol) -> Result<Driver, Refusal>,
    input: impl BufRead + Send + 'static,
    output: impl Write,
) -> i32 {
    let mut output = Output(output);
    let result = unwinding(|| try_request(spec_text, driver, input, &mut output));
    output.close(result)
}

fn try_serve(
    spec_text: &str,
    bind: impl FnOnce(ServerSpec, Arc<Site>, Stop) -> Binding,
    input: impl BufRead + Send + 'static,
    output: &mut Output<impl Write>,
) -> Result<(), Refusal> {
    let spec: ServerSpec = read_spec(spec_text)?;
    if spec.contract != CONTRACT_VERSION {
        return Err(Refusal::unsupported(format!(
            "contract {} is unknown; this endpoint implements {CONTRACT_VERSION}",
            spec.contract
        )));
    }
    if spec.tls.is_some() && !spec.protocol.is_secure() {
        return Err(Refusal::unsupported(format!("`tls` is set, and the protocol `{}` has no TLS", spec.protocol)));
    }
    if spec.qlog_dir.is_some() && !spec.protocol.uses_quic() {
        let why = format!("`qlog_dir` is set; it concerns QUIC, and the protocol is `{}`", spec.protocol);
        return Err(Refusal::unsupported(why));
    }
    let ages = (spec.protocol.is_http() || spec.protocol.is_grpc()) && !spec.protocol.uses_udp();
    if spec.max_connection_age_ns.is_some() && !ages {
        let why = format!("`max_connection_age_ns` is set; connections of `{}` have no maximum age", spec.protocol);
        return Err(Refusal::unsupported(why));
    }
    if spec.page.is_some() && !spec.protocol.is_http() {
        return Err(Refusal::unsupported(format!("`page` is set; `{}` has no pages", spec.protocol)));
    }
    if spec.answers.is_some() && !spec.protocol.is_http() {
        return Err(Refusal::unsupported(format!("`answers` is set; `{}` has no pages", spec.protocol)));
    }
    if spec.threads == Some(0) {
        return Err(Refusal::unsupported("0 threads"));
    }
    raise_file_limit();
    let mut builder = Builder::new_multi_thread();
    builder.enable_all();
    if let Some(threads) = spec.threads {
        builder.worker_threads(threads.into());
    }
    let runtime =
        builder.build().map_err(|error| Refusal::failed(format!("starting the server's runtime: {error}")))?;
    let (site, counts, exposition) = (Arc::new(Site::new(&spec)?), spec.counts, spec.exposition.clone());
    let (ask, stop) = Stop::channel();
    let bound = runtime.block_on(bind(spec, Arc::clone(&site), stop))?;
    let mut configured = bound.configured;
    // A library with its own threads has already reported their number.
    configured.entry("threads".to_owned()).or_insert_with(|| runtime.metrics().num_workers().into());
    let running = runtime.spawn(bound.run);
    let (of_site, accounts) = (Arc::clone(&site), bound.accounts.clone());
    let exposed = move || Exposed {
        requests: of_site.answered(),
        connections: accounts.as_ref().map(|accounts| accounts.open() as u64),
        ..Exposed::default()
    };
    let exporter = exposition.map(|exposition| Exporter::start(&exposition, exposed)).transpose()?;
    output.say(&Event::Ready { port: Some(bound.port), socket: None, configured: configured.clone() })?;
    let (words, inbox) = mpsc::channel();
    read_words(input, move |word, _| words.send(word).is_ok());
    // The end of the channel means the end of the input.
    let mut word = inbox.recv().unwrap_or(Command::Stop);
    while counts && word == Command::Count {
        output.say(&Event::Counted { requests: site.answered() })?;
        word = inbox.recv().unwrap_or(Command::Stop);
    }
    // Read before open connections are closed.
    let transport = bound.accounts.map(|accounts| Box::new(accounts.totals().report()));
    let _ = ask.send(true);
    let stopped = runtime.block_on(async { tokio::time::timeout(CLOSE_LIMIT, running).await });
    runtime.shutdown_background();
    if word != Command::Stop {
        let known = if counts { "`count` and `stop`" } else { "`stop`" };
        return Err(Refusal::failed(format!("a server got the command `{}`; it accepts only {known}", word.word())));
    }
    if let Ok(Err(error)) = stopped {
        return Err(Refusal::failed(format!("the server ended by itself: {error}")));
    }
    drop(exporter);
    output.say(&Event::Done { requests: Some(site.answered()), errors: Default::default(), configured, transport })
}

fn try_request(
    spec_text: &str,
    driver: impl FnOnce(Protocol) -> Result<Driver, Refusal>,
    input: impl BufRead + Send + 'static,
    output: &mut Output<impl Write>,
) -> Result<(), Refusal> {
    let spec: ClientSpec = read_spec(spec_text)?;
    raise_file_limit();
    let path = spec.results.clone();
    let writing = |error: io::Error| Refusal::failed(format!("writing the results to {}: {error}", path.display()));
    // Tested now, because after the measurement it would be too late.
    std::fs::File::create(&path).map_err(writing)?;
    let (driver, exposition) = (driver(spec.protocol)?, spec.exposition.clone());
    let mut control = Control::start(spec, driver, None)?;
    let exporter = exposition.map(|exposition| Exporter::start(&exposition, control.counts())).transpose()?;
    output.say(&Event::Ready { port: None, socket: None, configured: control.configured().clone() })?;
    let sender = control.sender();
    read_words(input, move |word, at| sender.send(Message::Word(word, at)).is_ok());
    control.word(Command::Go)?;
    control.open()?;
    output.say(&Event::Warm { until_steady: control.warmed_up() })?;
    let zero = control.word(Command::Go)?;
    let (window_ns, _) = control.measure(zero)?;
    output.say(&Event::End { window_ns })?;
    control.word(Command::Finish)?;
    let outcome = control.finish()?;
    if let Some(Failure { kind, message }) = &outcome.first_failure {
        write_line(format_args!("the first request that failed: {kind}: {message}"));
    }
    if outcome.sent_again > 0 {
        let count = outcome.sent_again;
        write_line(format_args!("{count} requests were sent again after the server turned them away"));
    }
    outcome.results.write(&path).map_err(writing)?;
    let (requests, errors) = outcome.results.counts();
    let (configured, transport) = (outcome.configured, outcome.transport.map(Box::new));
    // Dropped before `done`, so that the last counters exist when `run` reads the event.
    drop(exporter);
    output.say(&Event::Done { requests: Some(requests), errors, configured, transport })
}

/// Turns a panic into an `error` event; its location is on standard error.
fn unwinding(role: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(role))
        .unwrap_or_else(|_| Err(Failure::new(ErrorKind::Other, "the endpoint panicked; its log says where").into()))
}

impl From<Ended> for Refusal {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Failed(failure) => Self::Failed(failure),
            Ended::Stopped => Self::failed("the client got `stop` before it had finished"),
        }
    }
}

/// Parses a spec. Unknown fields and values are unsupported; any other malformed input is an error.
pub(crate) fn read_spec<T: DeserializeOwned>(text: &str) -> Result<T, Refusal> {
    serde_json::from_str(text).map_err(|error| {
        let message = format!("reading the spec: {error}");
        if wirelab_contract::is_unknown(&error) { Refusal::Unsupported(message) } else { Refusal::failed(message) }
    })
}

/// Reads commands in a separate thread, each with its time of arrival. Unknown input and the end of input mean `stop`.
pub(crate) fn read_words(
    input: impl BufRead + Send + 'static,
    mut hand_on: impl FnMut(Command, Instant) -> bool + Send + 'static,
) {
    std::thread::spawn(move || {
        for line in input.lines() {
            let at = Instant::now();
            let word = match line.as_deref().map(str::trim) {
                Ok("go") => Command::Go,
                Ok("finish") => Command::Finish,
                Ok("count") => Command::Count,
                Ok("") => continue,
                Ok(_) | Err(_) => Command::Stop,
            };
            if !hand_on(word, at) || word == Command::Stop {
                return;
            }
        }
        hand_on(Command::Stop, Instant::now());
    });
}

/// Where events go.
pub(crate) struct Output<W>(pub W);

impl<W: Write> Output<W> {
    pub(crate) fn say(&mut self, event: &Event) -> Result<(), Refusal> {
        let mut say = || {
            serde_json::to_writer(&mut self.0, event)?;
            self.0.write_all(b"\n")?;
            self.0.flush()
        };
        say().map_err(|error: io::Error| Refusal::failed(format!("writing an event to standard output: {error}")))
    }

    /// Prints the final event and returns the exit status.
    pub(crate) fn close(&mut self, result: Result<(), Refusal>) -> i32 {
        let (event, status) = match result {
            Ok(()) => return 0,
            Err(Refusal::Unsupported(message)) => (Event::Unsupported { message }, UNSUPPORTED_STATUS),
            Err(Refusal::Failed(Failure { kind, message })) => (Event::Error { kind, message }, 1),
        };
        if let Err(error) = self.say(&event) {
            write_line(format_args!("{error} ({event:?})"));
        }
        status
    }
}
