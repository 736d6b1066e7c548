//! Session tickets in a library's own format.

use std::cell::RefCell;
use std::time::Duration;

/// Maximum number of stored tickets.
const KEPT: usize = 1 << 16;

/// The tickets of one thread. Each is used once (RFC 8446, appendix C.4), the newest first.
#[derive(Debug, Default)]
pub struct Tickets(RefCell<Vec<Vec<u8>>>);

impl Tickets {
    /// Takes a ticket for a new connection.
    pub fn take(&self) -> Option<Vec<u8>> {
        self.0.borrow_mut().pop()
    }

    /// Stores the ticket of a connection, if any.
    pub fn keep(&self, ticket: Option<Vec<u8>>) {
        let mut tickets = self.0.borrow_mut();
        if let Some(ticket) = ticket.filter(|_| tickets.len() < KEPT) {
            tickets.push(ticket);
        }
    }

    /// Number of tickets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Whether the store is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Time limit of the wait for a ticket, for a round trip of `trip`.
#[must_use]
pub fn ticket_timeout(trip: Duration) -> Duration {
    3 * trip + Duration::from_millis(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_used_once_and_the_newest_first() {
        let tickets = Tickets::default();
        for ticket in [Some(vec![1]), None, Some(vec![2])] {
            tickets.keep(ticket);
        }
        assert_eq!(tickets.len(), 2);
        assert_eq!([tickets.take(), tickets.take(), tickets.take()], [Some(vec![2]), Some(vec![1]), None]);
    }
}
