//! The settings of a spec, from the spec to tokio-quiche: each is honoured, or refused with the reason.

use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_quiche::ConnectionParams;
use tokio_quiche::quic::ConnectionHook;
use tokio_quiche::settings::{CertificateKind, Hooks, QuicSettings, TlsCertificatePaths};
use tokio_quiche::socket::{SocketCapabilities, SocketCapabilitiesBuilder};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{Congestion, Resumption, Transport};
use wirelab_endpoint::program::{
    ClientSpec, Configured, Refusal, SERVER_IDLE, ServerSpec, check_quic, client_idle, udp_socket,
};
use wirelab_quiche::{SMALLEST, STREAMS, STREAMS_OF_ONE_DIRECTION, no_tls, open_key_log};

use crate::hooks::{ClientHook, ServerHook, Trust};

/// The largest packet that quiche makes.
const LARGEST: u16 = 16_383;

/// The paths of certificate and key are not tokio-quiche's to read: a hook has read them already.
const BY_HOOK: TlsCertificatePaths<'static> =
    TlsCertificatePaths { cert: "", private_key: "", kind: CertificateKind::X509 };

/// The settings of a spec, checked.
pub struct Settings {
    quic: QuicSettings,
    transport: Transport,
    /// The options that tokio-quiche switches on by itself: `listen` all, `connect` none.
    offloads: bool,
}

/// The options that were switched on on a socket.
#[derive(Debug, Clone, Copy)]
pub struct Switched {
    gso: bool,
    gro: bool,
}

impl Settings {
    /// A client's, with its trust.
    pub fn client(spec: &ClientSpec) -> Result<(Self, Trust), Refusal> {
        let tls = spec.tls.as_ref().ok_or_else(|| no_tls(spec.protocol))?;
        if spec.resumption == Resumption::ZeroRtt {
            return Err(Refusal::unsupported(
                "`resumption`: clients of tokio-quiche hand a connection over when its handshake is complete, which is too late for 0-RTT",
            ));
        }
        let mut settings = Self::new(spec.protocol, &spec.transport, client_idle(spec), false)?;
        settings.log(tls.key_log.as_deref(), spec.qlog_dir.as_deref())?;
        Ok((settings, Trust::new(tls)?))
    }

    /// A server's, and its certificate.
    pub fn server(spec: &ServerSpec) -> Result<(Self, ServerHook), Refusal> {
        let tls = spec.tls.as_ref().ok_or_else(|| no_tls(spec.protocol))?;
        let mut settings = Self::new(spec.protocol, &spec.transport, SERVER_IDLE, true)?;
        settings.quic.enable_early_data = tls.early_data;
        // As every endpoint: a Retry takes a round trip.
        settings.quic.disable_client_ip_validation = true;
        settings.log(tls.key_log.as_deref(), spec.qlog_dir.as_deref())?;
        Ok((settings, ServerHook::new(tls)?))
    }

    fn new(protocol: Protocol, spec: &Transport, idle: Duration, offloads: bool) -> Result<Self, Refusal> {
        check_quic(spec)?;
        let mut quic = QuicSettings::default();
        quic.alpn = vec![protocol.alpn().unwrap_or_default().as_bytes().to_vec()];
        quic.max_idle_timeout = Some(idle);
        quic.initial_max_streams_bidi = STREAMS;
        quic.initial_max_streams_uni = STREAMS_OF_ONE_DIRECTION;
        // No endpoint sends datagrams of QUIC.
        quic.enable_dgram = false;
        if let Some(congestion) = spec.congestion {
            quic.cc_algorithm = congestion.token().to_owned();
            // Only BBR needs pacing.
            quic.enable_pacing = congestion == Congestion::Bbr;
        }
        if let Some(window) = spec.stream_window {
            quic.initial_max_stream_data_bidi_local = window;
            quic.initial_max_stream_data_bidi_remote = window;
            quic.initial_max_stream_data_uni = window;
            // It would grow.
            quic.max_stream_window = window;
        }
        if let Some(window) = spec.connection_window {
            quic.initial_max_data = window;
            quic.max_connection_window = window;
        }
        if let Some(size) = spec.max_udp_payload {
            if size > LARGEST {
                return Err(Refusal::Unsupported(format!(
                    "`max_udp_payload`: quiche makes packets of up to {LARGEST} bytes"
                )));
            }
            quic.max_send_udp_payload_size = size.into();
            // The peer may be configured to send as much.
            quic.max_recv_udp_payload_size = quic.max_recv_udp_payload_size.max(size.into());
        }
        Ok(Self { quic, transport: spec.clone(), offloads })
    }

    fn log(&mut self, keys: Option<&Path>, qlog: Option<&Path>) -> Result<(), Refusal> {
        let text = |path: &Path| {
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| Refusal::unsupported(format!("{}: tokio-quiche takes paths in UTF-8", path.display())))
        };
        if let Some(path) = keys {
            // tokio-quiche would go on without it.
            open_key_log(path).map_err(|error| Refusal::failed(format!("opening {}: {error}", path.display())))?;
        }
        self.quic.keylog_file = keys.map(text).transpose()?;
        self.quic.qlog_dir = qlog.map(text).transpose()?;
        Ok(())
    }

    /// The configuration of a client's connection.
    pub fn of_client(&self, hook: Arc<ClientHook>, ticket: Option<Vec<u8>>) -> ConnectionParams<'static> {
        let mut parameters = ConnectionParams::new_client(self.quic.clone(), Some(BY_HOOK), hooks(hook));
        parameters.session = ticket;
        parameters
    }

    /// The configuration of a server's connections.
    pub fn of_server(&self, hook: ServerHook) -> ConnectionParams<'static> {
        ConnectionParams::new_server(self.quic.clone(), BY_HOOK, hooks(Arc::new(hook)))
    }

    /// Switches on the socket's options of the spec, else tokio-quiche's own.
    pub fn prepare(&self, socket: &UdpSocket) -> Result<(SocketCapabilities, Switched), Refusal> {
        let mut capabilities = SocketCapabilitiesBuilder::new(socket);
        let switch = |field, wanted: Option<bool>, on: &mut dyn FnMut() -> io::Result<()>| -> Result<bool, Refusal> {
            if !wanted.unwrap_or(self.offloads) {
                return Ok(false);
            }
            match on() {
                Err(error) if wanted == Some(true) => {
                    Err(Refusal::Unsupported(format!("`{field}`: this kernel does not know it ({error})")))
                }
                result => Ok(result.is_ok()),
            }
        };
        let gso = switch("gso", self.transport.gso, &mut || capabilities.gso())?;
        let gro = switch("gro", self.transport.gro, &mut || capabilities.gro())?;
        if self.quic.enable_pacing {
            capabilities.txtime().map_err(|error| {
                Refusal::Unsupported(format!(
                    "`congestion`: BBR needs sending times, and this kernel has none ({error})"
                ))
            })?;
        }
        if self.offloads {
            // The other options that tokio-quiche tries, which are invisible on the wire.
            let _ = capabilities.check_udp_drop();
            let _ = capabilities.ip_mtu_discover_probe();
            let _ = capabilities.ipv6_mtu_discover_probe();
        }
        Ok((capabilities.finish(), Switched { gso, gro }))
    }

    /// The active settings of a prepared socket and its connections.
    pub fn report(&self, socket: &UdpSocket, switched: Switched) -> Configured {
        let mut configured = Configured::new();
        let mut say = |name: &str, value: serde_json::Value| configured.insert(name.to_owned(), value);
        say("congestion", json!(self.quic.cc_algorithm));
        say("pacing", json!(self.quic.enable_pacing));
        say("stream_window", json!(self.quic.initial_max_stream_data_bidi_remote));
        say("connection_window", json!(self.quic.initial_max_data));
        say("initial_udp_payload", json!(SMALLEST));
        say("max_udp_payload", json!(self.quic.max_send_udp_payload_size));
        say("gso", json!(switched.gso));
        say("gro", json!(switched.gro && udp_socket::joins_on_receive(socket)));
        udp_socket::report(socket, &mut configured);
        configured
    }

    /// As the spec has them.
    pub const fn transport(&self) -> &Transport {
        &self.transport
    }
}

fn hooks(hook: Arc<dyn ConnectionHook + Send + Sync>) -> Hooks {
    Hooks { connection_hook: Some(hook) }
}
