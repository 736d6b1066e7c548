//! QUIC, HTTP/3 and bare UDP, client against server, over the loopback interface.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection as QuicConnection, VarInt};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::LocalSet;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::pattern;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{
    ClientSpec, ClientTls, Congestion, ConnectionPolicy, Expect, Feature, Request, Resumption, ServerSpec, ServerTls,
    Transport as Settings,
};

use crate::client::control::{Control, Ended};
use crate::client::h3::H3Transport;
use crate::client::multiplexed::Dial;
use crate::client::quic::QuicTransport;
use crate::client::transport::{Answer, Connection, Failure, Opened, Transport};
use crate::client::udp::UdpTransport;
use crate::raw;
use crate::refusal::Refusal;
use crate::server::{self, Bound, Site, Stop};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Certificate, key and documents.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        std::fs::write(folder.path().join("certificate.pem"), certificate.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        std::fs::write(folder.path().join("root/3000.bin"), pattern::body(3000)).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn server_spec(&self, protocol: Protocol, resumption: Resumption) -> ServerSpec {
        ServerSpec {
            tls: protocol.is_secure().then(|| ServerTls {
                certificate: self.path("certificate.pem"),
                key: self.path("key.pem"),
                key_log: None,
                resumption: resumption != Resumption::None,
                early_data: resumption == Resumption::ZeroRtt,
            }),
            document_root: Some(self.path("root")),
            features: vec![Feature::Files, Feature::Echo, Feature::Bytes, Feature::Delay],
            ..ServerSpec::plain(protocol)
        }
    }

    fn client_spec(&self, protocol: Protocol, port: u16, method: &str, path: &str, body_size: u64) -> ClientSpec {
        ClientSpec {
            tls: protocol.is_secure().then(|| ClientTls::trusting(self.path("certificate.pem"))),
            request: Request { method: method.to_owned(), body_size, ..Request::get(path) },
            results: self.path("results"),
            threads: Some(1),
            ..ClientSpec::plain(protocol, port)
        }
    }
}

/// A server that runs until it is dropped.
struct Server {
    runtime: Option<Runtime>,
    port: u16,
    ask: watch::Sender<bool>,
    running: Option<tokio::task::JoinHandle<()>>,
}

impl Server {
    fn start(spec: &ServerSpec) -> Self {
        Self::bind(|stop| async {
            let site = Arc::new(Site::new(spec).unwrap());
            crate::builtin::bind(spec.clone(), site, stop).await
        })
    }

    /// A QUIC server that misbehaves on its connections.
    fn odd<F>(spec: &ServerSpec, serve: fn(QuicConnection) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::bind(|stop| async move { server::quic::bind_with(spec, stop, 0, serve) })
    }

    fn bind<F: Future<Output = Result<Bound, Refusal>>>(bind: impl FnOnce(Stop) -> F + Send) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (ask, stop) = Stop::channel();
        let bound = on_another_thread(|| runtime.block_on(bind(stop)).unwrap());
        let running = runtime.spawn(bound.run);
        Self { runtime: Some(runtime), port: bound.port, ask, running: Some(running) }
    }

    /// Stops it and waits until its port is free.
    fn stop(mut self) {
        self.ask.send(true).unwrap();
        if let (Some(runtime), Some(running)) = (self.runtime.take(), self.running.take()) {
            on_another_thread(|| {
                runtime.block_on(running).unwrap();
                // The port is free once the last task on it is dropped, which this waits for.
                drop(runtime);
            });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Blocks on another thread, since a client's runtime may be running on this one.
fn on_another_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

fn on_a_client_thread<R>(work: impl Future<Output = R>) -> R {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, work)
}

/// Sends one request on a connection of its own. Returns the answer, the body and the kind of handshake.
async fn once<T: Transport>(transport: &T) -> Result<(Answer, Vec<u8>, Option<Handshake>), Failure> {
    let Opened { mut connection, .. } = transport.connect().await?;
    let mut body = Vec::new();
    let answer = connection.request(0, Some(&mut |bytes| body.extend_from_slice(bytes))).await?;
    let handshake = connection.handshake();
    connection.close().await;
    Ok((answer, body, handshake))
}

fn request<T: Transport>(spec: &ClientSpec) -> Result<(Answer, Vec<u8>, Option<Handshake>), Failure> {
    on_a_client_thread(async {
        let transport = T::build(spec).map_err(|refusal| Failure::new(ErrorKind::Other, refusal.to_string()))?;
        once(&transport).await
    })
}

fn every_policy<T: Transport>(protocol: Protocol, requests: &[(&str, &str, u64, u64)]) {
    let fixture = Fixture::new();
    let mut server_spec = fixture.server_spec(protocol, Resumption::None);
    if protocol.uses_quic() {
        // Less than the larger bodies, so that both sides wait for credit.
        server_spec.transport.stream_window = Some(50_000);
    }
    let server = Server::start(&server_spec);
    for (method, path, body_size, size) in requests {
        let mut spec = fixture.client_spec(protocol, server.port, method, path, *body_size);
        spec.transport = server_spec.transport.clone();
        for connections in [ConnectionPolicy::PerRequest, ConnectionPolicy::Persistent { connections: 1, streams: 4 }] {
            spec.connections = connections;
            on_a_client_thread(async {
                let transport = T::build(&spec).unwrap();
                let (answer, body, handshake) = once(&transport).await.unwrap();
                assert_eq!(answer.bytes_in, *size, "{path}");
                assert!(body == pattern::body(*size as usize), "{path}");
                assert_eq!(answer.status, protocol.is_http().then_some(200), "{path}");
                assert!(answer.first_byte <= answer.last_byte);
                assert_eq!(handshake, protocol.is_secure().then_some(Handshake::Full));
                let mut handle = transport.connect().await.unwrap().connection;
                for _ in 0..3 {
                    assert_eq!(handle.request(0, None).await.unwrap().bytes_in, *size);
                }
                if let Some(mut other) = handle.another() {
                    let both = tokio::join!(handle.request(0, None), other.request(0, None));
                    assert_eq!((both.0.unwrap().bytes_in, both.1.unwrap().bytes_in), (*size, *size));
                    other.close().await;
                    assert!(!handle.is_open());
                }
            });
        }
    }
    server.stop();
}

#[test]
fn raw_quic_answers_under_every_connection_policy() {
    let requests = [("GET", "/bytes/0", 0, 0), ("GET", "/bytes/300000", 0, 300_000), ("POST", "/", 300_000, 300_000)];
    every_policy::<QuicTransport>(Protocol::Quic, &requests);
    every_policy::<QuicTransport>(Protocol::Quic, &[("GET", "/delay/1000", 0, 0)]);
}

#[test]
fn http3_answers_under_every_connection_policy() {
    every_policy::<H3Transport>(
        Protocol::H3,
        &[
            ("GET", "/3000.bin", 0, 3000),
            ("GET", "/bytes/0", 0, 0),
            ("GET", "/bytes/300000", 0, 300_000),
            ("POST", "/echo", 0, 0),
            ("POST", "/echo", 300_000, 300_000),
            ("GET", "/delay/1000", 0, 0),
        ],
    );
}

#[test]
fn bare_udp_answers_under_every_connection_policy() {
    let requests = [
        ("GET", "/bytes/0", 0, 0),
        ("GET", "/bytes/50000", 0, 50_000),
        ("POST", "/", 50_000, 50_000),
        ("GET", "/delay/1000", 0, 0),
    ];
    every_policy::<UdpTransport>(Protocol::Udp, &requests);
}

#[test]
fn http3_reports_statuses() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture.server_spec(Protocol::H3, Resumption::None));
    for (method, path, body_size, status) in [
        ("GET", "/none", 0, 404),
        ("POST", "/none", 100_000, 405),
        ("GET", "/echo", 0, 405),
        ("HEAD", "/bytes/9", 0, 200),
    ] {
        let spec = fixture.client_spec(Protocol::H3, server.port, method, path, body_size);
        let (answer, body, _) = request::<H3Transport>(&spec).unwrap();
        assert_eq!((answer.status, body.len()), (Some(status), 0), "{method} {path}");
    }
}

fn handshakes<T: Transport>(protocol: Protocol) {
    let fixture = Fixture::new();
    for (resumption, then) in [
        (Resumption::None, Handshake::Full),
        (Resumption::Resume, Handshake::Resumed),
        (Resumption::ZeroRtt, Handshake::EarlyAccepted),
    ] {
        let mut server_spec = fixture.server_spec(protocol, resumption);
        let server = Server::start(&server_spec);
        let mut spec = fixture.client_spec(protocol, server.port, "GET", "/bytes/100000", 0);
        spec.resumption = resumption;
        on_a_client_thread(async {
            let transport = T::build(&spec).unwrap();
            assert_eq!(
                once(&transport).await.unwrap().2,
                Some(Handshake::Full),
                "{resumption:?}: nothing to resume yet"
            );
            assert_eq!(transport.tickets() > 0, resumption != Resumption::None);
            for _ in 0..5 {
                let (answer, body, handshake) = once(&transport).await.unwrap();
                assert_eq!(handshake, Some(then), "{resumption:?}");
                assert_eq!(answer.bytes_in, 100_000);
                assert!(body == pattern::body(100_000));
            }
            // A replacement server does not know the client's tickets.
            server.stop();
            server_spec.port = spec.port;
            let server = Server::start(&server_spec);
            let (answer, body, handshake) = once(&transport).await.unwrap();
            let expected = if resumption == Resumption::ZeroRtt { Handshake::EarlyRejected } else { Handshake::Full };
            assert_eq!(handshake, Some(expected), "{resumption:?}");
            assert_eq!(answer.bytes_in, 100_000);
            assert!(body == pattern::body(100_000), "sent again, and answered once");
            server.stop();
        });
    }
}

#[test]
fn raw_quic_reports_the_handshake_of_each_connection() {
    handshakes::<QuicTransport>(Protocol::Quic);
}

#[test]
fn http3_reports_the_handshake_of_each_connection() {
    handshakes::<H3Transport>(Protocol::H3);
}

#[test]
fn all_requests_of_a_connection_are_repeated_when_early_data_is_rejected() {
    let fixture = Fixture::new();
    let mut server_spec = fixture.server_spec(Protocol::H3, Resumption::ZeroRtt);
    let server = Server::start(&server_spec);
    let mut spec = fixture.client_spec(Protocol::H3, server.port, "GET", "/bytes/1000", 0);
    spec.resumption = Resumption::ZeroRtt;
    on_a_client_thread(async {
        let transport = H3Transport::build(&spec).unwrap();
        once(&transport).await.unwrap();
        server.stop();
        server_spec.port = spec.port;
        let _server = Server::start(&server_spec);
        let mut first = transport.connect().await.unwrap().connection;
        let mut second = first.another().unwrap();
        let (one, two) = tokio::join!(first.request(0, None), second.request(0, None));
        assert_eq!((one.unwrap().bytes_in, two.unwrap().bytes_in), (1000, 1000));
        assert_eq!(second.handshake(), Some(Handshake::EarlyRejected));
        assert_eq!(second.request(0, None).await.unwrap().bytes_in, 1000);
    });
}

#[test]
fn settings_are_effective_and_reported_by_both_sides() {
    let fixture = Fixture::new();
    let settings = Settings {
        congestion: Some(Congestion::Bbr),
        stream_window: Some(60_000),
        connection_window: Some(100_000),
        udp_send_buffer: Some(100_000),
        udp_receive_buffer: Some(120_000),
        max_udp_payload: Some(1300),
        gso: Some(false),
        gro: Some(false),
        ..Settings::default()
    };
    let mut server_spec = fixture.server_spec(Protocol::H3, Resumption::None);
    server_spec.transport = settings.clone();
    let (runtime, (_ask, stop)) = (Runtime::new().unwrap(), Stop::channel());
    let site = Arc::new(Site::new(&server_spec).unwrap());
    let Bound { port, configured: of_server, run, .. } =
        runtime.block_on(crate::builtin::bind(server_spec, site, stop)).unwrap();
    runtime.spawn(run);
    let mut spec = fixture.client_spec(Protocol::H3, port, "GET", "/bytes/1000000", 0);
    spec.transport = settings;
    let of_client = on_a_client_thread(async {
        let transport = H3Transport::build(&spec).unwrap();
        assert_eq!(once(&transport).await.unwrap().0.bytes_in, 1_000_000);
        transport.configured()
    });
    for configured in [&of_server, &of_client] {
        assert_eq!(configured["congestion"], "bbr");
        assert_eq!(configured["stream_window"], 60_000);
        assert_eq!(configured["connection_window"], 100_000);
        assert_eq!(configured["udp_send_buffer"], 100_000);
        assert_eq!(configured["udp_receive_buffer"], 120_000);
        assert_eq!(configured["max_udp_payload"], 1300);
        assert_eq!((configured["gso"].as_bool(), configured["gro"].as_bool()), (Some(false), Some(false)));
    }
    assert_eq!(of_client["alpn"], "h3");
    assert_eq!(of_client["cipher"], "TLS_AES_128_GCM_SHA256");
    assert_eq!(of_client["group"], "X25519");
    assert_eq!(of_client["udp_payload"], 1300);
    assert!(of_client["certificate_chain_bytes"].as_u64().unwrap() > 200);
}

#[test]
fn payloads_above_an_ethernet_frame_are_found_after_the_handshake() {
    let fixture = Fixture::new();
    for size in [16_000, 65_507] {
        let mut server_spec = fixture.server_spec(Protocol::H3, Resumption::None);
        server_spec.transport = Settings { max_udp_payload: Some(size), ..Settings::default() };
        let (runtime, (_ask, stop)) = (Runtime::new().unwrap(), Stop::channel());
        let site = Arc::new(Site::new(&server_spec).unwrap());
        let Bound { port, run, .. } = runtime.block_on(crate::builtin::bind(server_spec.clone(), site, stop)).unwrap();
        runtime.spawn(run);
        let mut spec = fixture.client_spec(Protocol::H3, port, "GET", "/bytes/4000000", 0);
        spec.transport = server_spec.transport;
        let of_client = on_a_client_thread(async {
            let transport = H3Transport::build(&spec).unwrap();
            assert_eq!(once(&transport).await.unwrap().0.bytes_in, 4_000_000);
            transport.configured()
        });
        assert_eq!((&of_client["max_udp_payload"], &of_client["initial_udp_payload"]), (&size.into(), &1200.into()));
    }
}

#[test]
fn settings_that_quic_does_not_have_are_unsupported() {
    let fixture = Fixture::new();
    let none = Settings::default;
    for settings in [
        Settings { no_delay: Some(true), ..none() },
        Settings { fast_open: Some(false), ..none() },
        Settings { max_udp_payload: Some(1199), ..none() },
        Settings { stream_window: Some(0), ..none() },
        Settings { connection_window: Some(1 << 62), ..none() },
        Settings { udp_receive_buffer: Some(1 << 40), ..none() },
    ] {
        let mut spec = fixture.client_spec(Protocol::Quic, 9, "GET", "/", 0);
        spec.transport = settings.clone();
        let refusal = on_a_client_thread(async { QuicTransport::build(&spec).err().unwrap() });
        assert!(matches!(refusal, Refusal::Unsupported(_)), "{settings:?}: {refusal}");
    }
}

#[test]
fn failures_have_distinct_kinds() {
    let fixture = Fixture::new();
    let free = UdpSocket::bind(SocketAddr::new(HOST, 0)).unwrap().local_addr().unwrap().port();
    let spec = |protocol, port| fixture.client_spec(protocol, port, "GET", "/bytes/1000", 0);
    let refused = |failure: Failure| assert_eq!(failure.kind, ErrorKind::Refused, "{}", failure.message);
    refused(request::<QuicTransport>(&spec(Protocol::Quic, free)).unwrap_err());
    refused(request::<H3Transport>(&spec(Protocol::H3, free)).unwrap_err());
    refused(request::<UdpTransport>(&spec(Protocol::Udp, free)).unwrap_err());

    let server = Server::start(&fixture.server_spec(Protocol::H3, Resumption::None));
    let stranger = Fixture::new();
    let mut untrusted = spec(Protocol::H3, server.port);
    untrusted.tls.as_mut().unwrap().trust_anchor = Some(stranger.path("certificate.pem"));
    assert_eq!(request::<H3Transport>(&untrusted).unwrap_err().kind, ErrorKind::Certificate);
    let mut misnamed = spec(Protocol::H3, server.port);
    misnamed.server_name = "other.test".to_owned();
    assert_eq!(request::<H3Transport>(&misnamed).unwrap_err().kind, ErrorKind::Certificate);
    let other_protocol = request::<QuicTransport>(&spec(Protocol::Quic, server.port)).unwrap_err();
    assert_eq!(other_protocol.kind, ErrorKind::Protocol, "{}", other_protocol.message);
}

#[test]
fn early_data_to_a_port_without_a_listener_is_refused() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture.server_spec(Protocol::Quic, Resumption::ZeroRtt));
    let mut spec = fixture.client_spec(Protocol::Quic, server.port, "GET", "/bytes/1000", 0);
    spec.resumption = Resumption::ZeroRtt;
    on_a_client_thread(async {
        let transport = QuicTransport::build(&spec).unwrap();
        once(&transport).await.unwrap();
        server.stop();
        assert_eq!(once(&transport).await.unwrap_err().kind, ErrorKind::Refused);
    });
}

#[test]
fn truncated_and_reset_raw_responses_have_distinct_kinds() {
    let fixture = Fixture::new();
    let server_spec = fixture.server_spec(Protocol::Quic, Resumption::None);
    let check = |server: Server, kind: ErrorKind| {
        let spec = fixture.client_spec(Protocol::Quic, server.port, "GET", "/bytes/1000", 0);
        let failure = request::<QuicTransport>(&spec).unwrap_err();
        assert_eq!(failure.kind, kind, "{}", failure.message);
    };
    let cut = Server::odd(&server_spec, |connection| async move {
        let (mut send, _receive) = connection.accept_bi().await.unwrap();
        send.write_all(&[0; 10]).await.unwrap();
        send.finish().unwrap();
        connection.closed().await;
    });
    check(cut, ErrorKind::Truncated);
    let reset = Server::odd(&server_spec, |connection| async move {
        let (mut send, _receive) = connection.accept_bi().await.unwrap();
        send.write_all(&[0; 10]).await.unwrap();
        send.reset(VarInt::from_u32(7)).unwrap();
        connection.closed().await;
    });
    check(reset, ErrorKind::Reset);
    let closed = Server::odd(&server_spec, |connection| async move {
        let _stream = connection.accept_bi().await.unwrap();
        connection.close(VarInt::from_u32(7), b"");
    });
    check(closed, ErrorKind::Reset);
    let long = Server::odd(&server_spec, |connection| async move {
        let (mut send, _receive) = connection.accept_bi().await.unwrap();
        send.write_all(&[0; 2000]).await.unwrap();
        send.finish().unwrap();
        connection.closed().await;
    });
    check(long, ErrorKind::Digest);
}

/// Answers a connection's only request with these bytes of a QUIC stream, and ends or resets the stream.
async fn answer_http3(connection: QuicConnection, bytes: &[u8], reset: bool) {
    let mut control = connection.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0]).await.unwrap();
    let (mut send, _receive) = connection.accept_bi().await.unwrap();
    send.write_all(bytes).await.unwrap();
    if reset {
        send.reset(VarInt::from_u32(0x102)).unwrap();
    } else {
        send.finish().unwrap();
    }
    connection.closed().await;
}

/// A HEADERS frame with `:status 200` (RFC 9204, static table, entry 25) and `content-length: 10` as a literal.
const HEAD: [u8; 10] = [0x01, 8, 0, 0, 0xc0 | 25, 0x54, 2, b'1', b'0', 0];

#[test]
fn truncated_and_reset_http3_responses_have_distinct_kinds() {
    let fixture = Fixture::new();
    let server_spec = fixture.server_spec(Protocol::H3, Resumption::None);
    let check = |server: Server, kind: ErrorKind| {
        let spec = fixture.client_spec(Protocol::H3, server.port, "GET", "/bytes/10", 0);
        let failure = request::<H3Transport>(&spec).unwrap_err();
        assert_eq!(failure.kind, kind, "{}", failure.message);
    };
    check(Server::odd(&server_spec, |c| answer_http3(c, b"", false)), ErrorKind::Truncated);
    check(Server::odd(&server_spec, |c| async { answer_http3(c, &HEAD[..4], false).await }), ErrorKind::Truncated);
    check(Server::odd(&server_spec, |c| async { answer_http3(c, &HEAD[..9], true).await }), ErrorKind::Reset);
}

#[test]
fn a_raw_request_that_is_not_as_announced_is_reset() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture.server_spec(Protocol::Quic, Resumption::None));
    let spec = fixture.client_spec(Protocol::Quic, server.port, "GET", "/bytes/10", 0);
    on_a_client_thread(async {
        let dialer = crate::client::dial::Dialer::new(&spec).unwrap();
        let ((), link, _) = dialer.dial().await.unwrap();
        for bytes in [&b"short"[..], &raw::Header { wanted: 1, body: 2, delay_us: 0 }.encode()] {
            let (mut send, mut receive) = link.connection.open_bi().await.unwrap();
            send.write_chunk(Bytes::copy_from_slice(bytes)).await.unwrap();
            send.finish().unwrap();
            assert!(matches!(receive.read_chunk(10, true).await, Err(quinn::ReadError::Reset(_))));
        }
    });
}

#[test]
fn a_late_datagram_of_an_earlier_request_is_ignored() {
    let fixture = Fixture::new();
    let server = UdpSocket::bind(SocketAddr::new(HOST, 0)).unwrap();
    let port = server.local_addr().unwrap().port();
    let (arrived, has_arrived) = tokio::sync::oneshot::channel();
    let peer = std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        let mut receive = || {
            let (length, peer) = server.recv_from(&mut buffer).unwrap();
            (buffer[..length].to_vec(), peer)
        };
        let first = receive();
        arrived.send(()).unwrap();
        let requests = [first, receive()];
        // Both answers come after the second request: the first with a wrong byte, out of order.
        for ((request, peer), byte) in requests.iter().zip([0xff, 7]) {
            let mut response = request[..40].to_vec();
            response[16..24].copy_from_slice(&1_u64.to_be_bytes());
            response.push(byte);
            server.send_to(&response, peer).unwrap();
        }
    });
    let spec = fixture.client_spec(Protocol::Udp, port, "GET", "/bytes/1", 0);
    on_a_client_thread(async {
        let transport = UdpTransport::build(&spec).unwrap();
        let mut connection = transport.connect().await.unwrap().connection;
        // Dropped, as by the engine at a deadline.
        tokio::select! {
            _ = connection.request(0, None) => panic!("nothing was sent yet"),
            arrived = has_arrived => arrived.unwrap(),
        }
        let mut body = Vec::new();
        connection.request(0, Some(&mut |bytes| body.extend_from_slice(bytes))).await.unwrap();
        assert_eq!(body, [7]);
    });
    peer.join().unwrap();
}

#[test]
fn a_response_of_bare_udp_that_does_not_fit_the_receive_buffer_is_lost() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture.server_spec(Protocol::Udp, Resumption::None));
    let mut spec = fixture.client_spec(Protocol::Udp, server.port, "GET", "/bytes/5000000", 0);
    spec.transport.udp_receive_buffer = Some(5000);
    spec.timeouts.request_ns = 300_000_000;
    // The engine sends a check request if the spec has an expectation.
    spec.request.expect = Some(Expect { status: 200, body_size: 5_000_000, sha256: String::new() });
    let driver = crate::builtin::driver(spec.protocol);
    let mut control = Control::start(spec, driver, None).map_err(|refusal| refusal.to_string()).unwrap();
    let Err(Ended::Failed(failure)) = control.open() else { panic!("the check request must fail") };
    assert_eq!(failure.kind, ErrorKind::Lost, "{}", failure.message);
}

#[test]
fn a_client_that_must_send_another_key_share_is_answered_with_early_data_enabled() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture.server_spec(Protocol::H3, Resumption::ZeroRtt));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(fixture.path("certificate.pem")).unwrap()).unwrap();
    // The initial key share is of the first group, which the server does not support.
    let kx_groups = vec![rustls::crypto::ring::kx_group::SECP256R1, rustls::crypto::ring::kx_group::X25519];
    let provider = rustls::crypto::CryptoProvider { kx_groups, ..rustls::crypto::ring::default_provider() };
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider));
    let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    on_a_client_thread(async {
        let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        let endpoint = quinn::Endpoint::client(SocketAddr::new(HOST, 0)).unwrap();
        let connecting = endpoint.connect_with(config, SocketAddr::new(HOST, server.port), "localhost").unwrap();
        let connection = h3_quinn::Connection::new(connecting.await.unwrap());
        let (mut driver, mut requests) = h3::client::new(connection).await.unwrap();
        tokio::task::spawn_local(async move { driver.wait_idle().await });
        let request = http::Request::get("https://localhost/bytes/1000").body(()).unwrap();
        let mut stream = requests.send_request(request).await.unwrap();
        stream.finish().await.unwrap();
        let response = tokio::time::timeout(Duration::from_secs(20), stream.recv_response()).await;
        assert_eq!(response.expect("an answer").unwrap().status(), 200);
    });
}
