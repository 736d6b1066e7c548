//! The request header of the raw transports: 24 bytes, three big-endian numbers.

#[cfg(feature = "load")]
pub mod server;
#[cfg(feature = "load")]
mod stream;

use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ClientSpec;

use crate::refusal::Refusal;
#[cfg(feature = "load")]
pub use stream::RawStream;

/// Length of the encoded header in bytes.
pub const HEADER: usize = 24;

/// A raw request. Its body, `body` bytes of the pattern, follows; the response is exactly `wanted` bytes of the
/// pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Wanted size of the response in bytes.
    pub wanted: u64,
    /// Size of the request body in bytes.
    pub body: u64,
    /// Delay of the server's answer in microseconds.
    pub delay_us: u64,
}

impl Header {
    /// The header of the spec's request. Only two forms of paths matter, as for HTTP servers: `/delay/MICROSECONDS`,
    /// and `/bytes/N` if the spec has no expected size.
    #[must_use]
    pub fn of(spec: &ClientSpec) -> Self {
        let request = &spec.request;
        let number = |prefix: &str| request.path.strip_prefix(prefix).and_then(|n| n.parse::<u64>().ok());
        let wanted = match &request.expect {
            Some(expect) => expect.body_size,
            None => number("/bytes/").unwrap_or(if number("/delay/").is_some() { 0 } else { request.body_size }),
        };
        Self { wanted, body: request.body_size, delay_us: number("/delay/").unwrap_or(0) }
    }

    /// Refuses a response that a stream without framing does not show.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for a response of 0 bytes.
    pub fn check_visible(&self, protocol: Protocol) -> Result<(), Refusal> {
        if self.wanted > 0 {
            return Ok(());
        }
        Err(Refusal::unsupported(format!(
            "a response of 0 bytes by `{protocol}`: on a stream without framing its arrival is not visible; ask for at least 1 byte"
        )))
    }

    /// Encodes the header.
    #[must_use]
    pub fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.wanted.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.body.to_be_bytes());
        bytes[16..].copy_from_slice(&self.delay_us.to_be_bytes());
        bytes
    }

    /// Decodes a header.
    #[must_use]
    pub fn decode(bytes: &[u8; HEADER]) -> Self {
        let number = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(field)
        };
        Self { wanted: number(0), body: number(8), delay_us: number(16) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_three_big_endian_numbers() {
        let header = Header { wanted: 1, body: 0x0203, delay_us: u64::MAX };
        let bytes = header.encode();
        assert_eq!(bytes[..16], [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3]);
        assert_eq!(bytes[16..], [255; 8]);
        assert_eq!(Header::decode(&bytes), header);
    }
}
