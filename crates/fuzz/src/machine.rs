//! Clients' machines under any input: the input decides which requests are started or cancelled, and in which pieces
//! the peer's bytes arrive.

use std::rc::Rc;

use serde_json::{Value, json};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::machine::{Event, Inbox, Machine, Slot};
use wirelab_engine::refusal::Failure;

use crate::bytes::{part, pieces};

/// Requests that a machine has at most at a time.
const MOST: u32 = 40;

/// Output that does not depend on the input: prefaces, bodies of requests, heads.
const OUTPUT: usize = 1 << 20;

/// The spec of a client with one connection.
///
/// # Panics
/// If the changes make it invalid.
#[must_use]
pub fn spec(protocol: &str, changes: &Value) -> ClientSpec {
    let mut spec = json!({
        "contract": 1, "protocol": protocol, "address": "127.0.0.1", "port": 80, "server_name": "server.test",
        "request": {"method": "GET", "path": "/bytes/10", "body_size": 0},
        "connections": {"policy": "persistent", "connections": 1, "streams": 1},
        "schedule": {"loop": "closed", "workers": 1},
        "extent": {"requests": 1},
        "timeouts": {"connect_ns": 5_000_000_000_u64, "request_ns": 5_000_000_000_u64},
        "seed": 1, "recording": "histograms", "results": "/dev/null",
    });
    let changes = changes.as_object().expect("changes are an object").clone();
    spec.as_object_mut().expect("a spec is an object").extend(changes);
    serde_json::from_value(spec).expect("the spec is valid")
}

/// A mix of GET, HEAD, and POST with a body of 100,000 bytes.
#[must_use]
pub fn mix() -> Value {
    let one = |request: Value| json!({"name": "x", "weight": 1, "variants": [request]});
    json!({"mix": [
        one(json!({"method": "GET", "path": "/a", "body_size": 0, "headers": [["x-a", "b"]]})),
        one(json!({"method": "HEAD", "path": "/a", "body_size": 0})),
        one(json!({"method": "POST", "path": "/b", "body_size": 100_000})),
    ]})
}

/// A machine with its requests.
struct Connection<M> {
    machine: M,
    inbox: Inbox,
    /// Requests without a last event.
    active: Vec<Slot>,
    /// Whether the connection carries one request at a time.
    is_single: bool,
    bytes_in: u64,
}

impl<M: Machine> Connection<M> {
    fn new(plan: &Rc<M::Plan>, is_single: bool) -> Self {
        let (machine, inbox) = (M::new(plan), Inbox::default());
        Self { machine, inbox, active: Vec::new(), is_single, bytes_in: 0 }
    }

    fn start(&mut self, number: usize) {
        let most = if self.is_single { 1 } else { MOST };
        let Some(slot) = (0..most).find(|slot| !self.active.contains(slot)) else { return };
        if self.machine.is_open() {
            self.inbox.begin_body(slot, slot.is_multiple_of(2));
            self.machine.start(slot, number);
            self.active.push(slot);
        }
    }

    fn cancel(&mut self, place: usize) {
        if place < self.active.len() {
            let slot = self.active.remove(place);
            self.machine.cancel(slot);
        }
    }

    /// Sends at most this many bytes.
    fn send(&mut self, mut most: usize) {
        while most > 0 && !self.machine.output().is_empty() {
            let count = self.machine.output().len().min(most);
            self.machine.sent(count);
            most -= count;
        }
    }

    /// Checks and removes the events.
    fn events(&mut self) -> Vec<Plain> {
        let events: Vec<_> = self.inbox.events.drain(..).map(plain).collect();
        for (what, slot, _, bytes_in, _) in &events {
            let place = self.active.iter().position(|active| active == slot);
            let place = place.unwrap_or_else(|| panic!("{what}: no request {slot} is under way"));
            if *what != "first byte" {
                self.active.remove(place);
            }
            self.bytes_in += bytes_in;
        }
        events
    }
}

/// An event without its time: its name, request, status, size and kind of failure.
type Plain = (&'static str, Slot, Option<u16>, u64, Option<ErrorKind>);

fn plain(event: Event) -> Plain {
    match event {
        Event::Opened { .. } => panic!("a machine does not open connections"),
        Event::FirstByte { slot, .. } => ("first byte", slot, None, 0, None),
        Event::Done { slot, status, bytes_in, .. } => ("done", slot, status, bytes_in, None),
        Event::Failed { slot, failure, .. } => ("failed", slot, None, 0, Some(failure.kind)),
        Event::TurnedAway { slot, failure, .. } => ("turned away", slot, None, 0, Some(failure.kind)),
    }
}

/// Runs a machine. The first part of the input is a list of steps, the rest is the peer's bytes. `numbers` is the
/// number of requests of the plan.
///
/// # Panics
/// If the machine breaks a rule: an event of a request that is not under way, more output than the input explains, a
/// request that is left without an event or a failure, or a result that depends on the pieces.
pub fn run<M: Machine>(plan: &Rc<M::Plan>, input: &[u8], numbers: usize, is_single: bool) {
    let Some((steps, bytes)) = part(input) else { return };
    match steps.split_first() {
        Some((first, rest)) if first & 0x80 != 0 => interleaved::<M>(plan, rest, bytes, numbers, is_single),
        Some((first, rest)) => {
            let whole = at_once::<M>(plan, *first, bytes, &[0], numbers, is_single);
            let parts = at_once::<M>(plan, *first, bytes, rest, numbers, is_single);
            assert_eq!(whole, parts, "the result depends on the pieces of the input");
        }
        None => {}
    }
}

/// Starts, cancels and sends between the pieces. Each step is an action (3 bits) and the size of a piece (5 bits).
fn interleaved<M: Machine>(plan: &Rc<M::Plan>, steps: &[u8], bytes: &[u8], numbers: usize, is_single: bool) {
    let mut connection = Connection::<M>::new(plan, is_single);
    let (mut rest, mut result) = (bytes, Ok(()));
    for (turn, step) in steps.iter().enumerate() {
        match step >> 5 {
            0 => {}
            1 | 2 => connection.start(turn % numbers),
            3 => (0..4).for_each(|number| connection.start(number % numbers)),
            4 => connection.cancel(0),
            5 => connection.cancel(connection.active.len().wrapping_sub(1)),
            6 => connection.send(usize::MAX),
            _ => connection.send(turn * 100 + 1),
        }
        let size = usize::from(step & 0x1f);
        let (now, later) = rest.split_at(if size == 0x1f { rest.len() } else { size.min(rest.len()) });
        rest = later;
        result = connection.machine.receive(now, &mut connection.inbox);
        connection.events();
        assert!(connection.machine.output().len() <= OUTPUT + 20 * bytes.len(), "the output grows without end");
        if result.is_err() {
            break;
        }
    }
    let failed = result.is_err();
    let result = result.and_then(|()| connection.machine.end(steps.len().is_multiple_of(2), &mut connection.inbox));
    connection.events();
    assert!(!connection.machine.is_open() || failed, "a connection is open after its end");
    assert!(result.is_err() || connection.active.is_empty(), "requests have no last event: {:?}", connection.active);
    assert!(connection.bytes_in <= bytes.len() as u64, "the bodies have more bytes than the input");
    connection.machine.close();
    connection.send(usize::MAX);
}

/// Events, failure, and whether the connection was open before the end.
type Outcome = (Vec<Plain>, Option<(ErrorKind, String)>, bool);

/// Starts requests, sends them, and then takes the input in pieces.
fn at_once<M: Machine>(
    plan: &Rc<M::Plan>,
    requests: u8,
    bytes: &[u8],
    sizes: &[u8],
    numbers: usize,
    is_single: bool,
) -> Outcome {
    let mut connection = Connection::<M>::new(plan, is_single);
    (0..requests % 8).for_each(|number| connection.start(usize::from(number) % numbers));
    connection.send(usize::MAX);
    let (mut events, mut result) = (Vec::new(), Ok::<_, Failure>(()));
    for piece in pieces(bytes, sizes) {
        result = connection.machine.receive(piece, &mut connection.inbox);
        events.extend(connection.events());
        if result.is_err() {
            break;
        }
    }
    let was_open = connection.machine.is_open();
    let result = result.and_then(|()| connection.machine.end(true, &mut connection.inbox));
    events.extend(connection.events());
    (events, result.err().map(|failure| (failure.kind, failure.message)), was_open)
}
