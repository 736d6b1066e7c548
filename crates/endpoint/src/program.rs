//! The framework of an endpoint that is a program of its own.
//!
//! The program provides a description and, per protocol, a [`Transport`] for its client and a function that binds its
//! server. The framework provides the conversation on standard input and output; specs, parsed strictly and checked for
//! contradictions; the load engine with schedules, connection policies, time stamps and records; and the [`Site`],
//! which decides the answers to requests. `contract/README.md` explains the purpose of each.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use wirelab_endpoint::program::{Program, version};
//! # mod h3 {
//! #     use std::sync::Arc;
//! #     use wirelab_endpoint::program::{Bound, Refusal, ServerSpec, Site, Stop};
//! # pub async fn bind(_: ServerSpec, _: Arc<Site>, _: Stop) -> Result<Bound, Refusal> { std::future::pending().await }
//! # }
//! use wirelab_contract::protocol::Protocol;
//!
//! fn main() -> ExitCode {
//!     Program::new("rust-mylib", "mylib", version("..the text of Cargo.lock..", "mylib"))
//!         .server(Protocol::H3, h3::bind)
//!         // .client::<h3::Client>(Protocol::H3)
//!         .main()
//! }
//! ```
//!
//! # The client
//!
//! The framework calls [`Transport::build`] with the spec once per thread, inside that thread's single-threaded tokio
//! runtime. `build` refuses with [`Refusal::Unsupported`] what the library cannot honour: no set field may be ignored.
//! The fields to check are `tls`, `resumption`, `qlog_dir` and `transport` (for QUIC, [`check_quic`] refuses settings
//! that no library has); the engine handles schedules, extents, time-outs and the recording. [`Transport::connect`]
//! opens a connection. [`Connection::request`] sends the request of the spec on it and receives the answer. Both report
//! errors as [`Failure`]. The engine enforces every deadline by dropping the future, so a dropped request must cancel
//! its stream.
//!
//! If many requests share a connection, [`Multiplexed`] is a complete `Transport`: the library implements [`Dial`],
//! which opens and closes connections, and for each protocol a [`RequestProtocol`], or less (see below).
//!
//! The head of an HTTP request comes from a [`Recipe`]; its body, and the body of a raw request, are [`piece`]s of the
//! pattern.
//!
//! # The server
//!
//! The function gets the spec, the site and a [`Stop`], inside a multi-threaded runtime with the spec's number of
//! threads. It refuses unsupported settings, binds, and returns a [`Bound`]: the port, the effective settings, and a
//! future that serves until [`Stop::asked`] returns. For each request it answers as [`Site::reply`] decides, and counts
//! the request.
//!
//! # Libraries that need less
//!
//! A QUIC library with an adapter for the crate `h3` needs no HTTP/3 of its own. Its client is `Multiplexed` with
//! `ByH3`, if its `Dial` is an `Http3` too; its server uses `h3_connection` (feature `h3`). For TLS by rustls, [`tls`]
//! (feature `rustls`) provides the configurations of the spec. The streams of any QUIC library carry raw requests by
//! the trait [`RawStream`]: a client is `Multiplexed` with [`Raw`], if its `Dial` is a [`RawQuic`] too; a server uses
//! [`answer`]. [`udp_socket`] opens sockets with the buffers of the spec.

use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;
use std::sync::Arc;

use wirelab_contract::CONTRACT_VERSION;
use wirelab_contract::endpoint::{Description, Role};
use wirelab_contract::event::Event;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::Feature;

#[cfg(feature = "h3")]
pub use crate::client::h3_requests::{ByH3, Http3};
pub use crate::client::http::Recipe;
pub use crate::client::multiplexed::{Dial, Multiplexed, RequestProtocol};
pub use crate::client::raw_requests::{Raw, RawQuic};
pub use crate::client::servers::Servers;
pub use crate::client::tickets::{Tickets, ticket_timeout};
pub use crate::client::transport::{Answer, Connection, Opened, Sink, Transport};
pub use crate::lock_file::version;
pub use crate::payload::{piece, piece_slice};
pub use crate::quic_contract::{SERVER_IDLE, check as check_quic, client_idle, done_code, given_up_code, kind_of_code};
pub use crate::raw::Header;
pub use crate::raw_stream::{ATTEMPT, RawStream, answer};
pub use crate::refusal::{Failure, Refusal};
#[cfg(feature = "h3")]
pub use crate::server::h3_connection;
pub use crate::server::{Bound, Reply, Site, Stop};
pub use crate::transport_accounts::{Account, Accounts, Meter};
pub use crate::transport_reading::Reading;
pub use crate::udp_socket;
pub use crate::wait::{Timer, until};
pub use wirelab_contract::event::Configured;
pub use wirelab_contract::spec::{ClientSpec, ServerSpec};
#[cfg(feature = "rustls")]
pub use wirelab_engine::tls;

use crate::client::Driver;
use crate::contract::{self, Binding};
use crate::stderr::write_line;

type Binder = Box<dyn Fn(ServerSpec, Arc<Site>, Stop) -> Binding>;

/// An endpoint.
pub struct Program {
    name: &'static str,
    library: &'static str,
    version: String,
    language: &'static str,
    servers: Vec<(Protocol, Binder)>,
    clients: Vec<(Protocol, Driver)>,
}

impl Program {
    /// Creates an endpoint without roles. `name` is the name of its folder, `library` the measured library.
    pub fn new(name: &'static str, library: &'static str, version: impl Into<String>) -> Self {
        let (servers, clients) = Default::default();
        Self { name, library, version: version.into(), language: "Rust", servers, clients }
    }

    /// Sets the language of the library; the default is Rust.
    #[must_use]
    pub const fn language(mut self, language: &'static str) -> Self {
        self.language = language;
        self
    }

    /// Adds a server.
    #[must_use]
    pub fn server<F>(mut self, protocol: Protocol, bind: fn(ServerSpec, Arc<Site>, Stop) -> F) -> Self
    where
        F: Future<Output = Result<Bound, Refusal>> + 'static,
    {
        self.servers.push((protocol, Box::new(move |spec, site, stop| Box::pin(bind(spec, site, stop)))));
        self
    }

    /// Adds a client.
    #[must_use]
    pub fn client<T: Transport>(mut self, protocol: Protocol) -> Self {
        self.clients.push((protocol, Driver::of::<T>()));
        self
    }

    #[must_use]
    pub fn description(&self) -> Description {
        let role = |protocols: Vec<Protocol>| {
            (!protocols.is_empty()).then(|| Role {
                protocols,
                features: vec![Feature::Files, Feature::Echo, Feature::Bytes, Feature::Delay, Feature::Heron],
                exposition: true,
                own_requests: false,
                until_steady: false,
            })
        };
        Description {
            contract: CONTRACT_VERSION,
            name: self.name.to_owned(),
            library: self.library.to_owned(),
            version: self.version.clone(),
            language: self.language.to_owned(),
            server: role(self.servers.iter().map(|(protocol, _)| *protocol).collect()),
            client: role(self.clients.iter().map(|(protocol, _)| *protocol).collect())
                .map(|role| Role { until_steady: true, ..role }),
            sidecar: None,
            control_plane: None,
        }
    }

    /// Executes the command line: `describe`, `server --spec FILE` or `client --spec FILE`.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let arguments: Vec<_> = std::env::args().skip(1).collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let status = match arguments[..] {
            ["describe"] => self.describe(),
            ["server", "--spec", path] => with_spec(path, |text| self.serve(text, stdin(), io::stdout())),
            ["client", "--spec", path] => with_spec(path, |text| self.request(text, stdin(), io::stdout())),
            _ => {
                write_line(format_args!("usage: {} describe | server --spec FILE | client --spec FILE", self.name));
                return ExitCode::from(2);
            }
        };
        u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from)
    }

    fn describe(&self) -> i32 {
        let mut output = io::stdout().lock();
        let written = serde_json::to_writer_pretty(&mut output, &self.description()).map_err(io::Error::from);
        match written.and_then(|()| writeln!(output)) {
            Ok(()) => 0,
            Err(error) => {
                write_line(format_args!("writing the description: {error}"));
                1
            }
        }
    }

    fn serve(&self, spec: &str, input: impl BufRead + Send + 'static, output: impl Write) -> i32 {
        let bind = |spec: ServerSpec, site, stop| -> Binding {
            let of_pages = [("page", spec.page.is_some()), ("answers", spec.answers.is_some())];
            if let Some((key, _)) = of_pages.into_iter().find(|(_, is_set)| *is_set) {
                let why = format!("`{key}` is set, and this server has no pages");
                return Box::pin(std::future::ready(Err(Refusal::unsupported(why))));
            }
            match self.servers.iter().find(|(known, _)| *known == spec.protocol) {
                Some((_, bind)) => bind(spec, site, stop),
                None => Box::pin(std::future::ready(Err(self.unknown(spec.protocol, "servers")))),
            }
        };
        contract::serve(spec, bind, input, output)
    }

    fn request(&self, spec: &str, input: impl BufRead + Send + 'static, output: impl Write) -> i32 {
        let driver = |protocol| match self.clients.iter().find(|(known, _)| *known == protocol) {
            Some((_, driver)) => Ok(*driver),
            None => Err(self.unknown(protocol, "clients")),
        };
        contract::request(spec, driver, input, output)
    }

    fn unknown(&self, protocol: Protocol, role: &str) -> Refusal {
        Refusal::unsupported(format!("`{protocol}`: the {role} of {} do not support it", self.library))
    }
}

fn stdin() -> BufReader<io::Stdin> {
    BufReader::new(io::stdin())
}

fn with_spec(path: &str, run: impl FnOnce(&str) -> i32) -> i32 {
    match std::fs::read_to_string(path) {
        Ok(text) => run(&text),
        Err(error) => {
            let kind = wirelab_contract::error_kind::ErrorKind::Other;
            let event = Event::Error { kind, message: format!("reading the spec {path}: {error}") };
            let mut output = io::stdout().lock();
            let written = serde_json::to_writer(&mut output, &event).map_err(io::Error::from);
            if let Err(error) = written.and_then(|()| writeln!(output)) {
                write_line(format_args!("{error} ({event:?})"));
            }
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use wirelab_contract::endpoint::UNSUPPORTED_STATUS;

    use super::*;

    async fn bind(_: ServerSpec, _: Arc<Site>, _: Stop) -> Result<Bound, Refusal> {
        Err(Refusal::failed("it was asked to bind"))
    }

    fn program() -> Program {
        Program::new("rust-mylib", "mylib", "mylib 1.2").server(Protocol::H3, bind)
    }

    /// The server's first event for a spec, and its exit status.
    fn serve(protocol: &str) -> (Event, i32) {
        let spec = serde_json::json!({
            "contract": CONTRACT_VERSION, "protocol": protocol, "address": "127.0.0.1", "port": 0,
            "server_name": "server.test", "features": [],
        });
        let mut output = Vec::new();
        let status = program().serve(&spec.to_string(), io::empty(), &mut output);
        (serde_json::from_slice(&output).unwrap(), status)
    }

    #[test]
    fn a_program_describes_exactly_its_roles() {
        let description = program().description();
        assert_eq!((description.name.as_str(), description.language.as_str()), ("rust-mylib", "Rust"));
        assert_eq!(description.server.unwrap().protocols, [Protocol::H3]);
        assert_eq!(description.client, None);
    }

    #[test]
    fn a_protocol_of_the_program_reaches_its_server_and_others_are_unsupported() {
        let (event, status) = serve("h3");
        assert!(matches!(event, Event::Error { message, .. } if message == "it was asked to bind"));
        assert_eq!(status, 1);
        for protocol in ["quic", "xquic"] {
            let (event, status) = serve(protocol);
            assert!(matches!(event, Event::Unsupported { message } if message.contains(protocol)));
            assert_eq!(status, UNSUPPORTED_STATUS);
        }
    }
}
