//! The transport settings of a spec, from the spec to s2n-quic: each is honoured, or refused with the reason.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use s2n_quic::provider::io::tokio::{Builder, Provider as Io};
use s2n_quic::provider::limits::Limits;
use serde_json::json;
use wirelab_contract::spec::{Congestion, Transport};
use wirelab_endpoint::program::{Configured, Refusal, check_quic, udp_socket};

use crate::events::Platform;

/// Requests that a peer may have in flight on one connection, the same as of the built-in endpoint.
const STREAMS: u64 = 256;

/// Streams that this side may have open: as many as the peer allows.
const STREAMS_OPENED: u64 = 65_535;

/// Headers of IP and UDP, which s2n-quic counts as part of its packets.
const HEADERS_V4: u16 = 28;
const HEADERS_V6: u16 = 48;

/// The settings of a spec, checked.
pub struct Settings {
    spec: Transport,
    limits: Limits,
}

impl Settings {
    /// Checks what can be checked without a socket. `idle` ends a connection that nothing arrives on.
    pub fn new(spec: &Transport, qlog: Option<&Path>, idle: Duration) -> Result<Self, Refusal> {
        check_quic(spec)?;
        if qlog.is_some() {
            return Err(Refusal::unsupported("`qlog_dir`: s2n-quic writes no qlog"));
        }
        if spec.congestion == Some(Congestion::Reno) {
            return Err(Refusal::unsupported("`congestion`: s2n-quic has cubic and bbr, not reno"));
        }
        let limits = limits(spec, idle).map_err(|error| Refusal::unsupported(format!("limits of QUIC: {error}")))?;
        Ok(Self { spec: spec.clone(), limits })
    }

    /// Flow control and time-outs.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// s2n-quic's default is CUBIC.
    pub fn congestion(&self) -> Congestion {
        self.spec.congestion.unwrap_or(Congestion::Cubic)
    }

    /// A socket at `local`, and s2n-quic's input and output on it.
    pub fn io(&self, local: SocketAddr) -> Result<(UdpSocket, Io), Refusal> {
        let socket = udp_socket::open(local, &self.spec)?;
        let build = || -> io::Result<Io> {
            let mut builder = Builder::default().with_rx_socket(socket.try_clone()?)?;
            if self.spec.gso == Some(false) {
                builder = builder.with_gso_disabled()?;
            }
            if self.spec.gro == Some(false) {
                builder = builder.with_gro_disabled()?;
            }
            if let Some(payload) = self.spec.max_udp_payload {
                let headers = if matches!(local.ip(), IpAddr::V4(_)) { HEADERS_V4 } else { HEADERS_V6 };
                let packet = payload.saturating_add(headers);
                // From the first packet on, and never more: no discovery.
                builder = builder.with_max_mtu(packet)?.with_initial_mtu(packet)?.with_base_mtu(packet)?;
            }
            builder.build()
        };
        let io = build().map_err(|error| Refusal::failed(format!("preparing a UDP socket for QUIC: {error}")))?;
        Ok((socket, io))
    }

    /// The active settings, as kernel and library report them; refuses a setting that is not active.
    pub fn report(&self, socket: &UdpSocket, platform: &Platform) -> Result<Configured, Refusal> {
        let segments = platform.gso_segments() > 1;
        let joins = udp_socket::joins_on_receive(socket);
        for (field, wanted, is) in [("gso", self.spec.gso, segments), ("gro", self.spec.gro, joins)] {
            if wanted.is_some_and(|wanted| wanted != is) {
                return Err(Refusal::unsupported(format!("`{field}`: with s2n-quic on this kernel it is {is}")));
            }
        }
        let windows = self.limits.initial_flow_control_limits();
        let mut configured = Configured::new();
        let mut say = |name: &str, value: serde_json::Value| configured.insert(name.to_owned(), value);
        say("congestion", json!(self.congestion().token()));
        say("stream_window", json!(windows.stream_limits.max_data_bidi_remote.as_u64()));
        say("connection_window", json!(windows.max_data.as_u64()));
        say("gso", json!(segments));
        say("gro", json!(joins));
        let headers = if socket.local_addr().is_ok_and(|local| local.is_ipv6()) { HEADERS_V6 } else { HEADERS_V4 };
        let (initial, most) = platform.packets();
        say("initial_udp_payload", json!(initial.saturating_sub(headers)));
        say("max_udp_payload", json!(most.saturating_sub(headers)));
        udp_socket::report(socket, &mut configured);
        Ok(configured)
    }
}

fn limits(spec: &Transport, idle: Duration) -> Result<Limits, Box<dyn Error>> {
    let mut limits = Limits::new()
        .with_max_idle_timeout(idle)?
        // A client's deadline is the engine's; a handshake is given up by it or by the idle time-out.
        .with_max_handshake_duration(idle)?
        .with_max_open_remote_bidirectional_streams(STREAMS)?
        .with_max_open_local_bidirectional_streams(STREAMS_OPENED)?;
    if let Some(window) = spec.stream_window {
        limits = limits
            .with_bidirectional_local_data_window(window)?
            .with_bidirectional_remote_data_window(window)?
            .with_unidirectional_data_window(window)?;
    }
    if let Some(window) = spec.connection_window {
        limits = limits.with_data_window(window)?;
    }
    Ok(limits)
}
