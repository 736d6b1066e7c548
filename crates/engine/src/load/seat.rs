//! Seats of connections, and lanes: each lane carries one request at a time, over a connection or one stream of it.

use std::time::Instant;

use crate::machine::Slot;
use crate::record::Record;
use crate::requests::Pick;

/// The number of a lane, which is also the slot of its request on its connection.
pub(super) type LaneId = Slot;

/// The place of a connection, which may be replaced by another.
#[derive(Debug)]
pub(super) struct Seat<L> {
    pub link: Option<L>,
    /// Distinguishes its connections, so that no event is taken for one of the next.
    pub generation: u32,
    /// Whether it is only for the last requests of a connection, and has one.
    pub is_spare: bool,
    /// Number of the connection.
    pub number: u32,
    /// Set while the connection is not open yet.
    pub opening: Option<Opening>,
    /// Where the connection of an earlier generation is, if it moved to complete its requests.
    pub moved: Option<Moved>,
    /// Lanes that wait for the connection.
    pub waiting: Vec<LaneId>,
    /// All its lanes. `Lane::seat` says whether the request of one is elsewhere.
    pub lanes: Vec<LaneId>,
    /// Number of requests on the connection.
    pub in_flight: u32,
    /// Whether it has output that was not flushed.
    pub is_dirty: bool,
    /// Set while it waits for a session ticket, until this time.
    pub closing: Option<Instant>,
}

/// A connection that takes no further requests and completes those it has at a seat of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    /// Its generation at the former seat.
    pub generation: u32,
    /// Its seat now, and its generation there.
    pub to: (u32, u32),
}

/// A connection that is not open yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    /// The lane whose request opens it, if any.
    pub opener: Option<LaneId>,
    /// Its deadline.
    pub by: Instant,
}

impl<L> Seat<L> {
    pub const fn new() -> Self {
        Self {
            link: None,
            generation: 0,
            is_spare: false,
            number: 0,
            opening: None,
            moved: None,
            waiting: Vec::new(),
            lanes: Vec::new(),
            in_flight: 0,
            is_dirty: false,
            closing: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Lane {
    /// The seat of its connection: `home`, or where the connection moved with its request.
    pub seat: u32,
    /// The seat of its next request.
    pub home: u32,
    pub state: LaneState,
    /// The request that it carries, or carried last.
    pub pick: Pick,
    /// The worker of a closed loop whose request it carries.
    pub worker: u32,
    /// Number of times that its request was turned away.
    pub turns: u32,
    /// Start of the current attempt to send its request.
    pub since: Instant,
    /// Deadline of the request, or of its connection while it waits for one.
    pub by: Instant,
    pub record: Record,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneState {
    Free,
    /// Its request needs a connection.
    Waiting,
    /// Its request is on the connection.
    Going,
    /// Its request ended, and its connection waits for a session ticket.
    Closing,
}

/// The token of a connection in the poller.
pub(super) const fn token(seat: u32, generation: u32) -> u64 {
    (generation as u64) << 32 | seat as u64
}

/// The seat and the generation of a token.
pub(super) const fn of_token(token: u64) -> (u32, u32) {
    (token as u32, (token >> 32) as u32)
}
