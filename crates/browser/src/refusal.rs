//! The codes with which browsers say that a page has no answer.
//!
//! Chromium (`net::ERR_...`) and Firefox (`NS_ERROR_...`, `SEC_ERROR_...`) report them as texts only, with many codes
//! for one cause. This file is the only one that reads them.

/// Why a page has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The response has an error status and no body. Chromium then has no page to show and does not report the status.
    ErrorWithoutBody,
    /// The browser does not accept the server's certificate.
    Certificate,
    /// The name of the server has no address.
    Name,
    /// The server has no connection in this protocol.
    Connection,
    /// Any other code.
    Other,
}

impl Refusal {
    /// The cause in the words of a browser.
    pub(crate) fn of(words: &str) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
        if has(&["HTTP_RESPONSE_CODE_FAILURE"]) {
            Self::ErrorWithoutBody
        } else if has(&["CERT", "ISSUER", "SEC_ERROR", "PKIX"]) {
            Self::Certificate
        } else if has(&["NAME_NOT_RESOLVED", "UNKNOWN_HOST"]) {
            Self::Name
        } else if has(&["REFUSED", "QUIC", "TIMED_OUT", "TIMEOUT", "RESET", "CONNECTION", "PROTOCOL", "ALPN", "SSL"]) {
            Self::Connection
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_browsers_have_a_cause() {
        for (words, cause) in [
            ("net::ERR_HTTP_RESPONSE_CODE_FAILURE", Refusal::ErrorWithoutBody),
            ("net::ERR_CERT_AUTHORITY_INVALID", Refusal::Certificate),
            ("SEC_ERROR_UNKNOWN_ISSUER", Refusal::Certificate),
            ("net::ERR_NAME_NOT_RESOLVED", Refusal::Name),
            ("NS_ERROR_UNKNOWN_HOST", Refusal::Name),
            ("net::ERR_QUIC_PROTOCOL_ERROR", Refusal::Connection),
            ("NS_ERROR_CONNECTION_REFUSED", Refusal::Connection),
            ("net::ERR_ABORTED", Refusal::Other),
        ] {
            assert_eq!(Refusal::of(words), cause, "{words}");
        }
    }
}
