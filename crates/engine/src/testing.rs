//! Specs and inputs for the tests of machines.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;

use crate::machine::{Event, Inbox, Machine, Slot};

/// The same cases in every run.
pub fn cases() -> ProptestConfig {
    ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

/// Sizes of pieces, which repeat.
pub fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![Just(1), 1_usize..9, 1_usize..60], 1..20)
}

/// An event without its time: its name, request, status, size and kind of failure.
pub type Plain = (&'static str, Slot, Option<u16>, u64, Option<ErrorKind>);

/// An event without its time.
pub fn plain(event: Event) -> Plain {
    match event {
        Event::Opened { .. } => ("opened", 0, None, 0, None),
        Event::FirstByte { slot, .. } => ("first byte", slot, None, 0, None),
        Event::Done { slot, status, bytes_in, .. } => ("done", slot, status, bytes_in, None),
        Event::Failed { slot, failure, .. } => ("failed", slot, None, 0, Some(failure.kind)),
        Event::TurnedAway { slot, failure, .. } => ("turned away", slot, None, 0, Some(failure.kind)),
    }
}

/// Feeds a machine with bytes in pieces of these sizes, then with the end. Returns its events, its failure, and whether
/// it was open before the end.
pub fn in_pieces<M: Machine>(
    machine: &mut M,
    bytes: &[u8],
    sizes: &[usize],
) -> (Vec<Plain>, Option<(ErrorKind, String)>, bool) {
    let (mut inbox, mut rest) = (Inbox::default(), bytes);
    let mut sizes = sizes.iter().cycle();
    let mut result = Ok(());
    while !rest.is_empty() && result.is_ok() {
        let (now, later) = rest.split_at(sizes.next().copied().unwrap_or(1).clamp(1, rest.len()));
        result = machine.receive(now, &mut inbox);
        rest = later;
    }
    let was_open = machine.is_open();
    let result = result.and_then(|()| machine.end(true, &mut inbox));
    let events = inbox.events.into_iter().map(plain).collect();
    (events, result.err().map(|failure| (failure.kind, failure.message)), was_open)
}

/// The spec of a client with one connection that asks for ten bytes.
pub fn client_spec(protocol: &str) -> ClientSpec {
    serde_json::from_value(serde_json::json!({
        "contract": 1, "protocol": protocol, "address": "127.0.0.1", "port": 80, "server_name": "server.test",
        "request": {"method": "GET", "path": "/bytes/10", "body_size": 0},
        "connections": {"policy": "persistent", "connections": 1, "streams": 1},
        "schedule": {"loop": "closed", "workers": 1},
        "extent": {"requests": 1},
        "timeouts": {"connect_ns": 5_000_000_000_u64, "request_ns": 5_000_000_000_u64},
        "seed": 1, "recording": "histograms", "results": "/dev/null",
    }))
    .expect("the spec is valid")
}
