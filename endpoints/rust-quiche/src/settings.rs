//! The settings of a spec, from the spec to quiche: each is honoured, or refused with the reason.

use std::fs::File;
use std::io::{self, LineWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use boring::ssl::SslContextBuilder;
use quiche::{Config, Connection};
use serde_json::json;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{Congestion, Resumption, Transport};
use wirelab_endpoint::program::{ClientSpec, Configured, Failure, Refusal, ServerSpec, check_quic};
use wirelab_quiche::{
    SMALLEST, STREAMS, STREAMS_OF_ONE_DIRECTION, client_context, no_tls, open_key_log, server_context,
};

use crate::outbox::LARGEST;
use crate::socket::Socket;

/// Flow control: quiche has no default; these are of the programs that come with it.
const STREAM_WINDOW: u64 = 1_000_000;
const CONNECTION_WINDOW: u64 = 10_000_000;

/// The size of datagrams in quiche's own programs. Its path MTU discovery would begin with the largest size, and a
/// connection on a path with a smaller one would wait for each of its losses.
const UDP_PAYLOAD: u16 = 1350;

/// The configuration of a connection.
pub struct Settings {
    /// quiche's configuration.
    pub config: Config,
    transport: Transport,
    key_log: Option<PathBuf>,
    qlog: Option<(PathBuf, &'static str)>,
}

impl Settings {
    /// A client's. `idle` ends a connection that nothing arrives on.
    pub fn client(spec: &ClientSpec, idle: Duration) -> Result<Self, Refusal> {
        let tls = spec.tls.as_ref().ok_or_else(|| no_tls(spec.protocol))?;
        let mut settings = Self::new(client_context(tls)?, spec.protocol, &spec.transport, idle)?;
        settings.config.verify_peer(tls.verify);
        if spec.resumption == Resumption::ZeroRtt {
            settings.config.enable_early_data();
        }
        settings.log(tls.key_log.as_deref(), spec.qlog_dir.as_deref(), "client")?;
        Ok(settings)
    }

    /// A server's. `ticket_key` is the same for all of its threads.
    pub fn server(spec: &ServerSpec, idle: Duration, ticket_key: &[u8; 48]) -> Result<Self, Refusal> {
        let tls = spec.tls.as_ref().ok_or_else(|| no_tls(spec.protocol))?;
        let mut settings = Self::new(server_context(tls)?, spec.protocol, &spec.transport, idle)?;
        settings.config.verify_peer(false);
        settings.config.set_ticket_key(ticket_key).map_err(|error| failed("the ticket key", error))?;
        if tls.early_data {
            settings.config.enable_early_data();
        }
        settings.log(tls.key_log.as_deref(), spec.qlog_dir.as_deref(), "server")?;
        Ok(settings)
    }

    fn new(
        context: SslContextBuilder,
        protocol: Protocol,
        transport: &Transport,
        idle: Duration,
    ) -> Result<Self, Refusal> {
        check_quic(transport)?;
        let mut config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, context)
            .map_err(|error| failed("TLS", error))?;
        let alpn = protocol.alpn().unwrap_or_default().as_bytes();
        config.set_application_protos(&[alpn]).map_err(|error| failed("ALPN", error))?;
        config.set_cc_algorithm(match transport.congestion {
            None | Some(Congestion::Cubic) => quiche::CongestionControlAlgorithm::CUBIC,
            Some(Congestion::Reno) => quiche::CongestionControlAlgorithm::Reno,
            Some(Congestion::Bbr) => {
                return Err(Refusal::unsupported(
                    "`congestion`: quiche's BBR needs packets to be spaced out, and this endpoint's loop sends them at once",
                ));
            }
        });
        // The loop does not wait for pacing's times, so pacing is off.
        config.enable_pacing(false);
        config.set_max_idle_timeout(idle.as_millis() as u64);
        config.set_initial_max_streams_bidi(STREAMS);
        config.set_initial_max_streams_uni(STREAMS_OF_ONE_DIRECTION);
        let stream = transport.stream_window.unwrap_or(STREAM_WINDOW);
        config.set_initial_max_stream_data_bidi_local(stream);
        config.set_initial_max_stream_data_bidi_remote(stream);
        config.set_initial_max_stream_data_uni(stream);
        let connection = transport.connection_window.unwrap_or(CONNECTION_WINDOW);
        config.set_initial_max_data(connection);
        // quiche would let them grow.
        config.set_max_stream_window(stream);
        config.set_max_connection_window(connection);
        let payload = transport.max_udp_payload.unwrap_or(UDP_PAYLOAD);
        if usize::from(payload) > LARGEST {
            return Err(Refusal::Unsupported(format!(
                "`max_udp_payload`: quiche makes packets of up to {LARGEST} bytes"
            )));
        }
        config.set_max_send_udp_payload_size(payload.into());
        Ok(Self { config, transport: transport.clone(), key_log: None, qlog: None })
    }

    fn log(&mut self, keys: Option<&Path>, qlog: Option<&Path>, role: &'static str) -> Result<(), Refusal> {
        if let Some(path) = keys {
            open_key_log(path).map_err(|error| Refusal::failed(format!("opening {}: {error}", path.display())))?;
            self.config.log_keys();
            self.key_log = Some(path.to_owned());
        }
        self.qlog = qlog.map(|folder| (folder.to_owned(), role));
        Ok(())
    }

    /// Gives a new connection the files that it is to write.
    pub fn attach_logs(&self, connection: &mut Connection) -> Result<(), Failure> {
        let failure =
            |what: &str, error: io::Error| Failure::new(ErrorKind::Other, format!("opening a {what} file: {error}"));
        if let Some(path) = &self.key_log {
            connection.set_keylog(Box::new(open_key_log(path).map_err(|error| failure("key log", error))?));
        }
        if let Some((folder, role)) = &self.qlog {
            let (name, file) = new_qlog(folder, role).map_err(|error| failure("qlog", error))?;
            // A process that is killed leaves no torn line.
            connection.set_qlog(Box::new(LineWriter::new(file)), name, "rust-quiche".to_owned());
        }
        Ok(())
    }

    /// The active settings of `socket` and its connections.
    pub fn report(&self, socket: &Socket) -> Configured {
        let mut configured = Configured::new();
        let mut say = |name: &str, value: serde_json::Value| configured.insert(name.to_owned(), value);
        say("congestion", json!(self.transport.congestion.unwrap_or(Congestion::Cubic).token()));
        say("stream_window", json!(self.transport.stream_window.unwrap_or(STREAM_WINDOW)));
        say("connection_window", json!(self.transport.connection_window.unwrap_or(CONNECTION_WINDOW)));
        say("max_udp_payload", json!(self.transport.max_udp_payload.unwrap_or(UDP_PAYLOAD)));
        say("initial_udp_payload", json!(SMALLEST));
        say("pacing", json!(false));
        socket.report(&mut configured);
        configured
    }
}

fn failed(what: &str, error: quiche::Error) -> Refusal {
    Refusal::failed(format!("setting up {what} in quiche: {error:?}"))
}

/// A file with a number that no other connection of the folder has.
fn new_qlog(folder: &Path, role: &str) -> io::Result<(String, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let name = format!("{role}-{:06}", NEXT.fetch_add(1, Ordering::Relaxed));
        match File::create_new(folder.join(format!("{name}.sqlog"))) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return Ok((name, result?)),
        }
    }
}
