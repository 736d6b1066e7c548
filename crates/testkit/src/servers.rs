//! Servers to measure, built-in and hostile ones, with certificates.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use tempfile::TempDir;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{Feature, ServerSpec, ServerTls};

use crate::eventually;

/// A folder with the authority `ca.pem` and certificates that it signed, `NAME.pem` and `NAME.key`.
pub struct Place {
    dir: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// A place with the certificate `good` for localhost.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Self { dir, authority: authority("wirelab tests") };
        fs::write(place.path("ca.pem"), place.authority.pem()).unwrap();
        place.certificate("good", "localhost", 2099);
        place
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Adds another authority, which has signed no certificate.
    pub fn stranger(&self, name: &str) {
        fs::write(self.path(&format!("{name}.pem")), authority("a stranger").pem()).unwrap();
    }

    /// Adds a certificate for a name or address, valid to the end of a year.
    pub fn certificate(&self, name: &str, host: &str, last_year: i32) {
        self.signed(name, host, last_year, IsCa::NoCa);
    }

    /// Adds a certificate for a name that is one of an authority (CA:TRUE), which no server should have.
    pub fn certificate_of_authority(&self, name: &str, host: &str) {
        self.signed(name, host, 2099, IsCa::Ca(BasicConstraints::Unconstrained));
    }

    fn signed(&self, name: &str, host: &str, last_year: i32, is_ca: IsCa) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.is_ca = is_ca;
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(last_year, 12, 31);
        let leaf = params.signed_by(&key, &self.authority).unwrap();
        fs::write(self.path(&format!("{name}.pem")), leaf.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// The settings of a server with TLS 1.3, a certificate of the place, and these protocols of ALPN.
    pub fn tls(&self, certificate: &str, alpn: &[&str]) -> Arc<ServerConfig> {
        let chain = CertificateDer::from_pem_file(self.path(&format!("{certificate}.pem"))).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.path(&format!("{certificate}.key"))).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]);
        let mut config = builder.unwrap().with_no_client_auth().with_single_cert(vec![chain], key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The settings of a built-in server.
#[derive(Clone, Copy)]
pub struct Serve<'a> {
    pub protocol: Protocol,
    /// The address to listen at.
    pub address: IpAddr,
    /// The port; 0: any.
    pub port: u16,
    /// The name of a certificate in the place.
    pub certificate: &'a str,
    /// Whether it accepts 0-RTT.
    pub early_data: bool,
    /// The document root.
    pub root: Option<&'a Path>,
}

/// 127.0.0.1, any port, with session tickets and without 0-RTT.
pub fn serve(protocol: Protocol) -> Serve<'static> {
    Serve { protocol, address: Ipv4Addr::LOCALHOST.into(), port: 0, certificate: "good", early_data: false, root: None }
}

/// A built-in server in a process of its own.
pub struct Builtin {
    child: Child,
    events: BufReader<ChildStdout>,
    /// The port it listens at.
    pub port: u16,
}

impl Builtin {
    /// Starts a server and waits until it is ready.
    #[track_caller]
    pub fn start(place: &Place, wanted: Serve<'_>) -> Self {
        Self::try_start(place, wanted).unwrap_or_else(|event| panic!("the server did not get ready: {event}"))
    }

    fn try_start(place: &Place, wanted: Serve<'_>) -> Result<Self, Value> {
        let Serve { protocol, address, port, certificate, early_data, root } = wanted;
        let mut features = match protocol.is_grpc() {
            true => vec![Feature::Heron],
            false => vec![Feature::Echo, Feature::Bytes, Feature::Delay],
        };
        features.extend(root.map(|_| Feature::Files));
        let spec = ServerSpec {
            address,
            port,
            tls: protocol.is_secure().then(|| ServerTls {
                certificate: place.path(&format!("{certificate}.pem")),
                key: place.path(&format!("{certificate}.key")),
                key_log: None,
                resumption: true,
                early_data,
            }),
            document_root: root.map(Path::to_owned),
            features,
            threads: Some(1),
            ..ServerSpec::plain(protocol)
        };
        let path = place.path(&format!("server-{protocol}.json"));
        fs::write(&path, serde_json::to_string(&spec).unwrap()).unwrap();
        let mut command = Command::new(crate::program());
        command.args(["endpoint", "server", "--spec"]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut events = BufReader::new(child.stdout.take().unwrap());
        let ready = next_event(&mut events);
        let Some(port) = ready["port"].as_u64() else {
            child.wait().unwrap();
            return Err(ready);
        };
        Ok(Self { child, events, port: port.try_into().unwrap() })
    }

    /// HTTP/1.1 over TCP and HTTP/3 over UDP at the same port number, as on the web.
    #[track_caller]
    pub fn side_by_side(place: &Place) -> (Self, Self) {
        Self::side_by_side_with(place, serve(Protocol::H1))
    }

    /// A server over TCP, and HTTP/3 with the same documents over UDP at the same port number.
    #[track_caller]
    pub fn side_by_side_with(place: &Place, tcp: Serve<'_>) -> (Self, Self) {
        // Another program may use the UDP port of the same number.
        for _ in 0..10 {
            let first = Self::start(place, tcp);
            if let Ok(second) = Self::try_start(place, Serve { port: first.port, protocol: Protocol::H3, ..tcp }) {
                return (first, second);
            }
        }
        panic!("no port number was free for both TCP and UDP");
    }

    /// The largest resident memory of the server so far, in KiB.
    #[track_caller]
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Stops the server in order and returns the number of requests that it answered.
    #[track_caller]
    pub fn stop(mut self) -> u64 {
        drop(self.child.stdin.take());
        let done = next_event(&mut self.events);
        assert!(self.child.wait().unwrap().success());
        done["requests"].as_u64().unwrap_or_else(|| panic!("not the end of a server: {done}"))
    }
}

impl Drop for Builtin {
    fn drop(&mut self) {
        // The end of its standard input ends the server, so a failed test leaves no process behind.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn next_event(events: &mut impl BufRead) -> Value {
    let mut line = String::new();
    events.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("not an event: `{line}` ({error})"))
}

/// The reaction of a hostile server to every request.
#[derive(Clone)]
pub enum Conduct {
    /// Sends these bytes.
    Answer(String),
    /// Sends the first text for its first request, and the second for all others.
    AnswerThen(String, String),
    /// Sends these bytes and closes the connection.
    AnswerAndClose(String),
    /// Sends the first text for its first request. For all others it repeats the second one without end.
    AnswerThenFlood(String, String),
    /// Closes the connection.
    Close,
    /// Does not answer.
    Silence,
}

impl Conduct {
    /// A complete response, with these fields (each ending in CR LF) and an empty body.
    pub fn response(status: &str, fields: &str) -> String {
        format!("HTTP/1.1 {status}\r\n{fields}content-length: 0\r\n\r\n")
    }

    /// A response without a body.
    pub fn ok() -> Self {
        Self::Answer(Self::response("200 OK", ""))
    }

    /// A redirect to another host.
    pub fn redirect() -> Self {
        Self::Answer(Self::response("302 Found", "location: https://elsewhere.example/page\r\n"))
    }
}

/// A server of HTTP/1.1 on threads of the test. It records the requests.
pub struct Hostile {
    /// The port it listens at.
    pub port: u16,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    heads: Mutex<Vec<String>>,
    answering: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Hostile {
    /// A server on 127.0.0.1, without TLS.
    pub fn plain(conduct: Conduct) -> Self {
        Self::start("127.0.0.1", conduct, |tcp| tcp)
    }

    /// A server at localhost, with TLS.
    pub fn secure(place: &Place, certificate: &str, conduct: Conduct) -> Self {
        Self::secure_at(place, "127.0.0.1", certificate, conduct)
    }

    /// A server at an address, with TLS.
    pub fn secure_at(place: &Place, address: &str, certificate: &str, conduct: Conduct) -> Self {
        let config = place.tls(certificate, &["http/1.1"]);
        Self::start(address, conduct, move |tcp| {
            StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), tcp)
        })
    }

    fn start<S: Read + Write + 'static>(
        address: &str,
        conduct: Conduct,
        wrap: impl Fn(TcpStream) -> S + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Heard::default());
        let ear = Arc::clone(&heard);
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for tcp in listener.incoming() {
                let Ok(tcp) = tcp else { return };
                let (conduct, ear, wrap) = (conduct.clone(), Arc::clone(&ear), wrap.clone());
                std::thread::spawn(move || ear.attend(wrap(tcp), &conduct));
            }
        });
        Self { port, heard }
    }

    /// The heads of the requests so far, in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.heard.heads.lock().unwrap().clone()
    }

    /// The maximum number of requests in progress at the same time.
    pub fn most_at_once(&self) -> usize {
        self.heard.most_at_once.load(Ordering::SeqCst)
    }

    /// Waits until this number of requests has arrived.
    #[track_caller]
    pub fn wait_for(&self, requests: usize) {
        eventually(&format!("the arrival of {requests} requests"), || self.heads().len() >= requests);
    }
}

impl Heard {
    fn attend(&self, mut stream: impl Read + Write, conduct: &Conduct) {
        while let Some(head) = read_head(&mut stream) {
            if skip_body(&mut stream, &head).is_none() {
                return;
            }
            let number = {
                let mut heads = self.heads.lock().unwrap();
                heads.push(head);
                heads.len()
            };
            let now = self.answering.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(now, Ordering::SeqCst);
            let answer = match conduct {
                Conduct::Answer(text) | Conduct::AnswerAndClose(text) => text,
                Conduct::AnswerThen(first, _) | Conduct::AnswerThenFlood(first, _) if number == 1 => first,
                Conduct::AnswerThenFlood(_, others) => {
                    let many = others.repeat(1000);
                    while stream.write_all(many.as_bytes()).is_ok() {}
                    return;
                }
                Conduct::AnswerThen(_, others) => others,
                Conduct::Close => return,
                // Until the client closes the connection.
                Conduct::Silence => continue,
            };
            let sent = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush());
            self.answering.fetch_sub(1, Ordering::SeqCst);
            if sent.is_err() || matches!(conduct, Conduct::AnswerAndClose(_)) {
                return;
            }
        }
    }
}

/// Reads up to the empty line; `None` if the client closed the connection.
fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).to_lowercase())
}

/// Reads the body of a request; `None` if the client closed the connection.
fn skip_body(stream: &mut impl Read, head: &str) -> Option<()> {
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<u64>().ok());
    let mut body = stream.take(length.unwrap_or(0));
    std::io::copy(&mut body, &mut std::io::sink()).ok()?;
    (body.limit() == 0).then_some(())
}

/// A TCP port at 127.0.0.1 without a listener.
pub fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends SIGINT, as Ctrl-C does.
pub fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}
