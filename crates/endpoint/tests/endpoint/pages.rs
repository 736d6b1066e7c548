//! The server's behaviour for pages: early hints, delay, and the order of responses.

use std::fs;
use std::future::poll_fn;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use http::{HeaderMap, Request, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use wirelab_contract::event::Event;
use wirelab_contract::page::{Priorities, ServedPage};
use wirelab_contract::pattern;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{Feature, ServerSpec};

use crate::support::{Endpoint, Place};

const MS: u64 = 1_000_000;
const HOUR: u64 = 3_600_000 * MS;
const STREAM_WINDOW: u32 = 8 << 20;
/// Time-out of a server's answer.
const TIMEOUT: Duration = Duration::from_secs(60);
const HINT: &str = "</a/1.css>; rel=preload; as=style";

fn spec(place: &Place, protocol: Protocol, think_ns: u64, hints: &[&str]) -> ServerSpec {
    fs::create_dir_all(place.path("documents/a")).unwrap();
    fs::write(place.path("documents/a/index.html"), "<!doctype html>").unwrap();
    let page = ServedPage {
        document: "/a/index.html".to_owned(),
        think_ns,
        early_hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
        priorities: None,
    };
    ServerSpec { features: vec![Feature::Pages], page: Some(page), ..place.server_spec(protocol) }
}

fn trusting(place: &Place, alpn: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(place.path("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]);
    let mut config = builder.unwrap().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    config
}

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn block_on<R>(work: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn ask_for(path: &str) -> Request<()> {
    Request::get(format!("https://localhost{path}")).body(()).unwrap()
}

/// The hints with the final response, or the hints alone if the test does not wait for the document.
type Seen = (Vec<String>, Option<(StatusCode, HeaderMap)>);

fn links(fields: &HeaderMap) -> Vec<String> {
    fields.get_all("link").iter().map(|link| link.to_str().unwrap().to_owned()).collect()
}

fn over_http1(place: &Place, port: u16, waits: bool) -> Seen {
    let client = ClientConnection::new(Arc::new(trusting(place, "http/1.1")), "localhost".try_into().unwrap()).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(client, TcpStream::connect(at(port)).unwrap()));
    stream.get_mut().write_all(b"GET /a/index.html HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut head = || {
        let lines = stream.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty());
        let mut lines = lines.collect::<Vec<_>>().into_iter();
        let status: StatusCode = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let field = |line: String| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.parse::<http::HeaderName>().unwrap(), value.parse::<http::HeaderValue>().unwrap())
        };
        (status, lines.map(field).collect::<HeaderMap>())
    };
    let first = head();
    match first.0 {
        StatusCode::EARLY_HINTS => (links(&first.1), waits.then(head)),
        _ => (Vec::new(), Some(first)),
    }
}

fn over_http2(place: &Place, port: u16, waits: bool) -> Seen {
    block_on(async {
        let tcp = tokio::net::TcpStream::connect(at(port)).await.unwrap();
        let connector = TlsConnector::from(Arc::new(trusting(place, "h2")));
        let stream = connector.connect("localhost".try_into().unwrap(), tcp).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        // The task ends with the test.
        tokio::spawn(async move { drop(connection.await) });
        let (mut response, _) = sender.send_request(ask_for("/a/index.html"), true).unwrap();
        let mut hints = Vec::new();
        while let Some(interim) = poll_fn(|cx| response.poll_informational(cx)).await {
            let interim = interim.unwrap();
            assert_eq!(interim.status(), StatusCode::EARLY_HINTS);
            hints.extend(links(interim.headers()));
            if !waits {
                return (hints, None);
            }
        }
        let (head, _) = response.await.unwrap().into_parts();
        (hints, Some((head.status, head.headers)))
    })
}

async fn http3(place: &Place, port: u16) -> SendRequest<h3_quinn::OpenStreams, Bytes> {
    let crypto = QuicClientConfig::try_from(trusting(place, "h3")).unwrap();
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = quinn::TransportConfig::default();
    // Windows as large as browsers', which accept any of these files without new credit.
    transport.stream_receive_window(STREAM_WINDOW.into());
    config.transport_config(Arc::new(transport));
    let endpoint = quinn::Endpoint::client(at(0)).unwrap();
    let connection = endpoint.connect_with(config, at(port), "localhost").unwrap().await.unwrap();
    let (mut driver, sender) = h3::client::new(h3_quinn::Connection::new(connection)).await.unwrap();
    tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    sender
}

fn over_http3(place: &Place, port: u16, waits: bool) -> Seen {
    block_on(async {
        let mut sender = http3(place, port).await;
        let mut stream = sender.send_request(ask_for("/a/index.html")).await.unwrap();
        stream.finish().await.unwrap();
        let (first, _) = stream.recv_response().await.unwrap().into_parts();
        if first.status != StatusCode::EARLY_HINTS {
            return (Vec::new(), Some((first.status, first.headers)));
        }
        if !waits {
            return (links(&first.headers), None);
        }
        let (last, _) = stream.recv_response().await.unwrap().into_parts();
        (links(&first.headers), Some((last.status, last.headers)))
    })
}

/// A request for the document that waits for the response, or not.
type Ask = fn(&Place, u16, bool) -> Seen;

const VERSIONS: [(Protocol, Ask); 3] =
    [(Protocol::H1, over_http1), (Protocol::H2, over_http2), (Protocol::H3, over_http3)];

#[test]
fn hints_come_while_the_server_thinks_and_the_document_when_it_has_thought() {
    const THINK: Duration = Duration::from_millis(50);
    let place = Place::new();
    for (protocol, ask) in VERSIONS {
        let (server, port) = Endpoint::serving(&spec(&place, protocol, HOUR, &[HINT, HINT]));
        assert_eq!(ask(&place, port, false), (vec![HINT.to_owned(); 2], None), "{protocol}");
        drop(server);
        for hints in [&[][..], &[HINT]] {
            let (server, port) = Endpoint::serving(&spec(&place, protocol, THINK.as_nanos() as u64, hints));
            let asked = Instant::now();
            let (found, answer) = ask(&place, port, true);
            assert!(asked.elapsed() >= THINK, "{protocol}");
            let (status, fields) = answer.unwrap();
            assert_eq!((found.len(), status), (hints.len(), StatusCode::OK), "{protocol}");
            for (name, value) in
                [("content-type", "text/html"), ("content-length", "15"), ("cache-control", "max-age=3600")]
            {
                assert_eq!(fields.get(name).unwrap(), value, "{protocol}");
            }
            assert_eq!(server.stop(), 1, "{protocol}");
        }
    }
}

/// The server of one of several hosts serves the listed files, with or without further settings of the page.
#[test]
fn listed_answers_are_served_over_every_version() {
    let place = Place::new();
    let (list, body) = (place.path("answers.json"), place.path("0"));
    let text = r#"[{ "path": "/a/index.html", "status": 203, "fields": [["content-type", "text/html"], ["timing-allow-origin", "*"]], "body": "0" }]"#;
    fs::write(&list, text).unwrap();
    fs::write(body, "<!doctype html>").unwrap();
    for (protocol, ask) in VERSIONS {
        let paged = spec(&place, protocol, 0, &[]);
        for page in [None, paged.page.clone()] {
            let kept = page.as_ref().map(|_| "max-age=3600");
            let spec = ServerSpec { answers: Some(list.clone()), document_root: None, page, ..paged.clone() };
            let (server, port) = Endpoint::serving(&spec);
            let (status, fields) = ask(&place, port, true).1.unwrap();
            assert_eq!(status.as_u16(), 203, "{protocol}");
            let field = |name: &str| fields.get(name).map(|value| value.to_str().unwrap());
            assert_eq!(field("content-type"), Some("text/html"), "{protocol}");
            assert_eq!((field("content-length"), field("timing-allow-origin")), (Some("15"), Some("*")), "{protocol}");
            assert_eq!(field("cache-control"), kept, "{protocol}");
            assert_eq!(server.stop(), 1, "{protocol}");
        }
    }
    let of_tcp = ServerSpec { answers: Some(list), ..place.server_spec(Protocol::Tcp) };
    assert!(Endpoint::server(&of_tcp).refused().contains("`tcp` has no pages"));
}

/// The port of a relay to `port`. It holds back the server's datagrams while the gate is closed.
async fn way_to(port: u16, mut gate_is_open: watch::Receiver<bool>) -> u16 {
    let (front, back) = (UdpSocket::bind(at(0)).await.unwrap(), UdpSocket::bind(at(0)).await.unwrap());
    back.connect(at(port)).await.unwrap();
    let way = front.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut client, mut there, mut here) = (at(0), [0; 1 << 16], [0; 1 << 16]);
        loop {
            let is_open = *gate_is_open.borrow_and_update();
            tokio::select! {
                changed = gate_is_open.changed() => if changed.is_err() { return },
                received = front.recv_from(&mut there) => {
                    let (count, from) = received.unwrap();
                    client = from;
                    back.send(&there[..count]).await.unwrap();
                }
                received = back.recv(&mut here), if is_open => {
                    front.send_to(&here[..received.unwrap()], client).await.unwrap();
                }
            }
        }
    });
    way
}

/// Waits until a counting server has answered this number of requests. Their whole responses are then in the queues of
/// its connections, whether received or not.
async fn answered(server: &mut Endpoint, requests: u64) {
    let ask = async {
        loop {
            server.say("count");
            match server.event() {
                Event::Counted { requests: count } if count >= requests => return,
                Event::Counted { .. } => yield_now().await,
                other => panic!("not a count: {other:?}"),
            }
        }
    };
    timeout(TIMEOUT, ask).await.unwrap_or_else(|_| panic!("{requests} responses are not in the queue"));
}

/// The order in which responses end: three large responses that are not urgent, one of them started, and a larger
/// urgent one. Without news from the client, even a fast server sends only a fraction of a response. All of them
/// therefore wait in its queue, which has room for 10 MB, when the gate opens.
fn order(place: &Place, priorities: Priorities) -> Vec<String> {
    let mut spec = ServerSpec { counts: true, ..spec(place, Protocol::H3, 0, &[]) };
    spec.page.as_mut().unwrap().priorities = Some(priorities);
    for (name, size) in [("0.jpg", 2 << 20), ("1.jpg", 2 << 20), ("2.jpg", 2 << 20), ("3.css", 3 << 20)] {
        fs::write(place.path(&format!("documents/a/{name}")), pattern::body(size)).unwrap();
    }
    let (mut server, port) = Endpoint::serving(&spec);
    let ended = Mutex::new(Vec::new());
    block_on(async {
        let (gate, gate_is_open) = watch::channel(true);
        let sender = http3(place, way_to(port, gate_is_open).await).await;
        let begin = async |name: &str, priority: &str| {
            let mut request = ask_for(&format!("/a/{name}"));
            request.headers_mut().insert("priority", priority.parse().unwrap());
            let mut stream = sender.clone().send_request(request).await.unwrap();
            stream.finish().await.unwrap();
            (name.to_owned(), stream)
        };
        let ended = &ended;
        let receive = async |(name, mut stream): (String, h3::client::RequestStream<_, Bytes>)| {
            assert_eq!(stream.recv_response().await.unwrap().status(), StatusCode::OK);
            let mut size = 0;
            while let Some(piece) = stream.recv_data().await.unwrap() {
                size += piece.remaining();
            }
            assert!(size >= 2 << 20, "{name} is whole");
            ended.lock().unwrap().push(name);
        };
        gate.send(false).unwrap();
        let first = begin("0.jpg", "u=5").await;
        let (second, third) = (begin("1.jpg", "u=5, i").await, begin("2.jpg", "u=5, i").await);
        answered(&mut server, 3).await;
        let style = begin("3.css", "u=0").await;
        answered(&mut server, 4).await;
        gate.send(true).unwrap();
        tokio::join!(receive(first), receive(second), receive(third), receive(style));
    });
    server.stop();
    ended.into_inner().unwrap()
}

#[test]
fn an_urgent_response_overtakes_earlier_ones_if_priorities_are_obeyed() {
    let place = Place::new();
    let obeyed = order(&place, Priorities::Obeyed);
    assert_eq!(obeyed[..2], ["3.css", "0.jpg"], "the urgent response, then the first response that is not incremental");
    let ignored = order(&place, Priorities::Ignored);
    assert_eq!(ignored[3], "3.css", "where all take turns the largest is the last: {ignored:?}");
}

#[test]
fn unsupported_settings_of_a_page_are_refused_by_name() {
    let place = Place::new();
    let mut spec = spec(&place, Protocol::H2, 0, &[]);
    spec.page.as_mut().unwrap().priorities = Some(Priorities::Obeyed);
    assert!(Endpoint::server(&spec).refused().contains("h2, sends responses in turns"));
    spec.protocol = Protocol::H1;
    assert!(Endpoint::server(&spec).refused().contains("`priorities` is `obeyed`"));
    spec.page.as_mut().unwrap().priorities = Some(Priorities::Ignored);
    Endpoint::serving(&spec).0.stop();
    (spec.protocol, spec.tls) = (Protocol::Tcp, None);
    assert!(Endpoint::server(&spec).refused().contains("`tcp` has no pages"));
    spec.tls = place.server_spec(Protocol::H2).tls;
    (spec.protocol, spec.max_connection_age_ns) = (Protocol::H2, Some(MS));
    assert!(Endpoint::server(&spec).refused().contains("`max_connection_age_ns` is set beside `page`"));
    (spec.max_connection_age_ns, spec.page.as_mut().unwrap().early_hints) = (None, vec!["a\nb".to_owned()]);
    assert!(Endpoint::server(&spec).refused().contains("`early_hints`"));
}
