//! The settings of a spec, from the spec to MsQuic: each is honoured, or refused with the reason.

use std::ffi::c_void;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use msquic::ffi::{QUIC_PARAM_CONFIGURATION_SETTINGS, QUIC_SETTINGS};
use msquic::{
    AllowedCipherSuiteFlags, Api, BufferRef, CertificateFile, Configuration, Credential, CredentialConfig,
    CredentialFlags, ServerResumptionLevel, Settings as Values,
};
use serde_json::json;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{Congestion, Transport};
use wirelab_endpoint::program::{ClientSpec, Configured, Refusal, ServerSpec, check_quic};

use crate::library::{Open, registration};

/// Requests that a peer may have in flight on one connection, the same as of the built-in endpoint.
const STREAMS: u16 = 256;

/// Streams of one direction that a peer may open: HTTP/3 needs three, and some peers open a further one now and then.
const STREAMS_OF_ONE_DIRECTION: u16 = 100;

/// Where this system keeps the authorities that it trusts (Debian's ca-certificates); MsQuic does not look for them.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// MsQuic's numbers of congestion controllers.
const CUBIC: u16 = 0;
const BBR: u16 = 1;

/// Headers of IP and UDP, which MsQuic counts as part of its packets.
const HEADERS_V4: u16 = 28;
const HEADERS_V6: u16 = 48;

/// The configuration of connections.
pub struct Settings {
    configuration: Configuration,
    headers: u16,
    _open: Open,
}

impl Settings {
    /// A client's. `idle` ends a connection that nothing arrives on.
    pub fn client(spec: &ClientSpec, idle: Duration) -> Result<Self, Refusal> {
        let tls = spec.tls.as_ref().ok_or_else(|| no_tls(spec.protocol))?;
        let values = values(&spec.transport, spec.address, spec.qlog_dir.as_deref(), idle)?;
        let mut credential = CredentialConfig::new_client();
        credential = if tls.verify {
            let anchor = tls.trust_anchor.as_deref().unwrap_or(Path::new(AUTHORITIES));
            // MsQuic verifies the chain; the client verifies the name when MsQuic shows the certificate.
            credential.set_ca_certificate_file(text(anchor)).set_credential_flags(
                CredentialFlags::INDICATE_CERTIFICATE_RECEIVED | CredentialFlags::USE_PORTABLE_CERTIFICATES,
            )
        } else {
            credential.set_credential_flags(CredentialFlags::NO_CERTIFICATE_VALIDATION)
        };
        Self::open(spec.protocol, spec.address, &values, credential)
    }

    /// A server's. `idle` ends a connection that nothing arrives on.
    pub fn server(spec: &ServerSpec, idle: Duration) -> Result<Self, Refusal> {
        let tls = spec.tls.as_ref().ok_or_else(|| no_tls(spec.protocol))?;
        if spec.threads.is_some() {
            return Err(Refusal::unsupported("`threads`: MsQuic has a worker thread for each processor"));
        }
        let mut values = values(&spec.transport, spec.address, spec.qlog_dir.as_deref(), idle)?;
        values = values.set_ServerResumptionLevel(match (tls.resumption, tls.early_data) {
            (_, true) => ServerResumptionLevel::ResumeAndZerortt,
            (true, false) => ServerResumptionLevel::ResumeOnly,
            (false, false) => ServerResumptionLevel::NoResume,
        });
        let files = CertificateFile::new(text(&tls.key), text(&tls.certificate));
        let credential = CredentialConfig::new().set_credential(Credential::CertificateFile(files));
        Self::open(spec.protocol, spec.address, &values, credential)
    }

    fn open(
        protocol: Protocol,
        address: IpAddr,
        values: &Values,
        credential: CredentialConfig,
    ) -> Result<Self, Refusal> {
        let alpn = [BufferRef::from(protocol.alpn().unwrap_or_default())];
        let configuration = Configuration::open(registration()?, &alpn, Some(values)).map_err(|status| {
            Refusal::unsupported(format!("MsQuic does not take the settings of `transport`: {status}"))
        })?;
        let open = Open::one();
        // The cipher suite that every endpoint of wirelab prefers; MsQuic would prefer another one.
        let credential = credential.set_allowed_cipher_suites(AllowedCipherSuiteFlags::AES_128_GCM_SHA256);
        configuration
            .load_credential(&credential)
            .map_err(|status| Refusal::failed(format!("loading the certificates or the key of the spec: {status}")))?;
        let headers = if address.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        Ok(Self { configuration, headers, _open: open })
    }

    /// MsQuic's configuration.
    pub const fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// The active settings, as MsQuic reports them.
    pub fn report(&self) -> Result<Configured, Refusal> {
        let values = self.read()?;
        let mut configured = Configured::new();
        let mut say = |name: &str, value: serde_json::Value| configured.insert(name.to_owned(), value);
        let congestion = match values.CongestionControlAlgorithm {
            CUBIC => Congestion::Cubic.token().to_owned(),
            BBR => Congestion::Bbr.token().to_owned(),
            other => format!("number {other} of MsQuic"),
        };
        say("congestion", json!(congestion));
        say("stream_window", json!(values.StreamRecvWindowDefault));
        say("connection_window", json!(values.ConnFlowControlWindow));
        say("initial_udp_payload", json!(values.MinimumMtu.saturating_sub(self.headers)));
        say("max_udp_payload", json!(values.MaximumMtu.saturating_sub(self.headers)));
        say("pacing", json!(values.PacingEnabled() != 0));
        Ok(configured)
    }

    fn read(&self) -> Result<QUIC_SETTINGS, Refusal> {
        // SAFETY: it consists of integers only, for which zeros are values.
        let mut values: QUIC_SETTINGS = unsafe { std::mem::zeroed() };
        let size = size_of::<QUIC_SETTINGS>() as u32;
        // SAFETY: the handle is open, and MsQuic writes at most `size` bytes to `values`, whose size that is.
        unsafe {
            Api::get_param(
                self.configuration.as_raw(),
                QUIC_PARAM_CONFIGURATION_SETTINGS,
                &raw const size,
                (&raw mut values).cast::<c_void>(),
            )
        }
        .map_err(|status| Refusal::failed(format!("asking MsQuic for its settings: {status}")))?;
        Ok(values)
    }
}

fn values(spec: &Transport, address: IpAddr, qlog: Option<&Path>, idle: Duration) -> Result<Values, Refusal> {
    check_quic(spec)?;
    let refuse = |why: &str| Err(Refusal::unsupported(why));
    if qlog.is_some() {
        return refuse("`qlog_dir`: MsQuic writes no qlog");
    }
    if spec.udp_send_buffer.is_some() || spec.udp_receive_buffer.is_some() {
        return refuse(
            "`udp_send_buffer`, `udp_receive_buffer`: MsQuic opens its sockets itself, and sizes them itself",
        );
    }
    if spec.gso.is_some() || spec.gro.is_some() {
        return refuse("`gso`, `gro`: MsQuic uses the features of the kernel and has no setting for them");
    }
    let mut values = Values::new()
        .set_IdleTimeoutMs(idle.as_millis() as u64)
        // A client's deadline is the engine's; a handshake is given up by it or by this.
        .set_HandshakeIdleTimeoutMs(idle.as_millis() as u64)
        .set_PeerBidiStreamCount(STREAMS)
        .set_PeerUnidiStreamCount(STREAMS_OF_ONE_DIRECTION);
    values = match spec.congestion {
        None => values,
        Some(Congestion::Cubic) => values.set_CongestionControlAlgorithm(CUBIC),
        Some(Congestion::Bbr) => values.set_CongestionControlAlgorithm(BBR),
        Some(Congestion::Reno) => return refuse("`congestion`: MsQuic has cubic and bbr, not reno"),
    };
    if let Some(window) = spec.stream_window {
        values = values.set_StreamRecvWindowDefault(window_of("stream_window", window)?);
    }
    if let Some(window) = spec.connection_window {
        values = values.set_ConnFlowControlWindow(window_of("connection_window", window)?);
    }
    if let Some(payload) = spec.max_udp_payload {
        let headers = if address.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        let packet = payload.saturating_add(headers);
        // From the first packet on, and never more: no discovery.
        values = values.set_MinimumMtu(packet).set_MaximumMtu(packet);
    }
    Ok(values)
}

/// MsQuic's windows have 32 bits, and those of streams are powers of two.
fn window_of(field: &str, window: u64) -> Result<u32, Refusal> {
    let bytes = u32::try_from(window).ok().filter(|bytes| field != "stream_window" || bytes.is_power_of_two());
    bytes.ok_or_else(|| {
        Refusal::unsupported(format!(
            "`{field}` = {window}: MsQuic takes less than 2^32 bytes, and for a stream a power of two"
        ))
    })
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn no_tls(protocol: Protocol) -> Refusal {
    Refusal::failed(format!("the protocol `{protocol}` needs the section `tls` in the spec"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_msquic_would_round_is_refused() {
        assert_eq!(window_of("stream_window", 262_144).unwrap(), 262_144);
        assert!(window_of("stream_window", 262_145).is_err());
        assert_eq!(window_of("connection_window", 262_145).unwrap(), 262_145);
        assert!(window_of("connection_window", 1 << 32).is_err());
    }
}
