//! s2n-quic's events, its only reports: the active settings, the negotiated values, the counters of each
//! connection.
//!
//! A connection's counters belong to the task that drives it, so counting takes no lock; they are handed over when the
//! connection closes or on demand.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use s2n_quic::connection::{Error, Handle};
use s2n_quic::provider::event::events::{self, EndpointMeta, PlatformFeatureConfiguration};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber};
use wirelab_endpoint::program::{Meter, Reading};

/// The active settings of an endpoint's socket.
#[derive(Debug, Default)]
pub struct Platform {
    gso_segments: AtomicUsize,
    initial_packet: AtomicU16,
    largest_packet: AtomicU16,
}

impl Platform {
    /// Datagrams handed to the kernel at a time, at most.
    pub fn gso_segments(&self) -> usize {
        self.gso_segments.load(Relaxed)
    }

    /// Bytes of the first IP packets, and of the largest that are tried.
    pub fn packets(&self) -> (u16, u16) {
        (self.initial_packet.load(Relaxed), self.largest_packet.load(Relaxed))
    }
}

/// Facts about a connection that outlive it.
#[derive(Debug, Default)]
pub struct Facts {
    /// Why it closed; absent while it is open.
    pub closed: Option<Error>,
    /// The cipher suite.
    pub cipher: Option<String>,
    /// The group of the key exchange.
    pub group: Option<String>,
    /// Bytes of all certificates of the peer.
    pub certificate_chain_bytes: Option<u64>,
    /// The size of datagrams that the path was found to carry.
    pub udp_payload: Option<u16>,
    last: Reading,
}

/// The same, shared with the users of the connection.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<Facts>>);

impl Shared {
    /// The facts, locked.
    pub fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts of an open connection.
    pub fn of(connection: &Handle) -> Self {
        connection.query_event_context(|context: &Context| context.shared.clone()).unwrap_or_default()
    }
}

/// Reads one connection.
#[derive(Debug)]
pub struct Gauge {
    connection: Handle,
    shared: Shared,
}

impl Gauge {
    /// The gauge of a connection.
    pub fn new(connection: &Handle, shared: &Shared) -> Self {
        Self { connection: connection.clone(), shared: shared.clone() }
    }
}

impl Meter for Gauge {
    fn read(&self) -> Reading {
        // A connection that is gone has handed over its last counts.
        let live = self.connection.query_event_context(|context: &Context| context.counts);
        live.unwrap_or_else(|_| self.shared.facts().last)
    }
}

/// Belongs to one connection.
pub struct Context {
    shared: Shared,
    counts: Reading,
}

/// Listens to an endpoint and its connections.
pub struct Listener(pub Arc<Platform>);

impl Subscriber for Listener {
    type ConnectionContext = Context;

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) -> Context {
        let zero = Some(0);
        let counts =
            Reading { sent: zero, lost: zero, bytes_lost: zero, congestion_events: zero, ..Reading::default() };
        Context { shared: Shared::default(), counts }
    }

    fn on_platform_feature_configured(&mut self, _: &EndpointMeta, event: &events::PlatformFeatureConfigured) {
        match event.configuration {
            PlatformFeatureConfiguration::Gso { max_segments, .. } => self.0.gso_segments.store(max_segments, Relaxed),
            PlatformFeatureConfiguration::InitialMtu { mtu, .. } => self.0.initial_packet.store(mtu, Relaxed),
            PlatformFeatureConfiguration::MaxMtu { mtu, .. } => self.0.largest_packet.store(mtu, Relaxed),
            _ => {}
        }
    }

    fn on_key_exchange_group(&mut self, context: &mut Context, _: &ConnectionMeta, event: &events::KeyExchangeGroup) {
        context.shared.facts().group = Some(event.chosen_group_name.to_owned());
    }

    fn on_tls_exporter_ready(&mut self, context: &mut Context, _: &ConnectionMeta, event: &events::TlsExporterReady) {
        let mut facts = context.shared.facts();
        facts.cipher = Some(format!("{:?}", event.session.cipher_suite()));
        let chain = event.session.peer_cert_chain_der().ok();
        facts.certificate_chain_bytes = chain.map(|chain| chain.iter().map(|der| der.len() as u64).sum());
    }

    fn on_mtu_updated(&mut self, context: &mut Context, _: &ConnectionMeta, event: &events::MtuUpdated) {
        context.shared.facts().udp_payload = Some(event.mtu);
    }

    fn on_packet_sent(&mut self, context: &mut Context, _: &ConnectionMeta, _: &events::PacketSent) {
        count(&mut context.counts.sent, 1);
    }

    fn on_packet_lost(&mut self, context: &mut Context, _: &ConnectionMeta, event: &events::PacketLost) {
        // A probe for a larger size that does not arrive is no loss of the path.
        if !event.is_mtu_probe {
            count(&mut context.counts.lost, 1);
            count(&mut context.counts.bytes_lost, event.bytes_lost.into());
        }
    }

    fn on_congestion(&mut self, context: &mut Context, _: &ConnectionMeta, _: &events::Congestion) {
        count(&mut context.counts.congestion_events, 1);
    }

    fn on_recovery_metrics(&mut self, context: &mut Context, _: &ConnectionMeta, event: &events::RecoveryMetrics) {
        let nanos = |time: Duration| Some(time.as_nanos() as u64).filter(|ns| *ns > 0);
        // Before the first sample the latest round trip is the initial guess, which nothing was measured for.
        context.counts.round_trip_min = nanos(event.min_rtt);
        context.counts.round_trip = nanos(event.smoothed_rtt);
        context.counts.window = Some(event.congestion_window.into());
    }

    fn on_connection_closed(&mut self, context: &mut Context, _: &ConnectionMeta, event: &events::ConnectionClosed) {
        let mut facts = context.shared.facts();
        facts.closed = Some(event.error);
        facts.last = context.counts;
    }
}

fn count(counter: &mut Option<u64>, more: u64) {
    *counter = counter.map(|sum| sum + more);
}
