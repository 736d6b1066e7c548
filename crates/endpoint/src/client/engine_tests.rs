//! The engine against a scripted transport, on a clock that stands still while any task can run.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;
use tokio::time::{Instant as TokioInstant, sleep, sleep_until};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::sample::{Handshake, Sample};
use wirelab_contract::spec::{Arrivals, ClientSpec, ConnectionPolicy, Extent, Pause, Schedule, Timeouts};

use crate::client::engine::Engine;
use crate::client::record::Results;
use crate::client::schedule::Share;
use crate::client::thread_state::Clock;
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::refusal::Refusal;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const ALONE: Share = Share { index: 0, of: 1 };

/// The fate of a request, by its number on the server and the number of its connection.
type Script = fn(request: u32, connection: u32) -> Fate;

#[derive(Clone, Copy)]
enum Fate {
    /// An answer after so many milliseconds.
    Answer(u64),
    /// The connection breaks after so many milliseconds.
    Break(u64),
}

thread_local! {
    static SERVER: RefCell<Rc<Server>> = RefCell::default();
}

/// The server, with its observations.
struct Server {
    script: Cell<Script>,
    connect_ms: Cell<u64>,
    connections: Cell<u32>,
    requests: Cell<u32>,
    cancelled: Cell<u32>,
    in_flight: Cell<u32>,
    most_in_flight: Cell<u32>,
}

impl Default for Server {
    fn default() -> Self {
        let zero = Cell::default;
        Self {
            script: Cell::new(|_, _| Fate::Answer(1)),
            connect_ms: Cell::new(0),
            connections: zero(),
            requests: zero(),
            cancelled: zero(),
            in_flight: zero(),
            most_in_flight: zero(),
        }
    }
}

struct FakeTransport {
    server: Rc<Server>,
    multiplexes: bool,
}

#[derive(Clone)]
struct FakeConnection {
    server: Rc<Server>,
    number: u32,
    broken: Rc<Cell<bool>>,
    multiplexes: bool,
}

impl Transport for FakeTransport {
    type Connection = FakeConnection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        Ok(Self { server: SERVER.with_borrow(Rc::clone), multiplexes: spec.protocol.multiplexes() })
    }

    async fn connect(&self) -> Result<Opened<FakeConnection>, Failure> {
        let Self { server, multiplexes } = self;
        sleep(Duration::from_millis(server.connect_ms.get())).await;
        let number = server.connections.replace(server.connections.get() + 1);
        let (server, multiplexes) = (Rc::clone(server), *multiplexes);
        let connection = FakeConnection { server, number, broken: Rc::default(), multiplexes };
        Ok(Opened { connection, connected: Some(Paused::now()), ready: None })
    }

    fn configured(&self) -> Configured {
        Configured::new()
    }
}

/// Counts a request as in flight, or as cancelled if dropped before its answer.
struct InFlight(Rc<Server>, bool);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
        self.0.cancelled.set(self.0.cancelled.get() + u32::from(!self.1));
    }
}

impl Connection for FakeConnection {
    async fn request(&mut self, _: usize, _: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let server = Rc::clone(&self.server);
        let number = server.requests.replace(server.requests.get() + 1);
        server.in_flight.set(server.in_flight.get() + 1);
        server.most_in_flight.set(server.most_in_flight.get().max(server.in_flight.get()));
        let mut in_flight = InFlight(Rc::clone(&server), false);
        match server.script.get()(number, self.number) {
            Fate::Answer(ms) => sleep(Duration::from_millis(ms)).await,
            Fate::Break(ms) => {
                sleep(Duration::from_millis(ms)).await;
                self.broken.set(true);
            }
        }
        in_flight.1 = true;
        if self.broken.get() {
            return Err(Failure::new(ErrorKind::Reset, "broken"));
        }
        let now = Paused::now();
        Ok(Answer { first_byte: now, last_byte: now, bytes_in: 7, status: None })
    }

    fn is_open(&self) -> bool {
        !self.broken.get()
    }

    fn another(&self) -> Option<Self> {
        self.multiplexes.then(|| self.clone())
    }

    fn handshake(&self) -> Option<Handshake> {
        None
    }

    async fn close(self) {}
}

#[derive(Default)]
struct Paused;

impl Clock for Paused {
    fn now() -> Instant {
        TokioInstant::now().into_std()
    }

    async fn until(&mut self, at: Instant) {
        sleep_until(at.into()).await;
    }
}

fn spec(protocol: Protocol, connections: ConnectionPolicy, schedule: Schedule, extent: Extent) -> ClientSpec {
    ClientSpec {
        server_name: "fake".to_owned(),
        connections,
        schedule,
        extent,
        timeouts: Timeouts { connect_ns: 5 * SECOND, request_ns: 10 * SECOND },
        results: "unused".into(),
        ..ClientSpec::plain(protocol, 1)
    }
}

const fn persistent(connections: u32, streams: u32) -> ConnectionPolicy {
    ConnectionPolicy::Persistent { connections, streams }
}

const fn closed(workers: u32) -> Schedule {
    Schedule::Closed { workers, pause: Pause::None }
}

const fn open(rate_per_s: f64) -> Schedule {
    Schedule::Open { rate_per_s, arrivals: Arrivals::Uniform }
}

/// Runs one thread's share of a spec against the server of the test.
fn run(spec: &ClientSpec, share: Share, script: Script) -> (Vec<Sample>, Rc<Server>) {
    run_with(spec, share, |server| server.script.set(script))
}

fn run_with(spec: &ClientSpec, share: Share, prepare: impl FnOnce(&Server)) -> (Vec<Sample>, Rc<Server>) {
    let server = Rc::new(Server::default());
    prepare(&server);
    SERVER.set(Rc::clone(&server));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let samples = LocalSet::new().block_on(&runtime, async {
        let numbers = Arc::new(AtomicU32::new(0));
        let mut engine =
            Engine::<FakeTransport>::build::<Paused>(Arc::new(spec.clone()), share, numbers, Arc::default()).unwrap();
        engine.open::<Paused>().await.unwrap();
        let zero = Paused::now();
        engine.measure::<Paused>(zero).await;
        match engine.finish().await.recorder.finish(zero) {
            Results::Samples(samples) => samples,
            Results::Histograms(_) => panic!("not samples"),
        }
    });
    for sample in &samples {
        sample.check().unwrap_or_else(|violation| panic!("{violation}: {sample:?}"));
    }
    (samples, server)
}

#[test]
fn a_closed_loop_sends_exactly_its_requests_and_never_more_at_a_time_than_it_has_workers() {
    for policy in [persistent(2, 2), persistent(4, 4), ConnectionPolicy::PerRequest] {
        let spec = spec(Protocol::H2c, policy, closed(4), Extent::Requests(103));
        let (samples, server) = run(&spec, ALONE, |_, _| Fate::Answer(3));
        assert_eq!((samples.len(), server.requests.get(), server.most_in_flight.get()), (103, 103, 4));
    }
}

#[test]
fn the_shares_of_all_threads_add_up() {
    let spec = spec(Protocol::H2c, persistent(5, 1), closed(7), Extent::Requests(100));
    let shares: Vec<_> = (0..3).map(|index| run(&spec, Share { index, of: 3 }, |_, _| Fate::Answer(1))).collect();
    let sum = |of: fn(&Server) -> u32| shares.iter().map(|(_, server)| of(server)).sum::<u32>();
    assert_eq!(shares.iter().map(|(samples, _)| samples.len()).sum::<usize>(), 100);
    assert_eq!(sum(|server| server.connections.get()), 5);
}

#[test]
fn a_pause_begins_with_the_response_and_ends_with_the_intended_start() {
    let schedule = Schedule::Closed { workers: 1, pause: Pause::Fixed { ns: 5 * MS } };
    let spec = spec(Protocol::H2c, persistent(1, 1), schedule, Extent::Requests(4));
    let (samples, _) = run(&spec, ALONE, |_, _| Fate::Answer(2));
    let intended: Vec<_> = samples.iter().map(|sample| sample.intended_ns / MS).collect();
    assert_eq!(intended, [0, 7, 14, 21]);
}

#[test]
fn workers_without_a_free_connection_wait_in_line_and_their_lag_shows_it() {
    let spec = spec(Protocol::H1c, persistent(1, 1), closed(3), Extent::Requests(3));
    let (samples, server) = run(&spec, ALONE, |_, _| Fate::Answer(10));
    assert_eq!(server.most_in_flight.get(), 1);
    assert_eq!(samples.iter().map(|sample| sample.lag_ns() / MS).collect::<Vec<_>>(), [0, 10, 20]);
}

#[test]
fn a_stalled_server_does_not_shift_the_intended_times_and_its_stall_is_in_the_response_times() {
    let spec = spec(Protocol::H1c, persistent(1, 1), open(100.0), Extent::DurationNs(SECOND));
    let (samples, server) = run(&spec, ALONE, |request, _| Fate::Answer(if request == 10 { 500 } else { 1 }));
    let intended: Vec<_> = samples.iter().map(|sample| sample.intended_ns / MS).collect();
    assert_eq!(intended, (0..100).map(|i| i * 10).collect::<Vec<_>>());
    assert_eq!(server.requests.get(), 100);
    assert_eq!(samples[10].response_ns() / MS, 500);
    // Requests that arrived during the stall wait for its end, then for each other: several slow requests, not one.
    for (position, number) in (11..60).enumerate() {
        let waited = 500 - 10 * (position as u64 + 1) + position as u64 + 1;
        assert_eq!(samples[number].response_ns() / MS, waited, "{number}");
        assert_eq!(samples[number].service_ns() / MS, 1, "{number}");
    }
}

#[test]
fn an_open_loop_with_a_connection_per_request_lets_no_request_wait_for_another() {
    let spec = spec(Protocol::H1c, ConnectionPolicy::PerRequest, open(100.0), Extent::Requests(200));
    let (samples, server) = run(&spec, ALONE, |_, _| Fate::Answer(1000));
    assert_eq!((samples.len(), server.most_in_flight.get(), server.connections.get()), (200, 100, 200));
    assert!(samples.iter().all(|sample| sample.lag_ns() == 0 && sample.response_ns() == 1000 * MS));
}

#[test]
fn no_request_starts_after_the_duration_and_those_in_flight_are_completed() {
    let closed_spec = spec(Protocol::H2c, persistent(1, 1), closed(1), Extent::DurationNs(100 * MS));
    let open_spec = spec(Protocol::H2c, persistent(1, 8), open(100.0), Extent::DurationNs(100 * MS));
    for (spec, count) in [(closed_spec, 4), (open_spec, 10)] {
        let (samples, server) = run(&spec, ALONE, |_, _| Fate::Answer(30));
        assert_eq!((samples.len(), server.requests.get(), server.cancelled.get()), (count, count as u32, 0));
        assert!(samples.iter().all(|sample| sample.start_ns < 100 * MS && sample.is_ok()));
        assert!(samples.last().unwrap().last_byte_ns > 100 * MS);
    }
}

#[test]
fn arrivals_that_wait_too_long_after_the_end_fail_by_timeout() {
    let mut spec = spec(Protocol::H1c, persistent(1, 1), open(10.0), Extent::DurationNs(SECOND));
    spec.timeouts.request_ns = SECOND;
    let (samples, server) = run(&spec, ALONE, |_, _| Fate::Answer(900));
    assert_eq!(samples.len(), 10);
    // One request starts every 0.9 s from 0 to 1.9 s, which is one second after the last arrival.
    let ok = samples.iter().filter(|sample| sample.is_ok()).count();
    assert_eq!((ok, server.requests.get()), (3, 3));
    assert!(samples.iter().skip(3).all(|sample| sample.error == Some(ErrorKind::Timeout)));
}

#[test]
fn a_broken_connection_fails_its_requests_once_and_is_opened_again_by_one_of_the_next() {
    let spec = spec(Protocol::H2c, persistent(1, 4), closed(4), Extent::Requests(20));
    let (samples, server) = run(&spec, ALONE, |request, connection| match (connection, request) {
        (0, 5) => Fate::Break(1),
        _ => Fate::Answer(2),
    });
    assert_eq!(server.connections.get(), 2);
    assert_eq!(samples.len(), 20);
    let failed = samples.iter().filter(|sample| !sample.is_ok()).count();
    assert_eq!(failed, 4, "the four streams that were in flight");
    assert_eq!(samples.iter().filter(|sample| sample.connected_ns.is_some()).count(), 1);
    assert!(samples.iter().skip(8).all(|sample| sample.connection == 1 && sample.is_ok()));
}

#[test]
fn a_timed_out_request_is_cancelled_and_its_connection_kept_only_if_it_multiplexes() {
    for (protocol, connections) in [(Protocol::H2c, 1), (Protocol::H1c, 2)] {
        let mut spec = spec(protocol, persistent(1, 1), closed(1), Extent::Requests(3));
        spec.timeouts.request_ns = 50 * MS;
        let (samples, server) = run(&spec, ALONE, |request, _| Fate::Answer(if request == 1 { 9999 } else { 1 }));
        assert_eq!((server.cancelled.get(), server.connections.get()), (1, connections), "{protocol}");
        assert_eq!(samples[1].error, Some(ErrorKind::Timeout));
        assert!((50..53).contains(&(samples[1].service_ns() / MS)), "{:?}", samples[1]);
        assert!(samples[2].is_ok());
    }
}

#[test]
fn a_connection_that_takes_too_long_fails_its_request_by_timeout_and_a_lost_datagram_is_lost() {
    let mut slow = spec(Protocol::H1c, ConnectionPolicy::PerRequest, closed(1), Extent::Requests(2));
    slow.timeouts.connect_ns = 20 * MS;
    let (samples, server) = run_with(&slow, ALONE, |server| server.connect_ms.set(1000));
    assert_eq!(server.requests.get(), 0);
    for sample in samples {
        assert_eq!((sample.error, sample.bytes_out), (Some(ErrorKind::Timeout), 0));
        assert!((20..23).contains(&(sample.service_ns() / MS)), "{sample:?}");
    }
    let mut lossy = spec(Protocol::Udp, persistent(1, 1), closed(1), Extent::Requests(1));
    lossy.timeouts.request_ns = 20 * MS;
    let (samples, _) = run(&lossy, ALONE, |_, _| Fate::Answer(1000));
    assert_eq!(samples[0].error, Some(ErrorKind::Lost));
}

#[test]
fn the_warm_up_is_not_recorded() {
    let mut spec = spec(Protocol::H2c, persistent(1, 1), closed(1), Extent::Requests(5));
    spec.warm_up = Some(Extent::Requests(3));
    let (samples, server) = run(&spec, ALONE, |_, _| Fate::Answer(1));
    assert_eq!((samples.len(), server.requests.get()), (5, 8));
    assert_eq!(samples[0].intended_ns, 0);
}
