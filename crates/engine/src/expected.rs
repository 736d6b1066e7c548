//! The response that a request should get.

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;

use crate::refusal::Failure;

/// The check of every complete response.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// Status and body size; absent: wirelab did not start the server.
    response: Option<(u16, u64)>,
    is_http: bool,
}

impl Expected {
    /// The expected response of a spec.
    #[must_use]
    pub fn of(spec: &ClientSpec) -> Self {
        let response = spec.request.expect.as_ref().map(|expect| (expect.status, expect.body_size));
        Self { response, is_http: spec.protocol.is_http() }
    }

    /// Checks the status and the body size of a complete response.
    ///
    /// # Errors
    ///
    /// [`Failure`] if one of them is wrong.
    pub fn judge(&self, status: Option<u16>, bytes_in: u64) -> Result<(), Failure> {
        let fail = |kind, message| Err(Failure::new(kind, message));
        match (self.response, status) {
            (Some((wanted, _)), Some(status @ (300..=303 | 305..=399))) if status != wanted => fail(
                ErrorKind::Status,
                format!(
                    "the server answered with status {status} instead of {wanted}, a redirect, which is not followed"
                ),
            ),
            (Some((wanted, _)), Some(status)) if status != wanted => {
                fail(ErrorKind::Status, format!("the server answered with status {status} instead of {wanted}"))
            }
            // Measuring a redirect in place of its target would give a plausible but wrong number. 304 is no redirect.
            (None, Some(status @ (300..=303 | 305..=399))) => fail(
                ErrorKind::Status,
                format!("the server answered with status {status}, a redirect, which is not followed"),
            ),
            (None, Some(status)) if status >= 400 => {
                fail(ErrorKind::Status, format!("the server answered with status {status}"))
            }
            (Some(_), None) if self.is_http => fail(ErrorKind::Protocol, "the response has no status".to_owned()),
            (Some((_, size)), _) if bytes_in < size => {
                fail(ErrorKind::Truncated, format!("the response has {bytes_in} bytes instead of {size}"))
            }
            (Some((_, size)), _) if bytes_in > size => {
                fail(ErrorKind::Digest, format!("the response has {bytes_in} bytes instead of {size}"))
            }
            _ => Ok(()),
        }
    }
}
