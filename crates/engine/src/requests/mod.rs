//! The requests of a thread: which one is next, and what its response must be.

mod expectation;
mod json_path;
mod messages;
mod mix;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;

use crate::expected::Expected;
use crate::refusal::{Failure, Refusal};
use crate::schedule::Share;

use expectation::Check;
use mix::Mix;
pub use mix::{Pick, prepare};

/// The requests of a thread: one that it repeats, or a mix of several.
#[derive(Debug)]
pub struct Requests {
    /// The request without a mix.
    only: Pick,
    mix: Option<Mix>,
    expected: Expected,
}

impl Requests {
    /// The requests of a thread.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if nothing can be drawn from the mix, or an expectation is none.
    pub fn of(spec: &ClientSpec, share: Share) -> Result<Self, Refusal> {
        let only = Pick { number: 0, request: None, body_size: spec.request.body_size };
        Ok(Self { only, mix: Mix::of(spec, share)?, expected: Expected::of(spec) })
    }

    /// Picks the next request to send.
    #[must_use]
    pub fn pick(&self) -> Pick {
        self.mix.as_ref().map_or(self.only, Mix::pick)
    }

    /// The requests to check before the measurement, with their names: those whose response is known.
    #[must_use]
    pub fn to_check(&self) -> Vec<(Pick, Option<&str>)> {
        match &self.mix {
            None => vec![(self.only, None)],
            Some(mix) => {
                let named = mix.firsts().map(|pick| (pick, pick.request.map(|request| mix.name(request))));
                named.filter(|(pick, _)| self.check(*pick).is_some()).collect()
            }
        }
    }

    /// Whether the bytes of the response are needed to judge it.
    #[must_use]
    pub fn reads_body(&self, pick: Pick) -> bool {
        self.check(pick).is_some_and(Check::reads_body)
    }

    fn check(&self, pick: Pick) -> Option<&Check> {
        let check = self.mix.as_ref()?.check(pick.request?);
        (!check.is_empty()).then_some(check)
    }

    /// Judges a complete response to a request; `body` is needed if [`Self::reads_body`].
    ///
    /// # Errors
    ///
    /// [`Failure`] if it is not what it must be.
    pub fn judge(&self, pick: Pick, status: Option<u16>, bytes_in: u64, body: &[u8]) -> Result<(), Failure> {
        if let Some(check) = self.check(pick) {
            match (check.status(), status) {
                (Some(wanted), Some(status)) if status != wanted => {
                    let message = format!("the server answered with status {status} instead of {wanted}");
                    return Err(Failure::new(ErrorKind::Status, message));
                }
                // Calls of gRPC have no status; one that failed is no response.
                (Some(_), _) | (None, None | Some(200..=299 | 304)) => return check.body(bytes_in, body),
                (None, Some(_)) => {}
            }
        }
        self.expected.judge(status, bytes_in)
    }
}
