//! The record of one request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error_kind::ErrorKind;

/// One request, as measured by its client: one JSON line of the results file.
///
/// Times are nanoseconds of one monotonic clock; zero is the receipt of the second `go`. A time that does not apply is
/// absent: `connected_ns` and `handshake_ns` if the request did not open its connection, `first_byte_ns` and `status`
/// if no response came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Start time by the schedule.
    pub intended_ns: u64,
    /// Actual start time: before connecting if the request opened its connection, otherwise when the client handed over
    /// the first byte.
    pub start_ns: u64,
    /// When the transport was connected: in TCP, when the SYN-ACK arrived. QUIC has no such time apart from the
    /// handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_ns: Option<u64>,
    /// When the client could send its request: the TLS or QUIC handshake was complete, or 0-RTT keys were available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_ns: Option<u64>,
    /// Arrival of the first byte of the response (of its header, if the protocol has one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<u64>,
    /// Arrival of the last byte of the response, or time of the failure.
    pub last_byte_ns: u64,
    /// Number of the request in `mix`, from 0; absent without a mix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u32>,
    /// Bytes of request body sent.
    pub bytes_out: u64,
    /// Bytes of response body received.
    pub bytes_in: u64,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Number of the connection that carried the request, from 0 in the order of opening.
    pub connection: u32,
    /// Kind of handshake of the connection that this request opened; absent if it opened none, or without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<Handshake>,
    /// Kind of failure; absent: the request succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorKind>,
}

/// Kind of a TLS or QUIC handshake, as the library reports it for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Handshake {
    /// A full handshake with a certificate.
    Full,
    /// Resumed from a ticket.
    Resumed,
    /// Resumed, and the server accepted 0-RTT data.
    EarlyAccepted,
    /// 0-RTT data was sent and the server rejected it; it was sent again.
    EarlyRejected,
}

impl Sample {
    /// Whether the request succeeded.
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        self.error.is_none()
    }

    /// Response time, which a user experiences: from the intended start to the last byte.
    #[must_use]
    pub const fn response_ns(&self) -> u64 {
        self.last_byte_ns.saturating_sub(self.intended_ns)
    }

    /// Service time of server and network: from the actual start to the last byte.
    #[must_use]
    pub const fn service_ns(&self) -> u64 {
        self.last_byte_ns.saturating_sub(self.start_ns)
    }

    /// Schedule lag, which the client itself adds: from the intended to the actual start.
    #[must_use]
    pub const fn lag_ns(&self) -> u64 {
        self.start_ns.saturating_sub(self.intended_ns)
    }

    /// Checks the order of the times, and that a success has a first byte. Returns the first violation.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.start_ns < self.intended_ns {
            return Err("it started before its intended start");
        }
        let mut before = self.start_ns;
        for time in
            [self.connected_ns, self.handshake_ns, self.first_byte_ns, Some(self.last_byte_ns)].into_iter().flatten()
        {
            if time < before {
                return Err("its times are not in order");
            }
            before = time;
        }
        if self.is_ok() && self.first_byte_ns.is_none() {
            return Err("it succeeded without a first byte");
        }
        Ok(())
    }
}
