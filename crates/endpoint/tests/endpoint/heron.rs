//! Square roots over HTTP and gRPC: whole trials on loopback, and the messages where no right answer exists.

use std::convert::Infallible;

use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use ring::digest::{SHA256, digest};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Event;
use wirelab_contract::heron;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{
    self, ClientSpec, ConnectionPolicy, Expect, Feature, Pause, Resumption, Schedule, ServerSpec, Transport,
};

use crate::support::{Endpoint, Place};

const PROTOCOLS: [Protocol; 7] =
    [Protocol::H1c, Protocol::H1, Protocol::H2c, Protocol::H2, Protocol::H3, Protocol::Grpcc, Protocol::Grpc];

fn server_spec(place: &Place, protocol: Protocol) -> ServerSpec {
    ServerSpec { features: vec![Feature::Heron], document_root: None, ..place.server_spec(protocol) }
}

/// Ten requests for the root of a number, sequentially on one connection.
fn client_spec(place: &Place, protocol: Protocol, port: u16, number: f64) -> ClientSpec {
    let answer = heron::answer(protocol, number);
    let sha256 = digest(&SHA256, &answer).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let request = spec::Request {
        method: "GET".to_owned(),
        path: heron::path(number),
        body_size: heron::request(protocol, number).len() as u64,
        body: None,
        headers: vec![("x-trial".to_owned(), "1".to_owned())],
        expect: Some(Expect { status: 200, body_size: answer.len() as u64, sha256 }),
    };
    ClientSpec { request, ..place.client_spec(protocol, port) }
}

#[test]
fn every_protocol_brings_the_root_on_new_persistent_and_shared_connections() {
    let place = Place::new();
    for protocol in PROTOCOLS {
        let (server, port) = Endpoint::serving(&server_spec(&place, protocol));
        let mut answered = 0;
        for (connections, streams) in [(0, 0), (1, 1), (2, if protocol.multiplexes() { 3 } else { 1 })] {
            // In protobuf, 0 takes no bytes.
            for number in [2.0, 0.0, 12_345.678] {
                let mut spec = client_spec(&place, protocol, port, number);
                let fresh = connections == 0;
                spec.connections = match connections {
                    0 => ConnectionPolicy::PerRequest,
                    _ => ConnectionPolicy::Persistent { connections, streams },
                };
                spec.schedule = Schedule::Closed { workers: (connections * streams).max(1), pause: Pause::None };
                let (window, _) = Endpoint::client(&spec).trial();
                let samples = place.samples();
                let what = format!("{protocol} {number} {:?}", spec.connections);
                assert_eq!(samples.len(), 10, "{what}");
                for sample in samples {
                    sample.check().unwrap_or_else(|violation| panic!("{what}: {violation}: {sample:?}"));
                    assert_eq!(sample.error, None, "{what}");
                    assert_eq!(sample.bytes_in, spec.request.expect.as_ref().unwrap().body_size, "{what}");
                    assert_eq!(sample.bytes_out, spec.request.body_size, "{what}");
                    assert_eq!(sample.status, protocol.is_http().then_some(200), "{what}");
                    let secure = fresh && protocol.is_secure();
                    assert_eq!(sample.handshake, secure.then_some(Handshake::Full), "{what}");
                    assert!(sample.last_byte_ns <= window, "{what}");
                }
                answered += 11;
            }
        }
        assert_eq!(server.stop(), answered, "{protocol}");
    }
}

#[test]
fn a_number_without_a_root_is_refused_by_every_protocol() {
    let place = Place::new();
    for protocol in PROTOCOLS {
        let (server, port) = Endpoint::serving(&server_spec(&place, protocol));
        let (kind, message) = Endpoint::client(&client_spec(&place, protocol, port, -1.0)).failing();
        assert_eq!(kind, ErrorKind::Status, "{protocol}: {message}");
        let words = if protocol.is_grpc() { "`grpc-status` 3" } else { "status 400" };
        assert!(message.contains(words), "{protocol}: {message}");
        server.stop();
    }
}

#[test]
fn a_server_without_the_feature_does_not_have_it() {
    let place = Place::new();
    for protocol in PROTOCOLS {
        let spec = ServerSpec { features: vec![Feature::Echo], ..server_spec(&place, protocol) };
        let (server, port) = Endpoint::serving(&spec);
        let (kind, message) = Endpoint::client(&client_spec(&place, protocol, port, 2.0)).failing();
        assert_eq!(kind, ErrorKind::Status, "{protocol}: {message}");
        let words = if protocol.is_grpc() { "`grpc-status` 12" } else { "status 404" };
        assert!(message.contains(words), "{protocol}: {message}");
        server.stop();
    }
}

#[test]
fn calls_of_grpc_resume_sessions_and_travel_as_early_data() {
    let place = Place::new();
    for (resumption, expected) in
        [(Resumption::Resume, Handshake::Resumed), (Resumption::ZeroRtt, Handshake::EarlyAccepted)]
    {
        let mut spec = server_spec(&place, Protocol::Grpc);
        let tls = spec.tls.as_mut().unwrap();
        (tls.resumption, tls.early_data) = (true, resumption == Resumption::ZeroRtt);
        let (server, port) = Endpoint::serving(&spec);
        let spec = client_spec(&place, Protocol::Grpc, port, 2.0);
        let spec = ClientSpec { resumption, connections: ConnectionPolicy::PerRequest, ..spec };
        Endpoint::client(&spec).trial();
        for sample in place.samples() {
            assert_eq!((sample.error, sample.handshake), (None, Some(expected)));
        }
        server.stop();
    }
}

#[test]
fn the_windows_of_http2_are_those_of_grpc() {
    let place = Place::new();
    let transport =
        Transport { stream_window: Some(300_000), connection_window: Some(700_000), ..Transport::default() };
    let spec = ServerSpec { transport: transport.clone(), ..server_spec(&place, Protocol::Grpcc) };
    let (server, port) = Endpoint::serving(&spec);
    let spec = ClientSpec { transport, ..client_spec(&place, Protocol::Grpcc, port, 2.0) };
    for done in [Endpoint::client(&spec).trial().1, server.stopped()] {
        let Event::Done { configured, .. } = done else { panic!("{done:?}") };
        assert_eq!(configured["stream_window"], 300_000);
        assert_eq!(configured["connection_window"], 700_000);
    }
}

#[test]
fn grpc_supports_calls_only() {
    let place = Place::new();
    let spec = client_spec(&place, Protocol::Grpc, 1, 2.0);
    let (mut document, mut upload) = (spec.clone(), spec);
    document.request.path = "/1.bin".to_owned();
    upload.request.body_size = 1000;
    for (spec, words) in [(document, "`/heron/NUMBER`"), (upload, "9 bytes")] {
        let message = Endpoint::client(&spec).refused();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_wrong_root_and_an_answer_without_a_status_are_not_taken_for_right_ones() {
    let place = Place::new();
    for (says_status, number, expected, words) in
        [(true, 9.0, ErrorKind::Digest, "2 instead of 3"), (false, 4.0, ErrorKind::Protocol, "without `grpc-status`")]
    {
        let spec = client_spec(&place, Protocol::Grpcc, answering_two(says_status), number);
        let (kind, message) = Endpoint::client(&spec).failing();
        assert_eq!(kind, expected, "{message}");
        assert!(message.contains(words), "{message}");
    }
}

/// A server that answers every call with 2, until the test ends.
fn answering_two(says_status: bool) -> u16 {
    // No compression, nine bytes, field 1 with the double.
    const TWO: &str = "\0\0\0\0\x09\x09\0\0\0\0\0\0\0@";
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let answer = service_fn(move |_: Request<Incoming>| async move {
                    let mut response = Response::new(TWO.to_owned());
                    if says_status {
                        response.headers_mut().insert("grpc-status", HeaderValue::from_static("0"));
                    }
                    Ok::<_, Infallible>(response)
                });
                tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer));
            }
        });
    });
    port
}
