//! Address validation tokens (RFC 9000, section 8.1.3); each is accepted once.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quinn::{TokenLog, TokenReuseError};

/// Half of the maximum number of stored tokens: when the newer half is full, the older half is dropped.
const HALF: usize = 1 << 16;

/// Stores used tokens. It is exact; quinn's own log is a Bloom filter that sometimes refuses a fresh token, which makes
/// single connections slower.
#[derive(Debug, Default)]
pub struct OneUse(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    newer: HashSet<u128>,
    older: HashSet<u128>,
}

impl TokenLog for OneUse {
    fn check_and_insert(&self, nonce: u128, _: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.newer.len() == HALF {
            used.older = std::mem::take(&mut used.newer);
        }
        if used.older.contains(&nonce) || !used.newer.insert(nonce) { Err(TokenReuseError) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_accepted_once() {
        let log = OneUse::default();
        let check = |nonce| log.check_and_insert(nonce, SystemTime::UNIX_EPOCH, Duration::ZERO).is_ok();
        assert!(check(1) && check(2));
        assert!(!check(1) && !check(2));
        assert!((3..HALF as u128 + 10).all(check), "fresh tokens are accepted beyond one half");
        assert!(!check(1) && !check(HALF as u128), "used ones are remembered across the halves");
    }
}
