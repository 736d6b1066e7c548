//! The status of a call of gRPC in words.

use percent_encoding::percent_decode;

/// The names of status codes from 0 on (gRPC, `statuscodes.md`).
const STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Largest number of characters of the server's reason in a message.
const REASON: usize = 200;

/// The status other than 0, its name, and the server's reason, which is percent-encoded.
#[must_use]
pub fn refusal(status: u32, reason: &[u8]) -> String {
    let name = usize::try_from(status).ok().and_then(|status| STATUSES.get(status));
    let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
    let reason = percent_decode(reason).decode_utf8_lossy();
    let shown: String = reason.chars().take(REASON).collect();
    let cut = if shown.len() < reason.len() { "..." } else { "" };
    let reason = if reason.is_empty() { String::new() } else { format!(": `{}{cut}`", shown.escape_debug()) };
    format!("the server answered with `grpc-status` {status}{name} instead of 0{reason}")
}
