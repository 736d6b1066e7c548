//! TLS for both roles, from the spec; the same configuration for TLS over TCP and inside QUIC. The version is 1.3, or
//! for a client 1.2 if the spec says so.
//!
//! Every protocol has the same key exchange group (X25519) and preferred cipher suite (TLS_AES_128_GCM_SHA256), so that
//! compared cells do not differ in them by accident. [`facts`] reports the negotiated parameters.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionStore, Resumption as RustlsResumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
    WebPkiServerVerifier, verify_server_name,
};
use rustls::crypto::ring::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, TLS13_AES_128_GCM_SHA256,
    TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::ring::kx_group::{SECP256R1, X25519};
use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, ServerSessionMemoryCache};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, CommonState, DigitallySignedStruct, KeyLog, NamedGroup,
    ProtocolVersion, RootCertStore, ServerConfig, SignatureScheme,
};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientSpec, Resumption, ServerSpec, TlsVersion};

use crate::refusal::Refusal;

/// Early data that a server accepts over TCP, in bytes. It fits the socket buffers of both sides, so an echo of early
/// data cannot block both sides on each other. QUIC has no such limit of its own (RFC 9001, section 4.6.1).
const EARLY_DATA_OVER_TCP: u32 = 16 * 1024;

/// Number of sessions that a server stores for 0-RTT; rustls allows 0-RTT only with stored sessions.
const SESSIONS_KEPT: usize = 1 << 17;

/// Maximum number of session tickets that a client stores.
const TICKETS_KEPT: usize = 1 << 16;

/// TLS configuration of a client.
#[derive(Debug, Clone)]
pub struct ClientSide {
    /// The configuration; early data is enabled if the spec asks for 0-RTT.
    pub config: Arc<ClientConfig>,
    /// Unused session tickets.
    pub tickets: Arc<TicketStore>,
    /// The name to send and to check the certificate against.
    pub name: ServerName<'static>,
}

/// Creates a client's TLS configuration from its spec.
///
/// # Errors
///
/// [`Refusal`] if a file is unreadable or invalid.
pub fn client(spec: &ClientSpec) -> Result<ClientSide, Refusal> {
    let own = provider();
    let provider = match spec.tls.as_ref().map(|tls| tls.version) {
        // In TLS 1.2 the groups are also those of the server's certificate (RFC 8422, section 5.1.1).
        Some(TlsVersion::Tls12) => Arc::new(CryptoProvider { kx_groups: vec![X25519, SECP256R1], ..(*own).clone() }),
        _ => own,
    };
    client_with(spec, provider)
}

/// Like [`client`], with the cryptography of `provider`.
///
/// # Errors
///
/// See [`client`].
pub fn client_with(spec: &ClientSpec, provider: Arc<CryptoProvider>) -> Result<ClientSide, Refusal> {
    let tls = spec.tls.as_ref().ok_or_else(|| {
        Refusal::failed(format!("the protocol `{}` needs the section `tls` in the spec", spec.protocol))
    })?;
    let versions = match tls.version {
        TlsVersion::Tls12 if spec.protocol.uses_quic() => {
            return Err(Refusal::unsupported("`tls.version` is 1.2, but QUIC has TLS 1.3 only"));
        }
        TlsVersion::Tls12 => [&TLS12],
        TlsVersion::Tls13 => [&TLS13],
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(|error| Refusal::failed(format!("setting up TLS: {error}")))?;
    let builder = if tls.verify {
        let roots = Arc::new(roots(tls.trust_anchor.as_deref())?);
        let trusted = tls.trust_anchor.as_deref().map_or_else(|| Ok(Vec::new()), certificates)?;
        let inner = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| Refusal::failed(format!("setting up TLS: {error}")))?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Verified { inner, trusted }))
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
    };
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let own = certificates(&identity.certificate)?;
            builder.with_client_auth_cert(own, private_key(&identity.key)?).map_err(|error| {
                Refusal::failed(format!("using the certificate {}: {error}", identity.certificate.display()))
            })?
        }
    };
    config.alpn_protocols = alpn(spec.protocol);
    let tickets = Arc::new(TicketStore::default());
    config.resumption = match spec.resumption {
        Resumption::None => RustlsResumption::disabled(),
        Resumption::Resume | Resumption::ZeroRtt => {
            RustlsResumption::store(Arc::clone(&tickets) as Arc<dyn ClientSessionStore>)
        }
    };
    config.enable_early_data = spec.resumption == Resumption::ZeroRtt;
    if let Some(path) = &tls.key_log {
        config.key_log = KeyFile::open(path)?;
    }
    let name = ServerName::try_from(spec.server_name.clone())
        .map_err(|_| Refusal::failed(format!("`{}` is not a name that TLS can send and check", spec.server_name)))?;
    Ok(ClientSide { config: Arc::new(config), tickets, name })
}

/// Creates a server's TLS configuration from its spec.
///
/// # Errors
///
/// See [`client`].
pub fn server(spec: &ServerSpec) -> Result<Arc<ServerConfig>, Refusal> {
    server_with(spec, provider())
}

/// Like [`server`], with the cryptography of `provider`.
///
/// # Errors
///
/// See [`client`].
pub fn server_with(spec: &ServerSpec, provider: Arc<CryptoProvider>) -> Result<Arc<ServerConfig>, Refusal> {
    let tls = spec.tls.as_ref().ok_or_else(|| {
        Refusal::failed(format!("the protocol `{}` needs the section `tls` in the spec", spec.protocol))
    })?;
    let key = private_key(&tls.key)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| Refusal::failed(format!("setting up TLS: {error}")))?
        .with_no_client_auth()
        .with_single_cert(certificates(&tls.certificate)?, key)
        .map_err(|error| Refusal::failed(format!("using the certificate {}: {error}", tls.certificate.display())))?;
    config.alpn_protocols = alpn(spec.protocol);
    if tls.early_data {
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS_KEPT);
        // QUIC requires exactly this value if early data is accepted (RFC 9001, section 4.6.1).
        config.max_early_data_size = if spec.protocol.uses_quic() { u32::MAX } else { EARLY_DATA_OVER_TCP };
        // Otherwise the answer to early data waits for the client's Finished, which costs a round trip.
        config.send_half_rtt_data = true;
    } else if tls.resumption {
        config.ticketer = Ticketer::new().map_err(|error| Refusal::failed(format!("creating ticket keys: {error}")))?;
    } else {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    if let Some(path) = &tls.key_log {
        config.key_log = KeyFile::open(path)?;
    }
    Ok(Arc::new(config))
}

/// Negotiated parameters of a connection, under the names of `configured`.
pub fn facts(state: &CommonState) -> Configured {
    let mut facts = Configured::new();
    if state.protocol_version() == Some(ProtocolVersion::TLSv1_2) {
        facts.insert("tls".to_owned(), "1.2".into());
    }
    if let Some(suite) = state.negotiated_cipher_suite() {
        facts.insert("cipher".to_owned(), cipher_name(suite.suite()).into());
    }
    if let Some(group) = state.negotiated_key_exchange_group() {
        facts.insert("group".to_owned(), group_name(group.name()).into());
    }
    if let Some(alpn) = state.alpn_protocol() {
        facts.insert("alpn".to_owned(), String::from_utf8_lossy(alpn).into());
    }
    if let Some(chain) = state.peer_certificates() {
        let bytes: usize = chain.iter().map(|certificate| certificate.len()).sum();
        facts.insert("certificate_chain_bytes".to_owned(), bytes.into());
    }
    facts
}

/// The IANA name of a cipher suite; rustls's names include the version of TLS.
#[must_use]
pub fn cipher_name(suite: CipherSuite) -> String {
    format!("{suite:?}").replacen("TLS13_", "TLS_", 1)
}

/// The name of a key exchange group in `configured`.
#[must_use]
pub fn group_name(group: NamedGroup) -> String {
    format!("{group:?}")
}

/// The kind of a TLS error.
#[must_use]
pub fn classify(error: &rustls::Error) -> ErrorKind {
    match error {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => ErrorKind::Certificate,
        rustls::Error::NoApplicationProtocol
        | rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol) => ErrorKind::Protocol,
        _ => ErrorKind::Tls,
    }
}

/// A TLS error in words.
#[must_use]
pub fn explain(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(reason) = error else { return error.to_string() };
    let why = match reason {
        CertificateError::UnknownIssuer => "no authority that is trusted here issued it (UnknownIssuer)".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!("it has expired ({reason})"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("it is not valid yet ({reason})")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is for another name ({reason})")
        }
        CertificateError::Revoked => "it has been revoked".to_owned(),
        // rustls has no kind for it.
        other if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is the certificate of an authority (CA:TRUE)".to_owned()
        }
        other => other.to_string(),
    };
    format!("the server's certificate is not accepted: {why}")
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            TLS13_AES_128_GCM_SHA256,
            TLS13_AES_256_GCM_SHA384,
            TLS13_CHACHA20_POLY1305_SHA256,
            TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![X25519],
        ..default_provider()
    })
}

fn alpn(protocol: Protocol) -> Vec<Vec<u8>> {
    protocol.alpn().map(|name| vec![name.as_bytes().to_vec()]).unwrap_or_default()
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Refusal> {
    let attempt = |error| Refusal::failed(format!("reading certificates from {}: {error}", path.display()));
    CertificateDer::pem_file_iter(path).map_err(attempt)?.collect::<Result<_, _>>().map_err(attempt)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Refusal> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| Refusal::failed(format!("reading the private key {}: {error}", path.display())))
}

fn roots(anchor: Option<&Path>) -> Result<RootCertStore, Refusal> {
    let mut roots = RootCertStore::empty();
    match anchor {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| {
                    Refusal::failed(format!("trusting the certificate in {}: {error}", path.display()))
                })?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
                return Err(Refusal::failed(format!(
                    "this system has no certificate authorities to trust ({}); install ca-certificates, or name a `trust_anchor`",
                    reasons.join("; ")
                )));
            }
        }
    }
    Ok(roots)
}

/// Session tickets, each used once, the newest first. All are from one server, because a client uses a single server
/// name.
#[derive(Debug, Default)]
pub struct TicketStore(Mutex<VecDeque<Tls13ClientSessionValue>>);

impl TicketStore {
    /// Number of tickets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue().len()
    }

    /// Whether the store is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Tls13ClientSessionValue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for TicketStore {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut queue = self.queue();
        if queue.len() == TICKETS_KEPT {
            queue.pop_front();
        }
        queue.push_back(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.queue().pop_back()
    }
}

/// Appends TLS secrets to a file in the NSS key log format.
#[derive(Debug)]
struct KeyFile(Mutex<File>);

impl KeyFile {
    fn open(path: &Path) -> Result<Arc<dyn KeyLog>, Refusal> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|error| Refusal::failed(format!("opening the key log {}: {error}", path.display())))?;
        Ok(Arc::new(Self(Mutex::new(file))))
    }
}

impl KeyLog for KeyFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(line.as_bytes()) {
            // A closed standard error must not end a client.
            let _ = writeln!(io::stderr(), "writing the key log: {error}");
        }
    }
}

/// Verifies chain and name. Accepts a server's certificate that the user trusts itself, even if it is one of an
/// authority (CA:TRUE), as `openssl req -x509` makes it.
#[derive(Debug)]
struct Verified {
    inner: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verified {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.inner.verify_server_cert(leaf, chain, name, ocsp, now) {
            // An expired certificate has another error, which comes first.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) if self.trusted.contains(leaf) => {
                verify_server_name(&ParsedCertificate::try_from(leaf)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, leaf, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, leaf, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Accepts any certificate, but still checks that the server holds its key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
