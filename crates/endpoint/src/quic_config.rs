//! QUIC's transport settings, from the spec to quinn, for both roles; each is honoured or refused, and reported.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::udp::UdpSocketState;
use quinn::{
    Endpoint, EndpointConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use serde_json::json;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::spec::{Congestion, Transport};

use crate::client::transport::Failure;
use crate::quic_contract::{self, kind_of_code};
use crate::quic_log::Qlog;
use crate::quic_session::REJECTED;
use crate::quic_socket::QuicSocket;
use crate::refusal::Refusal;
use crate::udp_socket;

/// Maximum number of a peer's concurrent requests on one connection. quinn allocates an entry for each at the start, so
/// a larger number makes every handshake more expensive; hyper's HTTP/2 servers allow 200.
pub const STREAMS: u32 = 256;

/// quinn's default credit per stream: 100 ms at 100 Mbit/s.
const STREAM_WINDOW: u64 = 1_250_000;

/// quinn's default limit of unacknowledged bytes of a sender.
const SEND_WINDOW: u64 = 8 * STREAM_WINDOW;

/// Default upper limit of quinn's MTU discovery: an Ethernet frame with IPv6.
const DISCOVERY_ENDS: u16 = 1452;

/// The UDP payload of an Ethernet frame with IPv4, and quinn's default limit of received payloads.
const ETHERNET: u16 = 1472;

/// The spec's QUIC settings, checked.
#[derive(Debug, Clone)]
pub struct QuicSettings {
    spec: Transport,
    qlog: Option<Qlog>,
}

impl QuicSettings {
    /// Checks everything that needs no socket. `role` is the prefix of qlog file names.
    pub fn new(spec: &Transport, qlog_dir: Option<&Path>, role: &'static str) -> Result<Self, Refusal> {
        quic_contract::check(spec)?;
        let qlog = qlog_dir.map(|folder| Qlog::new(folder, role)).transpose()?;
        Ok(Self { spec: spec.clone(), qlog })
    }

    /// Returns quinn's transport configuration. `idle` is the idle time-out.
    pub fn transport(&self, idle: Duration) -> Result<TransportConfig, Refusal> {
        let variable = |value: u64| VarInt::from_u64(value).map_err(|error| Refusal::failed(error.to_string()));
        let mut config = TransportConfig::default();
        config.max_concurrent_bidi_streams(STREAMS.into());
        let idle = IdleTimeout::try_from(idle).map_err(|error| Refusal::failed(format!("idle time-out: {error}")))?;
        config.max_idle_timeout(Some(idle));
        config.congestion_controller_factory(match self.congestion() {
            Congestion::Cubic => Arc::new(CubicConfig::default()) as Arc<dyn ControllerFactory + Send + Sync>,
            Congestion::Bbr => Arc::new(BbrConfig::default()),
            Congestion::Reno => Arc::new(NewRenoConfig::default()),
        });
        if let Some(window) = self.spec.stream_window {
            config.stream_receive_window(variable(window)?);
        }
        if let Some(window) = self.spec.connection_window {
            config.receive_window(variable(window)?);
        }
        config.send_window(self.send_window());
        config.initial_mtu(self.initial_payload());
        let largest = self.largest_payload();
        config.mtu_discovery_config((largest > self.initial_payload()).then(|| {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(largest);
            discovery
        }));
        config.enable_segmentation_offload(self.spec.gso != Some(false));
        Ok(config)
    }

    /// Returns the configuration of one connection with its own qlog file; `None` without qlog, so that all connections
    /// share one configuration.
    pub fn logged(&self, idle: Duration) -> Result<Option<Arc<TransportConfig>>, Refusal> {
        let Some(qlog) = &self.qlog else { return Ok(None) };
        let mut config = self.transport(idle)?;
        config.qlog_stream(Some(qlog.stream()?));
        Ok(Some(Arc::new(config)))
    }

    /// Opens a socket at `local` with all effective settings. A client's socket is connected to `server`, so that it
    /// gets ICMP errors. Call it inside a runtime.
    pub fn socket(&self, local: SocketAddr, server: Option<SocketAddr>) -> Result<Arc<QuicSocket>, Refusal> {
        let socket = udp_socket::open(local, &self.spec)?;
        if let Some(server) = server {
            udp_socket::connect(&socket, server)?;
        }
        let socket = QuicSocket::new(socket, self.spec.gro != Some(false), self.largest_payload())
            .map_err(|error| Refusal::failed(format!("preparing a UDP socket for QUIC: {error}")))?;
        self.demand(socket.segments(), socket.joins())?;
        Ok(Arc::new(socket))
    }

    /// Like [`Self::socket`] for a client, outside any runtime.
    pub fn connected_socket(&self, server: SocketAddr) -> Result<(UdpSocket, UdpSocketState, bool), Refusal> {
        let socket = udp_socket::open(udp_socket::any_port(server.ip()), &self.spec)?;
        udp_socket::connect(&socket, server)?;
        self.bare(socket)
    }

    /// Like [`Self::socket`] for one of several sockets of a server, outside any runtime.
    pub fn shared_socket(&self, local: SocketAddr) -> Result<(UdpSocket, UdpSocketState, bool), Refusal> {
        self.bare(udp_socket::open_shared(local, &self.spec)?)
    }

    /// The socket, its state, and whether the kernel merges datagrams on receipt.
    fn bare(&self, socket: UdpSocket) -> Result<(UdpSocket, UdpSocketState, bool), Refusal> {
        let state = UdpSocketState::new((&socket).into())
            .map_err(|error| Refusal::failed(format!("preparing a UDP socket for QUIC: {error}")))?;
        if self.spec.gro == Some(false) {
            // A kernel without the option has nothing to disable.
            let _ = udp_socket::set_join_on_receive(&socket, false);
        }
        let joins = self.spec.gro != Some(false) && udp_socket::joins_on_receive(&socket);
        self.demand(state.max_gso_segments() > 1, joins)?;
        Ok((socket, state, joins))
    }

    /// Refuses a wanted offload that the kernel lacks.
    fn demand(&self, segments: bool, joins: bool) -> Result<(), Refusal> {
        if self.spec.gso == Some(true) && !segments {
            return Err(Refusal::unsupported("`gso`: this kernel cannot segment UDP datagrams (Linux 4.18 can)"));
        }
        if self.spec.gro == Some(true) && !joins {
            return Err(Refusal::unsupported("`gro`: this kernel cannot merge UDP datagrams (Linux 5.0 can)"));
        }
        Ok(())
    }

    /// Creates an endpoint on `socket`.
    pub fn endpoint(&self, socket: &Arc<QuicSocket>, config: Option<ServerConfig>) -> Result<Endpoint, Refusal> {
        let endpoint = self.endpoint_config()?;
        Endpoint::new_with_abstract_socket(endpoint, config, Arc::clone(socket) as _, Arc::new(TokioRuntime))
            .map_err(|error| Refusal::failed(format!("creating a QUIC endpoint: {error}")))
    }

    /// The configuration of an endpoint.
    pub fn endpoint_config(&self) -> Result<EndpointConfig, Refusal> {
        let mut endpoint = EndpointConfig::default();
        // quinn announces the size of its receive buffers to its peer.
        endpoint
            .max_udp_payload_size(self.largest_payload().max(ETHERNET))
            .map_err(|error| Refusal::failed(error.to_string()))?;
        Ok(endpoint)
    }

    /// The effective settings on `socket` and its connections.
    pub fn report(&self, socket: &QuicSocket) -> Configured {
        self.report_of(socket.io(), socket.segments(), socket.joins())
    }

    /// Like [`Self::report`], for a socket with or without offloads.
    pub fn report_of(&self, socket: &impl AsFd, segments: bool, joins: bool) -> Configured {
        let mut configured = Configured::new();
        let mut say = |name: &str, value: serde_json::Value| configured.insert(name.to_owned(), value);
        say("congestion", json!(self.congestion().token()));
        say("stream_window", json!(self.spec.stream_window.unwrap_or(STREAM_WINDOW)));
        say("connection_window", json!(self.spec.connection_window.unwrap_or(VarInt::MAX.into_inner())));
        say("send_window", json!(self.send_window()));
        say("max_udp_payload", json!(self.largest_payload()));
        say("initial_udp_payload", json!(self.initial_payload()));
        say("gso", json!(self.spec.gso != Some(false) && segments));
        say("gro", json!(joins));
        udp_socket::report(socket, &mut configured);
        configured
    }

    fn congestion(&self) -> Congestion {
        // quinn's default.
        self.spec.congestion.unwrap_or(Congestion::Cubic)
    }

    /// The size of the largest datagram in either direction.
    pub fn largest_payload(&self) -> u16 {
        self.spec.max_udp_payload.unwrap_or(DISCOVERY_ENDS)
    }

    /// The payload of the first packets. A size of the spec is in use from the start if every path may carry it. A
    /// server may answer a new client with three times what it received (RFC 9000, section 8.1), and quinn sends
    /// nothing unless its largest packet would fit into that: with large first packets, no handshake would end.
    fn initial_payload(&self) -> u16 {
        self.spec.max_udp_payload.filter(|size| *size <= ETHERNET).unwrap_or(*quic_contract::PAYLOADS.start())
    }

    /// A smaller limit than the receiver's credit would block the sender before the credit does.
    fn send_window(&self) -> u64 {
        self.spec.connection_window.map_or(SEND_WINDOW, |window| window.max(SEND_WINDOW))
    }
}

/// Converts an error of a connection, with quinn's message.
pub fn failure(attempt: &str, error: &quinn::ConnectionError) -> Failure {
    use quinn::ConnectionError as Error;
    let kind = match error {
        Error::TransportError(error) if error.reason.starts_with(REJECTED) => ErrorKind::Certificate,
        Error::TransportError(error) => kind_of_code(error.code.into()),
        Error::ConnectionClosed(close) => kind_of_code(close.error_code.into()),
        Error::VersionMismatch => ErrorKind::Protocol,
        Error::ApplicationClosed(_) | Error::Reset => ErrorKind::Reset,
        Error::TimedOut => ErrorKind::Timeout,
        Error::LocallyClosed | Error::CidsExhausted => ErrorKind::Other,
    };
    Failure { kind, message: format!("{attempt}: {error}") }
}
