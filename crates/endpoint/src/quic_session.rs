//! The client's TLS session for quinn, with access to the negotiated parameters.
//!
//! quinn's own session over rustls keeps the rustls connection private, and with it the only proof of the handshake:
//! `handshake_kind`, the cipher suite and the group. This session puts the same rustls connection behind quinn's public
//! trait `crypto::Session`, and returns these facts as handshake data.

use std::any::Any;
use std::fmt;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use ring::aead;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, DirectionalKeys, KeyChange, Secrets, Suite, Version};
use rustls::{CipherSuite, HandshakeKind, NamedGroup};
use tokio::sync::Notify;
use wirelab_contract::error_kind::ErrorKind;

use crate::quic_padding::Unpadded;
use crate::tls;

/// Prefix of a connection error's reason if the server's certificate was not accepted. The alert alone is ambiguous: a
/// bad signature in the chain and one in the handshake have the same alert.
pub const REJECTED: &str = "the server's certificate was not accepted";

/// Facts about a session; [`quinn::Connection::handshake_data`] returns this type as `Box<dyn Any>`.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// Full or resumed; absent until the server's first flight has been read.
    pub kind: Option<HandshakeKind>,
    /// The cipher suite.
    pub cipher: Option<CipherSuite>,
    /// The group of the key exchange.
    pub group: Option<NamedGroup>,
    /// The application protocol.
    pub alpn: Option<Vec<u8>>,
    /// Bytes of all certificates that the server sent, in this session or in the resumed one.
    pub certificate_chain_bytes: Option<u64>,
    /// Received session tickets.
    pub tickets: Arc<Tickets>,
}

/// Counts the session tickets that arrived on one connection.
#[derive(Debug, Default)]
pub struct Tickets {
    received: AtomicU32,
    arrived: Notify,
}

impl Tickets {
    /// Whether one has arrived.
    pub fn has_any(&self) -> bool {
        self.received.load(Ordering::Acquire) > 0
    }

    /// Waits for the first ticket, for ever if the server sends none: use a time-out.
    pub async fn first(&self) {
        // `notify_one` leaves a permit behind, so a ticket that arrives between the two lines is not missed.
        while self.received.load(Ordering::Acquire) == 0 {
            self.arrived.notified().await;
        }
    }
}

/// The TLS library lacks the cipher suite of Initial packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingSuite;

impl fmt::Display for MissingSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QUIC needs the cipher suite TLS_AES_128_GCM_SHA256 for its Initial packets")
    }
}

impl std::error::Error for MissingSuite {}

/// Creates client sessions from a rustls configuration.
pub struct SessionFactory {
    config: Arc<rustls::ClientConfig>,
    /// The cipher suite of Initial packets (RFC 9001, section 5.2).
    initial: Suite,
    removes_padding: bool,
}

impl SessionFactory {
    /// Creates a factory for `config`. Returns an error if its provider lacks the suite that QUIC version 1 needs.
    pub fn new(config: Arc<rustls::ClientConfig>) -> Result<Self, MissingSuite> {
        let initial = config
            .crypto_provider()
            .cipher_suites
            .iter()
            .filter(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256)
            .find_map(|suite| suite.tls13()?.quic_suite())
            .ok_or(MissingSuite)?;
        Ok(Self { config, initial, removes_padding: false })
    }

    /// The same, with padding removed before quinn sees it. quinn as it is would not be measured so.
    #[must_use]
    pub fn without_padding(self) -> Self {
        Self { removes_padding: true, ..self }
    }
}

impl crypto::ClientConfig for SessionFactory {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != 1 {
            return Err(ConnectError::UnsupportedVersion);
        }
        let name = ServerName::try_from(server_name)
            .map_err(|_| ConnectError::InvalidServerName(server_name.to_owned()))?
            .to_owned();
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        let tls = ClientConnection::new(Arc::clone(&self.config), Version::V1, name, encoded)
            .map_err(|_| ConnectError::InvalidServerName(server_name.to_owned()))?;
        Ok(Box::new(Session {
            tls: tls.into(),
            initial: self.initial,
            removes_padding: self.removes_padding,
            announced: false,
            next_secrets: None,
            tickets: Arc::new(Tickets::default()),
        }))
    }
}

struct Session {
    /// A client connection; only this rustls type exports keying material.
    tls: Connection,
    initial: Suite,
    removes_padding: bool,
    /// Whether quinn knows that handshake data is available; quinn expects this signal once.
    announced: bool,
    next_secrets: Option<Secrets>,
    tickets: Arc<Tickets>,
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        pack(self.initial.keys(dst_cid, side, Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(SessionFacts {
            kind: self.tls.handshake_kind(),
            cipher: self.tls.negotiated_cipher_suite().map(|suite| suite.suite()),
            group: self.tls.negotiated_key_exchange_group().map(rustls::crypto::SupportedKxGroup::name),
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            certificate_chain_bytes: self
                .tls
                .peer_certificates()
                .map(|chain| chain.iter().map(|certificate| certificate.len() as u64).sum()),
            tickets: Arc::clone(&self.tickets),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let chain: Vec<_> = self.tls.peer_certificates()?.iter().map(|c| c.clone().into_owned()).collect();
        Some(Box::new(chain))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.tls.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.tls {
            Connection::Client(client) => Some(client.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.tls.read_hs(buf).map_err(|error| TransportError {
            code: match self.tls.alert() {
                Some(alert) => TransportErrorCode::crypto(alert.into()),
                None => TransportErrorCode::PROTOCOL_VIOLATION,
            },
            frame: None,
            reason: match tls::classify(&error) {
                ErrorKind::Certificate => format!("{REJECTED}: {error}"),
                _ => error.to_string(),
            },
        })?;
        let received = match &self.tls {
            Connection::Client(client) => client.tls13_tickets_received(),
            Connection::Server(_) => 0,
        };
        if received > self.tickets.received.swap(received, Ordering::AcqRel) {
            self.tickets.arrived.notify_one();
        }
        let known = self.tls.alpn_protocol().is_some() || !self.tls.is_handshaking();
        Ok(known && !std::mem::replace(&mut self.announced, known))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.tls
            .quic_transport_parameters()
            .map(|encoded| TransportParameters::read(Side::Client, &mut Cursor::new(encoded)))
            .transpose()
            .map_err(Into::into)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        Some(match self.tls.write_hs(buf)? {
            KeyChange::Handshake { keys } => pack(keys),
            KeyChange::OneRtt { keys, next } => {
                self.next_secrets = Some(next);
                let mut keys = pack(keys);
                keys.packet.remote = self.readable(keys.packet.remote);
                keys
            }
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: self.readable(Box::new(keys.remote)) })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        retry_is_valid(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        match self.tls.export_keying_material(output, label, Some(context)) {
            Ok(_) => Ok(()),
            Err(_) => Err(ExportKeyingMaterialError),
        }
    }
}

impl Session {
    /// The key of packets from the server, as quinn gets it.
    fn readable(&self, key: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        if self.removes_padding { Box::new(Unpadded(key)) } else { key }
    }
}

fn pack(keys: rustls::quic::Keys) -> Keys {
    let DirectionalKeys { header: local_header, packet: local_packet, .. } = keys.local;
    let DirectionalKeys { header: remote_header, packet: remote_packet, .. } = keys.remote;
    Keys {
        header: KeyPair { local: Box::new(local_header), remote: Box::new(remote_header) },
        packet: KeyPair { local: Box::new(local_packet), remote: Box::new(remote_packet) },
    }
}

/// Checks the integrity tag of a Retry packet with the fixed key and nonce of QUIC version 1 (RFC 9001, section 5.8).
fn retry_is_valid(orig_dst_cid: &[u8], header: &[u8], payload: &[u8]) -> bool {
    const KEY: [u8; 16] =
        [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
    const NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
    let Some((token, tag)) = payload.split_last_chunk::<16>() else { return false };
    let Ok(id_length) = u8::try_from(orig_dst_cid.len()) else { return false };
    let pseudo_packet = [&[id_length], orig_dst_cid, header, token].concat();
    let Ok(key) = aead::UnboundKey::new(&aead::AES_128_GCM, &KEY) else { return false };
    let nonce = aead::Nonce::assume_unique_for_key(NONCE);
    aead::LessSafeKey::new(key).open_in_place(nonce, aead::Aad::from(pseudo_packet), &mut tag.to_vec()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001, appendix A.4: the Retry packet that answers the sample connection ID.
    #[test]
    fn the_retry_packet_of_the_rfc_is_valid_and_a_changed_one_is_not() {
        let orig_dst_cid = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        let header = [0xff, 0, 0, 0, 1, 0, 8, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5];
        let mut payload = *b"token\x04\xa2\x65\xba\x2e\xff\x4d\x82\x90\x58\xfb\x3f\x0f\x24\x96\xba";
        assert!(retry_is_valid(&orig_dst_cid, &header, &payload));
        payload[0] ^= 1;
        assert!(!retry_is_valid(&orig_dst_cid, &header, &payload));
        assert!(!retry_is_valid(&orig_dst_cid, &header, b"short"));
    }
}
