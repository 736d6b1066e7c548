//! Flow-control windows of HTTP/2 (RFC 9113, section 5.2), for both roles.

use wirelab_contract::spec::Transport;

use crate::refusal::Refusal;

/// The largest window of HTTP/2.
const LARGEST: u64 = (1 << 31) - 1;

/// The connection's initial window, which can only grow.
const SMALLEST_CONNECTION: u64 = 65_535;

/// Bytes of credit that this side grants its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Per stream.
    pub stream: u32,
    /// Per connection.
    pub connection: u32,
}

impl Windows {
    /// The initial windows of HTTP/2.
    pub const SMALLEST: Self = Self { stream: SMALLEST_CONNECTION as u32, connection: SMALLEST_CONNECTION as u32 };

    /// The windows of the spec; a window that the spec does not set comes from `default`.
    pub fn of(transport: &Transport, default: Self) -> Result<Self, Refusal> {
        let window = |field: &str, value: Option<u64>, smallest: u64, default: u32| match value {
            None => Ok(default),
            Some(value) if (smallest..=LARGEST).contains(&value) => Ok(value as u32),
            Some(value) => Err(Refusal::unsupported(format!(
                "`{field}` is {value}; HTTP/2 has windows of {smallest} to {LARGEST} bytes"
            ))),
        };
        Ok(Self {
            stream: window("stream_window", transport.stream_window, 1, default.stream)?,
            connection: window(
                "connection_window",
                transport.connection_window,
                SMALLEST_CONNECTION,
                default.connection,
            )?,
        })
    }
}
