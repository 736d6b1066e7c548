//! Real servers of HTTP/3 and raw QUIC, by quinn, with the settings of a case.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Error, Result};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::crypto::{CryptoError, HmacKey};
use quinn::{
    Connection, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, Incoming, RecvStream, SendStream,
    ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use wirelab_contract::pattern;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::servers::Place;

use super::super::script::variable;

/// The largest request in bytes.
const LARGEST_REQUEST: usize = 1 << 20;

const NO_ERROR: VarInt = VarInt::from_u32(0x100);
const REQUEST_REJECTED: VarInt = VarInt::from_u32(0x10b);

/// The settings of a server, as they are written.
#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// Validates the client's address by a Retry packet.
    retry: bool,
    /// The versions of QUIC that it supports, in hexadecimal.
    versions: Vec<String>,
    /// Updates its keys before every answer of so many.
    key_update: u64,
    /// Replaces its connection IDs after so many milliseconds.
    id_lifetime: Option<u64>,
    /// Refuses every connection.
    refuses: bool,
    /// Closes every connection within the handshake, with this error of the application.
    closes: Option<u32>,
    /// The number of certificates in its chain.
    chain: Option<usize>,
    /// The only cipher suite.
    cipher: Option<String>,
    /// The protocol of ALPN in place of the right one.
    alpn: Option<String>,
    /// Says goodbye after so many requests on a connection, and closes it when they are answered; HTTP/3 only.
    goodbye: Option<u64>,
    /// Offers another address, at which it can be reached, too.
    preferred: bool,
    /// The largest datagram that it accepts.
    payload: Option<u16>,
    /// The number of concurrent requests.
    streams: Option<u32>,
    /// Whether it accepts 0-RTT; absent: it issues tickets without.
    early_data: bool,
}

impl Settings {
    fn tls(&self, protocol: Protocol, place: &Place, host: IpAddr) -> rustls::ServerConfig {
        let mut provider = rustls::crypto::ring::default_provider();
        if let Some(wanted) = &self.cipher {
            provider.cipher_suites.retain(|suite| format!("{:?}", suite.suite()) == *wanted);
        }
        let name = if host.is_ipv6() { "v6" } else { "good" };
        let certificate = CertificateDer::from_pem_file(place.path(&format!("{name}.pem"))).unwrap();
        let key = PrivateKeyDer::from_pem_file(place.path(&format!("{name}.key"))).unwrap();
        let chain = vec![certificate; self.chain.unwrap_or(1)];
        let builder = rustls::ServerConfig::builder_with_provider(Arc::new(provider));
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let mut tls = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
        let alpn = self.alpn.as_deref().or(protocol.alpn()).unwrap();
        tls.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        tls
    }
}

/// A server in a runtime.
pub(super) struct Server {
    settings: Settings,
    pub(super) protocol: Protocol,
    endpoint: Endpoint,
    /// Requests that it answered.
    pub(super) answered: AtomicU64,
}

impl Server {
    /// Binds a server; call it inside the runtime.
    pub(super) fn bind(settings: &Settings, protocol: Protocol, place: &Place, host: IpAddr) -> Arc<Self> {
        let mut tls = settings.tls(protocol, place, host);
        tls.max_early_data_size = if settings.early_data { u32::MAX } else { 0 };
        // Initial packets have AES, whatever the suites (RFC 9001, section 5).
        let initial = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
        let initial = initial.tls13().and_then(|suite| suite.quic_suite()).unwrap();
        let crypto = QuicServerConfig::with_initial(Arc::new(tls), initial).unwrap();
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        if let Some(streams) = settings.streams {
            transport.max_concurrent_bidi_streams(streams.into());
        }
        config.transport_config(Arc::new(transport));
        config.preferred_address_v4(settings.preferred.then_some("127.0.0.2:9".parse().unwrap()));

        // The keys of every server are equal, so that one of them resets connections of another.
        let mut endpoint = EndpointConfig::new(Arc::new(ResetKey));
        let lifetime = settings.id_lifetime.map(Duration::from_millis);
        endpoint.cid_generator(move || Box::new(Ids { lifetime }));
        if let Some(payload) = settings.payload {
            endpoint.max_udp_payload_size(payload).unwrap();
        }
        if !settings.versions.is_empty() {
            let versions = settings.versions.iter().map(|version| u32::from_str_radix(version, 16).unwrap());
            endpoint.supported_versions(versions.collect());
        }
        let socket = UdpSocket::bind((host, 0)).unwrap();
        let endpoint = Endpoint::new(endpoint, Some(config), socket, Arc::new(TokioRuntime)).unwrap();
        Arc::new(Self { settings: settings.clone(), protocol, endpoint, answered: AtomicU64::new(0) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.endpoint.local_addr().unwrap()
    }

    /// Serves for ever.
    pub(super) async fn run(self: Arc<Self>) {
        while let Some(incoming) = self.endpoint.accept().await {
            let server = Arc::clone(&self);
            // A conversation ends with an error when the client is gone.
            tokio::spawn(async move { server.accept(incoming).await.is_ok() });
        }
    }

    async fn accept(self: Arc<Self>, incoming: Incoming) -> Result<()> {
        if self.settings.refuses {
            incoming.refuse();
            return Ok(());
        }
        if self.settings.retry && !incoming.remote_address_validated() {
            return incoming.retry().map_err(Error::other);
        }
        let connecting = incoming.accept()?;
        if let Some(code) = self.settings.closes {
            let connection = connecting.into_0rtt().map_err(|_| Error::other("no early connection"))?.0;
            connection.close(code.into(), b"within the handshake");
            return Ok(());
        }
        let connection = match self.settings.early_data {
            true => connecting.into_0rtt().map_err(|_| Error::other("no early connection"))?.0,
            false => connecting.await?,
        };
        match self.protocol {
            Protocol::H3 => self.http3(connection).await,
            _ => self.raw(connection).await,
        }
    }

    async fn raw(self: Arc<Self>, connection: Connection) -> Result<()> {
        loop {
            let (mut send, mut receive) = connection.accept_bi().await?;
            let (server, connection) = (Arc::clone(&self), connection.clone());
            tokio::spawn(async move {
                let request = receive.read_to_end(LARGEST_REQUEST).await.map_err(Error::other)?;
                let wanted = u64::from_be_bytes(request[..8].try_into().unwrap());
                server.answer(&connection, &mut send, &pattern::body(wanted as usize)).await
            });
        }
    }

    async fn http3(self: Arc<Self>, connection: Connection) -> Result<()> {
        let mut control = connection.open_uni().await?;
        control.write_all(&[0, 4, 0]).await?;
        let mut accepted = Vec::new();
        loop {
            let (mut send, mut receive) = connection.accept_bi().await?;
            if self.settings.goodbye.is_some_and(|most| accepted.len() as u64 >= most) {
                receive.stop(REQUEST_REJECTED).map_err(Error::other)?;
                send.reset(REQUEST_REJECTED).map_err(Error::other)?;
                continue;
            }
            let (server, here) = (Arc::clone(&self), connection.clone());
            accepted.push(tokio::spawn(async move { server.echo(&here, send, receive).await.is_ok() }));
            if self.settings.goodbye == Some(accepted.len() as u64) {
                let next = variable(4 * accepted.len() as u64);
                control.write_all(&[&[7][..], &variable(next.len() as u64), &next].concat()).await?;
                let (here, accepted) = (connection.clone(), std::mem::take(&mut accepted));
                tokio::spawn(async move {
                    for answer in accepted {
                        let _ = answer.await;
                    }
                    here.close(NO_ERROR, b"");
                });
                return self.reject(connection, control).await;
            }
        }
    }

    /// Turns away what comes after the goodbye.
    async fn reject(&self, connection: Connection, _control: SendStream) -> Result<()> {
        loop {
            let (mut send, mut receive) = connection.accept_bi().await?;
            receive.stop(REQUEST_REJECTED).map_err(Error::other)?;
            send.reset(REQUEST_REJECTED).map_err(Error::other)?;
        }
    }

    /// Answers a request of HTTP/3 with its own body.
    async fn echo(&self, connection: &Connection, mut send: SendStream, mut receive: RecvStream) -> Result<()> {
        let request = receive.read_to_end(LARGEST_REQUEST).await.map_err(Error::other)?;
        let body = body(&request);
        // The status 200 of QPACK's static table (RFC 9204, appendix A).
        let head = [1, 3, 0, 0, 0xd9];
        let response = [&head[..], &[0], &variable(body.len() as u64), &body].concat();
        self.answer(connection, &mut send, &response).await?;
        // Until the client has it all.
        send.stopped().await.map(drop).map_err(Error::other)
    }

    async fn answer(&self, connection: &Connection, send: &mut SendStream, response: &[u8]) -> Result<()> {
        let number = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
        if self.settings.key_update > 0 && number.is_multiple_of(self.settings.key_update) {
            connection.force_key_update();
        }
        send.write_all(response).await?;
        send.finish().map_err(Error::other)
    }
}

/// The body of a request: the payloads of its frames of data.
fn body(request: &[u8]) -> Vec<u8> {
    let (mut body, mut rest) = (Vec::new(), request);
    while !rest.is_empty() {
        let (kind, length) = (integer(&mut rest), integer(&mut rest) as usize);
        let (payload, after) = rest.split_at(length);
        if kind == 0 {
            body.extend(payload);
        }
        rest = after;
    }
    body
}

/// Takes an integer of variable length (RFC 9000, section 16).
fn integer(bytes: &mut &[u8]) -> u64 {
    let (first, rest) = bytes.split_at(1 << (bytes[0] >> 6));
    *bytes = rest;
    first.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)) & ((1 << (8 * first.len() - 2)) - 1)
}

/// Connection IDs with a lifetime. Every server takes every ID for one of its own.
struct Ids {
    lifetime: Option<Duration>,
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&RandomState::new().build_hasher().finish().to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        self.lifetime
    }
}

/// A key of stateless resets that every server has.
struct ResetKey;

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        for (at, byte) in signature.iter_mut().enumerate() {
            *byte = data.iter().fold(at as u8, |sum, next| sum.wrapping_mul(31).wrapping_add(*next));
        }
    }

    fn signature_len(&self) -> usize {
        16
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> std::result::Result<(), CryptoError> {
        let mut expected = [0; 16];
        self.sign(data, &mut expected);
        if signature == expected { Ok(()) } else { Err(CryptoError) }
    }
}
