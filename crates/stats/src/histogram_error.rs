//! Faults of the histograms that clients report.

use base64::DecodeError;
use hdrhistogram::AdditionError;
use hdrhistogram::serialization::{DeserializeError, V2SerializeError};
use thiserror::Error;

/// Why the histograms of a client, or of several, are unusable.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the text of a variant says what it means")]
pub enum HistogramError {
    #[error("the client reports {requests} successful requests, but its histogram of response times holds {held}")]
    OtherRequests { requests: u64, held: u64 },
    #[error("a sum of what clients report is above 2^64, which no client reaches")]
    TooLarge,
    #[error("the client's histogram `{name}` is unusable: it is not base64 ({cause})")]
    NotBase64 { name: &'static str, cause: DecodeError },
    #[error("the client's histogram `{name}` is unusable: it is not an HdrHistogram in V2 encoding ({cause})")]
    NotV2 { name: &'static str, cause: DeserializeError },
    #[error("the client's histogram `{name}` is unusable: it has {held} bytes after its header, which says {said}")]
    CutShort { name: &'static str, held: usize, said: u32 },
    #[error("the client's histogram `{name}` is unusable: it holds {held} values, but says {said}")]
    OtherCount { name: &'static str, held: u64, said: u64 },
    #[error("the client's histogram `{name}` is unusable: its smallest value is above its largest")]
    NoRange { name: &'static str },
    #[error("the clients' histograms `{name}` cannot be added: {cause}")]
    NotAdded { name: &'static str, cause: AdditionError },
    #[error("the clients' histograms `{name}` cannot be written: {cause}")]
    NotWritten { name: &'static str, cause: V2SerializeError },
}
