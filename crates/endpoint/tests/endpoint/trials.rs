//! Whole trials on loopback: every protocol over TCP, each use of connections, each exchange.

use std::net::{Shutdown, TcpListener, TcpStream};

use wirelab_contract::event::Event;
use wirelab_contract::histogram::Histograms;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{Arrivals, ConnectionPolicy, Extent, Pause, Recording, Request, Resumption, Schedule};

use crate::support::{Endpoint, OVER_TCP, Place, echo, get};

const POLICIES: [ConnectionPolicy; 2] =
    [ConnectionPolicy::PerRequest, ConnectionPolicy::Persistent { connections: 1, streams: 1 }];

#[test]
fn every_protocol_carries_every_exchange_on_new_and_on_persistent_connections() {
    let place = Place::new();
    place.document(0);
    place.document(300_000);
    let exchanges =
        [get("/300000.bin", 300_000), get("/0.bin", 0), get("/bytes/70000", 70_000), echo(1), echo(500_000)];
    for protocol in OVER_TCP {
        let (server, port) = Endpoint::serving(&place.server_spec(protocol));
        let mut answered = 0;
        for connections in POLICIES {
            // An empty response is invisible on a raw stream.
            let seen = |request: &&Request| protocol.is_http() || request.expect.as_ref().unwrap().body_size > 0;
            for request in exchanges.iter().filter(seen) {
                let mut spec = place.client_spec(protocol, port);
                spec.connections = connections;
                spec.request = request.clone();
                let (window, _) = Endpoint::client(&spec).trial();
                check_samples(&place, protocol, request, connections, window);
                answered += 11;
            }
        }
        assert_eq!(server.stop(), answered, "{protocol}");
    }
}

fn check_samples(place: &Place, protocol: Protocol, request: &Request, policy: ConnectionPolicy, window: u64) {
    let samples = place.samples();
    let what = format!("{protocol} {} {policy:?}", request.path);
    assert_eq!(samples.len(), 10, "{what}");
    let fresh = policy == ConnectionPolicy::PerRequest;
    for (number, sample) in samples.iter().enumerate() {
        sample.check().unwrap_or_else(|violation| panic!("{what}: {violation}: {sample:?}"));
        assert_eq!(sample.error, None, "{what}");
        assert_eq!(sample.bytes_in, request.expect.as_ref().unwrap().body_size, "{what}");
        assert_eq!(sample.bytes_out, request.body_size, "{what}");
        assert_eq!(sample.status, protocol.is_http().then_some(200), "{what}");
        assert_eq!(sample.connected_ns.is_some(), fresh, "{what}");
        assert_eq!(sample.handshake_ns.is_some(), fresh && protocol.is_secure(), "{what}");
        assert_eq!(sample.handshake, (fresh && protocol.is_secure()).then_some(Handshake::Full), "{what}");
        assert_eq!(sample.connection, if fresh { number as u32 } else { 0 }, "{what}");
        assert!(sample.last_byte_ns <= window, "{what}");
    }
}

#[test]
fn a_delay_is_waited_for_by_every_protocol() {
    let place = Place::new();
    for protocol in OVER_TCP {
        let (server, port) = Endpoint::serving(&place.server_spec(protocol));
        let mut spec = place.client_spec(protocol, port);
        spec.request = get("/delay/20000", usize::from(!protocol.is_http()));
        spec.extent = Extent::Requests(3);
        Endpoint::client(&spec).trial();
        for sample in place.samples() {
            assert!(sample.service_ns() >= 20_000_000, "{protocol}: {sample:?}");
        }
        server.stop();
    }
}

#[test]
fn sessions_are_resumed_and_early_data_is_accepted_with_proof() {
    let place = Place::new();
    for protocol in OVER_TCP.into_iter().filter(|protocol| protocol.is_secure()) {
        for (resumption, expected) in [
            (Resumption::None, Handshake::Full),
            (Resumption::Resume, Handshake::Resumed),
            (Resumption::ZeroRtt, Handshake::EarlyAccepted),
        ] {
            let mut server_spec = place.server_spec(protocol);
            let tls = server_spec.tls.as_mut().unwrap();
            tls.resumption = resumption != Resumption::None;
            tls.early_data = resumption == Resumption::ZeroRtt;
            let (server, port) = Endpoint::serving(&server_spec);
            for (request, workers) in [(get("/bytes/100", 100), 1), (echo(100_000), 8)] {
                let mut spec = place.client_spec(protocol, port);
                spec.request = request;
                spec.resumption = resumption;
                spec.connections = ConnectionPolicy::PerRequest;
                spec.schedule = Schedule::Closed { workers, pause: Pause::None };
                spec.extent = Extent::Requests(40);
                let (_, done) = Endpoint::client(&spec).trial();
                for sample in place.samples() {
                    sample.check().unwrap();
                    assert_eq!((sample.error, sample.handshake), (None, Some(expected)), "{protocol} {workers}");
                }
                let Event::Done { configured, .. } = done else { unreachable!() };
                assert_eq!(configured["cipher"], "TLS_AES_128_GCM_SHA256");
                assert_eq!(configured["group"], "X25519");
                assert_eq!(configured["alpn"], protocol.alpn().unwrap());
                assert!(configured["certificate_chain_bytes"].as_u64().unwrap() > 100);
            }
            server.stop();
        }
    }
}

#[test]
fn early_data_that_the_server_rejects_is_sent_again_and_reported_as_rejected() {
    let place = Place::new();
    for protocol in OVER_TCP.into_iter().filter(|protocol| protocol.is_secure()) {
        let mut server_spec = place.server_spec(protocol);
        let tls = server_spec.tls.as_mut().unwrap();
        (tls.resumption, tls.early_data) = (true, true);
        let (first, first_port) = Endpoint::serving(&server_spec);
        let (second, second_port) = Endpoint::serving(&server_spec);
        // The second server does not know the tickets that the first one gave with the check request.
        let port = relay(move |number| if number == 0 { first_port } else { second_port });
        let mut spec = place.client_spec(protocol, port);
        spec.resumption = Resumption::ZeroRtt;
        spec.connections = ConnectionPolicy::PerRequest;
        Endpoint::client(&spec).trial();
        let handshakes: Vec<_> = place.samples().iter().map(|sample| sample.handshake.unwrap()).collect();
        assert_eq!(handshakes[0], Handshake::EarlyRejected, "{protocol}");
        assert!(handshakes[1..].iter().all(|handshake| *handshake == Handshake::EarlyAccepted), "{protocol}");
        assert!(place.samples().iter().all(|sample| sample.error.is_none() && sample.bytes_in == 100));
        first.stop();
        second.stop();
    }
}

/// Forwards each connection to the port that `port` returns for its number, from 0.
fn relay(port: impl Fn(usize) -> u16 + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let client = client.unwrap();
            let server = TcpStream::connect(("127.0.0.1", port(number))).unwrap();
            for (mut from, mut to) in [(&client, &server), (&server, &client)]
                .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
            {
                std::thread::spawn(move || {
                    // The end of either side ends the relay.
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    own
}

#[test]
fn work_is_divided_exactly_between_threads_connections_and_streams() {
    let place = Place::new();
    for (protocol, streams) in [(Protocol::H1c, 1), (Protocol::H2, 5)] {
        let (server, port) = Endpoint::serving(&place.server_spec(protocol));
        let mut spec = place.client_spec(protocol, port);
        spec.threads = Some(2);
        spec.connections = ConnectionPolicy::Persistent { connections: 5, streams };
        spec.schedule = Schedule::Closed { workers: 5 * streams, pause: Pause::None };
        spec.extent = Extent::Requests(1003);
        spec.warm_up = Some(Extent::Requests(77));
        let (_, done) = Endpoint::client(&spec).trial();
        let Event::Done { requests, configured, .. } = done else { unreachable!() };
        assert_eq!((requests, &configured["threads"]), (Some(1003), &2.into()));
        let samples = place.samples();
        assert_eq!(samples.len(), 1003);
        let mut connections: Vec<_> = samples.iter().map(|sample| sample.connection).collect();
        connections.sort_unstable();
        connections.dedup();
        assert_eq!(connections, [0, 1, 2, 3, 4]);
        assert!(samples.windows(2).all(|pair| pair[0].intended_ns <= pair[1].intended_ns));
        assert_eq!(server.stop(), 1 + 77 + 1003);
    }
}

#[test]
fn an_open_loop_keeps_its_schedule_on_new_and_on_persistent_connections() {
    let place = Place::new();
    for protocol in [Protocol::H1c, Protocol::H2c] {
        let (server, port) = Endpoint::serving(&place.server_spec(protocol));
        for connections in POLICIES {
            let mut spec = place.client_spec(protocol, port);
            spec.connections = connections;
            spec.schedule = Schedule::Open { rate_per_s: 500.0, arrivals: Arrivals::Uniform };
            spec.extent = Extent::DurationNs(200_000_000);
            spec.recording = Recording::Samples;
            Endpoint::client(&spec).trial();
            let intended: Vec<_> = place.samples().iter().map(|sample| sample.intended_ns).collect();
            assert_eq!(intended, (0..100).map(|i| i * 2_000_000).collect::<Vec<_>>());
        }
        server.stop();
    }
}

#[test]
fn histograms_count_every_request() {
    let place = Place::new();
    let (server, port) = Endpoint::serving(&place.server_spec(Protocol::H1));
    let mut spec = place.client_spec(Protocol::H1, port);
    spec.recording = Recording::Histograms;
    spec.connections = ConnectionPolicy::PerRequest;
    spec.extent = Extent::Requests(50);
    Endpoint::client(&spec).trial();
    let histograms: Histograms = place.results();
    assert_eq!((histograms.requests, histograms.bytes_in, histograms.connections), (50, 5000, 50));
    for histogram in [&histograms.response, &histograms.service, &histograms.handshake, &histograms.first_byte] {
        assert_eq!(histogram.count, 50);
        assert!(histogram.min_ns > 0 && histogram.min_ns <= histogram.max_ns);
    }
    assert_eq!(histograms.handshakes[&Handshake::Full], 50);
    assert_eq!(histograms.failure.count, 0);
    server.stop();
}

#[test]
fn documents_are_found_by_their_path_and_nothing_else_is() {
    let place = Place::new();
    place.document(10);
    let (server, port) = Endpoint::serving(&place.server_spec(Protocol::H1c));
    for (method, path, status) in [
        ("GET", "/11.bin", 404),
        ("GET", "/../ca.pem", 404),
        ("GET", "/..%2fca.pem", 404),
        ("GET", "/bytes/x", 400),
        ("DELETE", "/10.bin", 405),
        ("GET", "/echo", 405),
    ] {
        let mut spec = place.client_spec(Protocol::H1c, port);
        spec.request = get(path, 0);
        spec.request.method = method.to_owned();
        spec.request.expect.as_mut().unwrap().status = status;
        Endpoint::client(&spec).trial();
        assert!(place.samples().iter().all(|sample| sample.status == Some(status)));
    }
    server.stop();
}
