//! Settings, error codes and time limits of QUIC that hold for every library.

use std::time::Duration;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientSpec, Transport};

use crate::refusal::Refusal;

/// Idle time-out of a server's connections. Clients set a shorter one, which takes precedence (RFC 9000, section 10.1);
/// this one is for clients that set none.
pub const SERVER_IDLE: Duration = Duration::from_secs(600);

/// The default idle time-out of RFC 9308, section 3.2.
const SHORTEST_IDLE: Duration = Duration::from_secs(30);

/// The smallest and the largest UDP payload of QUIC version 1 (RFC 9000, section 14; RFC 768).
pub const PAYLOADS: std::ops::RangeInclusive<u16> = 1200..=65_527;

/// The largest integer of QUIC (RFC 9000, section 16).
const LARGEST_WINDOW: u64 = (1 << 62) - 1;

/// Idle time-out of a client's connections: longer than a request may take.
#[must_use]
pub fn client_idle(spec: &ClientSpec) -> Duration {
    SHORTEST_IDLE.max(2 * Duration::from_nanos(spec.timeouts.request_ns))
}

/// Refuses transport settings that QUIC does not have or that no QUIC library can honour.
///
/// # Errors
///
/// [`Refusal::Unsupported`] with the setting and the reason.
pub fn check(spec: &Transport) -> Result<(), Refusal> {
    let refuse = |field: &str, why: &str| Err(Refusal::unsupported(format!("`{field}`: {why}")));
    if spec.no_delay.is_some() {
        return refuse("no_delay", "it is an option of TCP; QUIC has no Nagle algorithm to switch");
    }
    if spec.fast_open.is_some() {
        return refuse("fast_open", "it is an option of TCP; QUIC's counterpart is the resumption policy `zero_rtt`");
    }
    if spec.max_udp_payload.is_some_and(|size| !PAYLOADS.contains(&size)) {
        return refuse("max_udp_payload", "QUIC needs between 1200 and 65527 bytes (RFC 9000, section 14)");
    }
    for (field, window) in [("stream_window", spec.stream_window), ("connection_window", spec.connection_window)] {
        if window.is_some_and(|window| window == 0 || window > LARGEST_WINDOW) {
            return refuse(field, "QUIC needs between 1 and 2^62 - 1 bytes");
        }
    }
    Ok(())
}

/// The application error code that closes a connection without an error: `H3_NO_ERROR` (RFC 9114, section 8.1), or 0
/// for raw requests, which define none.
#[must_use]
pub const fn done_code(protocol: Protocol) -> u32 {
    if matches!(protocol, Protocol::H3) { 0x100 } else { 0 }
}

/// The application error code that cancels a request: `H3_REQUEST_CANCELLED`, or the raw protocol's.
#[must_use]
pub const fn given_up_code(protocol: Protocol) -> u32 {
    if matches!(protocol, Protocol::H3) { 0x10c } else { 0 }
}

/// The kind of a QUIC error code (RFC 9000, section 20.1). From 0x100 on the code carries a TLS alert (RFC 9001,
/// section 4.8; RFC 8446, section 6).
#[must_use]
pub const fn kind_of_code(code: u64) -> ErrorKind {
    const CONNECTION_REFUSED: u64 = 0x2;
    match code {
        CONNECTION_REFUSED => ErrorKind::Refused,
        0x100..0x200 => match code & 0xff {
            // bad_certificate, unsupported_certificate, certificate_revoked, certificate_expired, certificate_unknown,
            // unknown_ca
            42..=46 | 48 => ErrorKind::Certificate,
            // no_application_protocol
            120 => ErrorKind::Protocol,
            _ => ErrorKind::Tls,
        },
        _ => ErrorKind::Protocol,
    }
}
