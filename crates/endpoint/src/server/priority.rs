//! Priorities of browsers' requests (RFC 9218), and the priorities of QUIC streams that follow from them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use h3::quic::StreamId;
use http::HeaderMap;

/// The request field. Later changes by frames (PRIORITY_UPDATE) are lost, because the crate `h3` drops these frames.
const FIELD: &str = "priority";

/// The lowest urgency.
const LEAST: u8 = 7;

/// Number of ranks of one urgency, more than the streams of a connection.
const RANKS: i32 = 1 << 27;

/// The priority of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    urgency: u8,
    /// Whether parts of the response are useful before it is complete.
    incremental: bool,
}

impl Priority {
    /// Reads the priority of a request; a missing or invalid value takes the default of RFC 9218, section 4.
    pub fn of(fields: &HeaderMap) -> Self {
        let mut found = Self { urgency: 3, incremental: false };
        let values = fields.get_all(FIELD).iter().filter_map(|value| value.to_str().ok());
        for member in values.flat_map(|value| value.split(',')) {
            match member.trim().split_once('=') {
                Some(("u", number)) => {
                    let urgency = number.trim().parse().ok().filter(|urgency| *urgency <= LEAST);
                    found.urgency = urgency.unwrap_or(found.urgency);
                }
                Some(("i", value)) => found.incremental = value.trim() == "?1",
                None if member.trim() == "i" => found.incremental = true,
                _ => {}
            }
        }
        found
    }

    /// The rank of the response on a stream; higher ranks go first, and 0 is the rank of control streams. Urgent
    /// responses precede less urgent ones. Within one urgency, non-incremental responses go first, in the order of
    /// their requests; incremental responses follow and take turns (RFC 9218, section 10).
    pub fn rank(self, stream: u64) -> i32 {
        let first = -i32::from(self.urgency) * RANKS;
        if self.incremental {
            return first - (RANKS - 1);
        }
        // Requests have every fourth stream number (RFC 9000, section 2.1).
        first - i32::try_from(stream / 4).unwrap_or(i32::MAX).min(RANKS - 2)
    }
}

/// Priorities of streams whose responses have not begun.
#[derive(Debug, Default)]
pub struct StreamPriorities(Mutex<HashMap<StreamId, Priority>>);

impl StreamPriorities {
    /// Sets the priority of a stream.
    pub fn set(&self, stream: StreamId, priority: Priority) {
        self.told().insert(stream, priority);
    }

    /// Removes and returns the priority of a stream.
    pub fn take(&self, stream: StreamId) -> Option<Priority> {
        self.told().remove(&stream)
    }

    fn told(&self) -> MutexGuard<'_, HashMap<StreamId, Priority>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The priority of a request with these fields, separated by semicolons.
    fn priority(values: &'static str) -> Priority {
        let field = |value| (http::HeaderName::from_static(FIELD), HeaderValue::from_static(value));
        Priority::of(&values.split(';').map(field).collect())
    }

    #[test]
    fn the_field_is_read_as_the_standard_says() {
        for (values, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=5, i", 5, true),
            ("i,u=1", 1, true),
            ("i=?0", 3, false),
            ("u=9", 3, false),
            ("u=-1, x=2, y", 3, false),
            ("u=2;i", 2, true),
        ] {
            assert_eq!(priority(values), Priority { urgency, incremental }, "{values}");
        }
    }

    #[test]
    fn urgent_responses_come_first_and_incremental_ones_take_turns() {
        let rank = |value, stream| priority(value).rank(stream);
        let falling = [
            rank("u=0", 0),
            rank("u=0", 4000),
            rank("u=0, i", 8),
            rank("u=3", 0),
            rank("u=3", 4),
            rank("u=3, i", 0),
            rank("u=7", 0),
            rank("u=7, i", 0),
        ];
        assert!(falling.is_sorted_by(|one, next| one > next), "{falling:?}");
        assert_eq!(rank("u=3, i", 0), rank("u=3, i", 400));
        // Stream numbers have 62 bits.
        assert!(rank("u=7", u64::MAX >> 2) > rank("u=7, i", 0));
        assert_eq!(rank("u=0", 0), 0);
    }
}
