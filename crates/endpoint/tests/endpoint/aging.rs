//! Servers that end connections, and servers that count their answered requests.

use std::collections::BTreeSet;

use wirelab_contract::event::Event;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientSpec, Extent, Pause, Schedule, ServerSpec};

use crate::support::{Endpoint, Place};

const MS: u64 = 1_000_000;

#[test]
fn an_old_connection_is_followed_by_another_one_and_few_requests_meet_its_end() {
    let place = Place::new();
    for protocol in [Protocol::H1c, Protocol::H1, Protocol::H2c, Protocol::H2] {
        let aging = ServerSpec { max_connection_age_ns: Some(50 * MS), ..place.server_spec(protocol) };
        let (server, port) = Endpoint::serving(&aging);
        let spec = ClientSpec {
            extent: Extent::DurationNs(500 * MS),
            schedule: Schedule::Closed { workers: 1, pause: Pause::Fixed { ns: MS } },
            ..place.client_spec(protocol, port)
        };
        Endpoint::client(&spec).trial();
        let samples = place.samples();
        let connections: BTreeSet<_> = samples.iter().map(|sample| sample.connection).collect();
        let failed = samples.iter().filter(|sample| !sample.is_ok()).count();
        assert!(connections.len() > 2, "{protocol}: {} connections for {} requests", connections.len(), samples.len());
        assert!(failed < connections.len() && failed * 2 < samples.len(), "{protocol}: {failed} of {}", samples.len());
        server.stop();
    }
}

#[test]
fn connections_that_cannot_be_asked_to_end_are_refused_an_age() {
    let place = Place::new();
    for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::H3] {
        let aging = ServerSpec { max_connection_age_ns: Some(50 * MS), ..place.server_spec(protocol) };
        let said = Endpoint::server(&aging).refused();
        assert!(said.contains("max_connection_age_ns"), "{protocol}: {said}");
    }
}

#[test]
fn a_server_counts_the_requests_that_it_answered_when_it_is_asked() {
    let place = Place::new();
    for protocol in [Protocol::H1c, Protocol::H2, Protocol::H3] {
        let (mut server, port) = Endpoint::serving(&ServerSpec { counts: true, ..place.server_spec(protocol) });
        let mut count = || {
            server.say("count");
            server.event()
        };
        assert_eq!(count(), Event::Counted { requests: 0 });
        Endpoint::client(&place.client_spec(protocol, port)).trial();
        // Ten requests, and the check request.
        assert_eq!(
            (count(), count()),
            (Event::Counted { requests: 11 }, Event::Counted { requests: 11 }),
            "{protocol}"
        );
        assert_eq!(server.stop(), 11);
    }
}

#[test]
fn a_server_without_counts_in_its_spec_refuses_the_word() {
    let place = Place::new();
    let (mut server, _) = Endpoint::serving(&place.server_spec(Protocol::H1c));
    server.say("count");
    let event = server.event();
    assert!(matches!(&event, Event::Error { message, .. } if message.contains("only `stop`")), "{event:?}");
    assert_eq!(server.status.join().unwrap(), 1);
}
