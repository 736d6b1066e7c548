//! A cell for the unit tests of this crate.

use indexmap::IndexMap;
use wirelab_model::plan::{Cell, Job};
use wirelab_model::protocol::Protocol;
use wirelab_model::settings::Exchange;
use wirelab_model::spec::{ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule, Timeouts, Transport};
use wirelab_model::units::{Size, Span};

/// Three documents of 1 KiB over HTTP/2, each by a connection of its own.
pub(crate) fn cell() -> Cell {
    let job = Job {
        protocol: Protocol::H2,
        server: "builtin".to_owned(),
        client: "builtin".to_owned(),
        placement: "local".to_owned(),
        exchange: Exchange::Files,
        request_size: Size(0),
        response_size: Size(1024),
        delay: Span(0),
        connections: ConnectionPolicy::PerRequest,
        schedule: Schedule::Closed { workers: 1, pause: Pause::None },
        extent: Extent::Requests(3),
        warm_up: None,
        resumption: Resumption::None,
        timeouts: Timeouts { connect_ns: 1_000_000_000, request_ns: 2_000_000_000 },
        recording: Recording::Samples,
        transport: Transport::default(),
        server_threads: None,
        client_threads: None,
    };
    Cell { levels: IndexMap::new(), twin_of: None, job }
}
