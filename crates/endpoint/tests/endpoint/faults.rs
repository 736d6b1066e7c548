//! The messages of clients and servers for faults in the spec, in the peer, and in the network.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Event;
use wirelab_contract::pattern;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{Arrivals, ClientSpec, ConnectionPolicy, Extent, Pause, Resumption, Schedule, Stage};

use crate::support::{Endpoint, OVER_TCP, Place, get, pattern_of};

/// A server that calls `behave` for each connection, until the test ends.
fn misbehaving(behave: impl Fn(TcpStream, usize) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (number, connection) in listener.incoming().enumerate() {
            behave(connection.unwrap(), number);
        }
    });
    port
}

/// Reads a request of HTTP/1.1 without a body.
fn read_request(stream: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return false;
        }
        request.push(byte[0]);
    }
    true
}

fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
}

#[test]
fn nothing_that_listens_is_a_refused_connection() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for protocol in OVER_TCP {
        let (kind, message) = Endpoint::client(&place.client_spec(protocol, free)).failing();
        assert_eq!(kind, ErrorKind::Refused, "{protocol}: {message}");
        assert!(message.contains("127.0.0.1"), "{message}");
    }
}

#[test]
fn another_authority_or_another_name_is_a_certificate_error_unless_it_is_not_to_be_verified() {
    let place = Place::new();
    place.authority("other", "localhost");
    for protocol in OVER_TCP.into_iter().filter(|protocol| protocol.is_secure()) {
        let (server, port) = Endpoint::serving(&place.server_spec(protocol));
        let mut spec = place.client_spec(protocol, port);
        spec.tls.as_mut().unwrap().trust_anchor = Some(place.path("other.pem"));
        assert_eq!(Endpoint::client(&spec).failing().0, ErrorKind::Certificate, "{protocol}");
        let mut spec = place.client_spec(protocol, port);
        spec.server_name = "elsewhere.test".to_owned();
        assert_eq!(Endpoint::client(&spec).failing().0, ErrorKind::Certificate, "{protocol}");
        spec.tls.as_mut().unwrap().verify = false;
        Endpoint::client(&spec).trial();
        server.stop();
    }
}

#[test]
fn a_server_of_another_protocol_is_a_protocol_error() {
    let place = Place::new();
    let (server, port) = Endpoint::serving(&place.server_spec(Protocol::H1));
    let (kind, message) = Endpoint::client(&place.client_spec(Protocol::H2, port)).failing();
    assert_eq!(kind, ErrorKind::Protocol, "{message}");
    server.stop();
}

#[test]
fn a_response_that_ends_early_is_truncated() {
    let place = Place::new();
    let port = misbehaving(|mut stream, _| {
        if read_request(&mut stream) {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort").unwrap();
        }
    });
    let (kind, message) = Endpoint::client(&place.client_spec(Protocol::H1c, port)).failing();
    assert_eq!(kind, ErrorKind::Truncated, "{message}");
    let port = misbehaving(|mut stream, _| {
        stream.read_exact(&mut [0; 24]).unwrap();
        stream.write_all(b"short").unwrap();
    });
    let (kind, message) = Endpoint::client(&place.client_spec(Protocol::Tcp, port)).failing();
    assert_eq!(kind, ErrorKind::Truncated, "{message}");
    assert!(message.contains("5 of 100 bytes"), "{message}");
}

#[test]
fn a_reset_connection_is_a_reset() {
    let place = Place::new();
    for protocol in [Protocol::Tcp, Protocol::H1c, Protocol::H2c] {
        let port = misbehaving(|mut stream, _| {
            // Only after the client has sent data; otherwise the reset may come before the client is connected.
            stream.read_exact(&mut [0; 24]).unwrap();
            reset(stream);
        });
        let (kind, message) = Endpoint::client(&place.client_spec(protocol, port)).failing();
        assert_eq!(kind, ErrorKind::Reset, "{protocol}: {message}");
    }
}

#[test]
fn silence_is_a_timeout_of_the_handshake_or_of_the_request() {
    let place = Place::new();
    for protocol in OVER_TCP {
        // The connection is leaked, so it stays open without an answer.
        let port = misbehaving(|stream, _| std::mem::forget(stream));
        let mut spec = place.client_spec(protocol, port);
        spec.timeouts.connect_ns = 100_000_000;
        spec.timeouts.request_ns = 150_000_000;
        let (kind, message) = Endpoint::client(&spec).failing();
        assert_eq!(kind, ErrorKind::Timeout, "{protocol}: {message}");
    }
}

#[test]
fn another_body_or_status_or_size_than_expected_fails_the_check_request() {
    let place = Place::new();
    let (server, port) = Endpoint::serving(&place.server_spec(Protocol::H1c));
    let mut spec = place.client_spec(Protocol::H1c, port);
    spec.request.expect.as_mut().unwrap().sha256 = pattern_of(99).sha256;
    assert_eq!(Endpoint::client(&spec).failing().0, ErrorKind::Digest);
    spec.request = get("/bytes/99", 100);
    assert_eq!(Endpoint::client(&spec).failing().0, ErrorKind::Truncated);
    spec.request = get("/missing.bin", 0);
    assert_eq!(Endpoint::client(&spec).failing().0, ErrorKind::Status);
    server.stop();
}

#[test]
fn a_failed_request_is_recorded_and_its_connection_opened_again_by_the_next() {
    let place = Place::new();
    // The check request has its own connection, number 0. Number 1 breaks in its third request.
    let port = misbehaving(|mut stream, number| {
        let mut left = if number == 1 { 2 } else { u32::MAX };
        while left > 0 && read_request(&mut stream) {
            left -= 1;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n").unwrap();
            stream.write_all(&pattern::body(100)).unwrap();
        }
        if left == 0 && read_request(&mut stream) {
            reset(stream);
        }
    });
    let spec = place.client_spec(Protocol::H1c, port);
    let (_, done) = Endpoint::client(&spec).trial();
    let Event::Done { requests, errors, .. } = done else { unreachable!() };
    assert_eq!((requests, errors[&ErrorKind::Reset]), (Some(9), 1));
    let samples = place.samples();
    let errors: Vec<_> = samples.iter().map(|sample| sample.error.is_some()).collect();
    assert_eq!(errors, [false, false, true, false, false, false, false, false, false, false]);
    let opened: Vec<_> = samples.iter().map(|sample| sample.connected_ns.is_some()).collect();
    assert_eq!(opened, [false, false, false, true, false, false, false, false, false, false]);
    assert_eq!(samples.iter().map(|sample| sample.connection).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn a_server_that_closes_after_every_response_costs_a_connection_per_request_and_no_failure() {
    let place = Place::new();
    let port = misbehaving(move |mut stream, _| {
        if read_request(&mut stream) {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 100\r\n\r\n").unwrap();
            stream.write_all(&pattern::body(100)).unwrap();
        }
    });
    let spec = place.client_spec(Protocol::H1c, port);
    Endpoint::client(&spec).trial();
    let samples = place.samples();
    assert!(samples.iter().all(|sample| sample.error.is_none()), "{samples:?}");
    assert_eq!(samples.iter().map(|sample| sample.connection).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
}

#[test]
fn timed_out_streams_are_cancelled_and_their_connection_is_kept() {
    let place = Place::new();
    let (server, port) = Endpoint::serving(&place.server_spec(Protocol::H2c));
    let mut spec = place.client_spec(Protocol::H2c, port);
    spec.request = get("/delay/60000000", 0);
    spec.timeouts.request_ns = 50_000_000;
    let (kind, _) = Endpoint::client(&spec).failing();
    assert_eq!(kind, ErrorKind::Timeout);
    // A server with a minute of work left stops at once nevertheless.
    server.stop();
}

#[test]
fn settings_that_cannot_be_honoured_are_unsupported() {
    let place = Place::new();
    let base = |protocol| place.client_spec(protocol, 1);
    let mut specs = vec![];
    let mut add = |spec, word: &'static str| specs.push((spec, word));
    for protocol in OVER_TCP {
        let mut spec = base(protocol);
        spec.transport.gso = Some(true);
        add(spec, "`gso`");
        let mut spec = base(protocol);
        spec.transport.udp_receive_buffer = Some(1 << 20);
        add(spec, "`udp_receive_buffer`");
        let mut spec = base(protocol);
        spec.qlog_dir = Some(place.path("qlog"));
        add(spec, "`qlog_dir`");
    }
    let mut spec = base(Protocol::H1);
    spec.transport.stream_window = Some(1 << 20);
    add(spec, "`stream_window`");
    let mut spec = base(Protocol::H2);
    spec.transport.connection_window = Some(1 << 31);
    add(spec, "`connection_window`");
    let mut spec = base(Protocol::H1);
    spec.connections = ConnectionPolicy::Persistent { connections: 1, streams: 2 };
    add(spec, "does not multiplex");
    let mut spec = base(Protocol::H1c);
    spec.resumption = Resumption::Resume;
    add(spec, "`resumption`");
    let mut spec = base(Protocol::H1c);
    spec.tls = base(Protocol::H1).tls;
    add(spec, "`tls`");
    let mut spec = base(Protocol::H1);
    spec.contract = 2;
    add(spec, "contract 2");
    let mut spec = base(Protocol::H1);
    spec.schedule = Schedule::Closed { workers: 0, pause: Pause::None };
    add(spec, "worker");
    let mut spec = base(Protocol::H1);
    spec.extent = Extent::Requests(0);
    add(spec, "extent");
    let rising = |duration_ns| vec![Stage { from_per_s: 0.0, to_per_s: 9.0, duration_ns }];
    let mut spec = base(Protocol::H1);
    spec.ramp = rising(5);
    add(spec, "closed loop");
    let open = Schedule::Open { rate_per_s: 9.0, arrivals: Arrivals::Uniform };
    for (ramp, word) in [
        (rising(5), "`extent` is not the time"),
        (rising(0), "no duration"),
        (vec![Stage { to_per_s: 0.0, ..rising(7)[0] }], "all its rates are 0"),
        (vec![Stage { from_per_s: -1.0, ..rising(7)[0] }], "negative"),
    ] {
        add(ClientSpec { schedule: open, extent: Extent::DurationNs(7), ramp, ..base(Protocol::H1) }, word);
    }
    let (ramp, extent) = (rising(7), Extent::DurationNs(7));
    let warm_up = Some(Extent::Requests(1));
    add(ClientSpec { schedule: open, extent, ramp, warm_up, ..base(Protocol::H1) }, "`warm_up`");
    for (spec, word) in specs {
        let message = Endpoint::client(&spec).refused();
        assert!(message.contains(word), "{word}: {message}");
    }
    let mut spec = place.server_spec(Protocol::H1);
    spec.transport.max_udp_payload = Some(1200);
    assert!(Endpoint::server(&spec).refused().contains("`max_udp_payload`"));
}

#[test]
fn fast_open_works_where_the_kernel_allows_it_and_is_unsupported_where_not() {
    let place = Place::new();
    let sysctl = fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").unwrap();
    let bits: u32 = sysctl.trim().parse().unwrap();
    let mut spec = place.server_spec(Protocol::Tcp);
    spec.transport.fast_open = Some(true);
    let (server, port) = if bits & 2 == 0 {
        assert!(Endpoint::server(&spec).refused().contains("net.ipv4.tcp_fastopen"));
        spec.transport.fast_open = None;
        Endpoint::serving(&spec)
    } else {
        Endpoint::serving(&spec)
    };
    let mut spec = place.client_spec(Protocol::Tcp, port);
    spec.connections = ConnectionPolicy::PerRequest;
    spec.transport.fast_open = Some(true);
    if bits & 1 == 0 {
        assert!(Endpoint::client(&spec).refused().contains("net.ipv4.tcp_fastopen"));
    } else {
        Endpoint::client(&spec).trial();
        assert!(place.samples().iter().all(|sample| sample.error.is_none() && sample.connected_ns.is_none()));
    }
    server.stop();
}

#[test]
fn unknown_words_are_unsupported_and_broken_specs_are_errors() {
    let place = Place::new();
    let text = serde_json::to_string(&place.client_spec(Protocol::H1c, 1)).unwrap();
    let client = |text: String| Endpoint::start(text, wirelab_endpoint::request_on);
    assert!(client(text.replace("\"h1c\"", "\"h7x\"")).refused().contains("h7x"));
    assert!(client(text.replace("\"seed\"", "\"colour\":1,\"seed\"")).refused().contains("colour"));
    for broken in ["", "{", &text.replace("\"seed\":1,", "")] {
        let mut endpoint = client(broken.to_owned());
        let event = endpoint.event();
        assert!(matches!(event, Event::Error { kind: ErrorKind::Other, .. }), "{event:?}");
        assert_eq!(endpoint.status.join().unwrap(), 1);
    }
}

#[test]
fn a_port_in_use_is_an_error_that_names_address_and_port() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = place.server_spec(Protocol::H1c);
    spec.port = taken.local_addr().unwrap().port();
    let mut server = Endpoint::server(&spec);
    let Event::Error { message, .. } = server.event() else { panic!("not an error") };
    assert!(message.contains(&format!("127.0.0.1:{}", spec.port)), "{message}");
    assert_eq!(server.status.join().unwrap(), 1);
}

#[test]
fn a_server_stops_at_the_end_of_its_input_with_connections_open_and_a_stopped_client_gives_up() {
    let place = Place::new();
    let (server, port) = Endpoint::serving(&place.server_spec(Protocol::H1c));
    let idle = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut spec = place.client_spec(Protocol::H1c, port);
    spec.extent = Extent::DurationNs(3_600_000_000_000);
    let mut client = Endpoint::client(&spec);
    client.event();
    client.say("go");
    assert_eq!(client.event(), Event::Warm { until_steady: None });
    client.say("go");
    client.say("stop");
    assert!(matches!(client.event(), Event::Error { kind: ErrorKind::Other, .. }));
    assert_eq!(client.status.join().unwrap(), 1);
    let Endpoint { words, mut events, status } = server;
    drop(words);
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"done\""), "{rest}");
    assert_eq!(status.join().unwrap(), 0);
    idle.shutdown(Shutdown::Both).ok();
}

#[test]
fn results_that_cannot_be_written_are_an_error_before_anything_is_measured() {
    let place = Place::new();
    let (server, port) = Endpoint::serving(&place.server_spec(Protocol::H1c));
    let mut spec = place.client_spec(Protocol::H1c, port);
    spec.results = place.path("missing/results.json");
    let mut client = Endpoint::client(&spec);
    let event = client.event();
    assert!(matches!(&event, Event::Error { message, .. } if message.contains("missing/results.json")), "{event:?}");
    assert_eq!(client.status.join().unwrap(), 1);
    server.stop();
}

#[test]
fn secrets_are_logged_by_both_sides_where_asked_for() {
    let place = Place::new();
    let mut spec = place.server_spec(Protocol::H2);
    spec.tls.as_mut().unwrap().key_log = Some(place.path("server.keys"));
    let (server, port) = Endpoint::serving(&spec);
    let mut spec = place.client_spec(Protocol::H2, port);
    spec.tls.as_mut().unwrap().key_log = Some(place.path("client.keys"));
    Endpoint::client(&spec).trial();
    server.stop();
    let keys = |name| {
        let text = fs::read_to_string(place.path(name)).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(keys("client.keys"), keys("server.keys"));
    assert!(keys("client.keys").iter().any(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")));
}
