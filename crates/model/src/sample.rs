//! The record of one request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::ErrorKind;

/// One request, as its client saw it: one JSON line of the results file.
///
/// Times are nanoseconds on one monotonic clock whose zero is the receipt of the second `go`. A time that does not
/// apply is absent: `connected_ns` and `handshake_ns` where the request did not open its connection, `first_byte_ns` and
/// `status` where no response came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// When the schedule wanted the request to start.
    pub intended_ns: u64,
    /// When it started: before connecting, where it opened its connection, else when its first byte was handed over.
    pub start_ns: u64,
    /// When the transport was connected. TCP: the SYN-ACK arrived. QUIC has no such moment apart from the handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_ns: Option<u64>,
    /// When the client could send its request: the TLS or QUIC handshake was complete, or 0-RTT keys were there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_ns: Option<u64>,
    /// When the first byte of the response (its header, where the protocol has one) had arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<u64>,
    /// When the last byte of the response had arrived, or the request had failed.
    pub last_byte_ns: u64,
    /// Bytes of request body sent.
    pub bytes_out: u64,
    /// Bytes of response body received.
    pub bytes_in: u64,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Which connection carried it; numbered from 0 in the order of opening.
    pub connection: u32,
    /// How the connection that this request opened began; absent where it did not open one, or has no TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<Handshake>,
    /// Why it failed; absent: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorKind>,
}

/// How a TLS or QUIC connection began, as proven by the library for this connection.
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

    /// Response time: from the intended start to the last byte. What a user waits.
    #[must_use]
    pub const fn response_ns(&self) -> u64 {
        self.last_byte_ns.saturating_sub(self.intended_ns)
    }

    /// Service time: from the actual start to the last byte. What the server and the network take.
    #[must_use]
    pub const fn service_ns(&self) -> u64 {
        self.last_byte_ns.saturating_sub(self.start_ns)
    }

    /// Schedule lag: from the intended to the actual start. What the client itself adds.
    #[must_use]
    pub const fn lag_ns(&self) -> u64 {
        self.start_ns.saturating_sub(self.intended_ns)
    }

    /// Whether the times are in order and every bound that physics sets is kept; the first violation otherwise.
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
