//! Histograms in place of records, for rates at which one record per request would disturb the measurement.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error_kind::ErrorKind;
use crate::sample::Handshake;

/// The results file of a client whose spec says `"recording": "histograms"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Histograms {
    /// Response time (intended start to last byte) of successful requests.
    pub response: Histogram,
    /// Service time (actual start to last byte) of successful requests.
    pub service: Histogram,
    /// Schedule lag (intended to actual start) of all requests.
    pub lag: Histogram,
    /// Time from start to end of the handshake, of successful requests that opened a connection.
    pub handshake: Histogram,
    /// Time from start to first byte of successful requests.
    pub first_byte: Histogram,
    /// Time from intended start to failure of failed requests.
    pub failure: Histogram,
    /// Requests that succeeded.
    pub requests: u64,
    /// Requests that failed, by kind.
    pub errors: IndexMap<ErrorKind, u64>,
    /// Bytes of response body of successful requests.
    pub bytes_in: u64,
    /// Bytes of request body of successful requests.
    pub bytes_out: u64,
    /// Connections opened.
    pub connections: u64,
    /// Number of handshakes by kind.
    pub handshakes: IndexMap<Handshake, u64>,
}

/// One HDR histogram of nanoseconds, with the exact values that quantisation loses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// The histogram in HdrHistogram's V2 encoding (uncompressed), base64; empty if `count` is 0. Three significant
    /// digits: a relative error of at most 0.1 %.
    pub v2: String,
    /// Number of values.
    pub count: u64,
    /// The exact smallest value, 0 if `count` is 0.
    pub min_ns: u64,
    /// The exact largest value, 0 if `count` is 0.
    pub max_ns: u64,
    /// The exact sum, from which the exact mean follows.
    pub sum_ns: u64,
}
