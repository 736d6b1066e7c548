//! Requests that the server turned away, and connections that take no further requests but have some to complete.

use std::time::Instant;

use crate::link::{Dialer, Link};
use crate::refusal::Failure;

use super::Load;
use super::seat::{self, LaneId, LaneState, Moved, Seat};

/// Number of times that a request may be turned away before it fails.
const MOST_TURNS: u32 = 5;

impl<D: Dialer> Load<D> {
    /// The server refused a request before any processing. It is sent again, and its time goes on.
    pub(super) fn turned_away(&mut self, id: LaneId, at: Instant, failure: Failure) {
        let lane = &mut self.lanes[id as usize];
        if lane.turns == MOST_TURNS {
            return self.fail(id, at, failure);
        }
        lane.turns += 1;
        lane.since = Instant::now();
        lane.state = LaneState::Waiting;
        let seat = &mut self.seats[lane.seat as usize];
        seat.in_flight -= 1;
        lane.seat = lane.home;
        let record = &mut lane.record;
        record.first_byte = None;
        if !seat.link.as_ref().is_some_and(Link::is_open) {
            (record.opened, record.connected, record.ready) = (false, None, None);
        }
        if !self.is_single {
            self.book.count_sent_again();
        }
        self.attach(id);
    }

    /// Moves the connection of a seat, which takes no further requests, to a seat of its own, where it completes those
    /// that it has.
    pub(super) fn make_room(&mut self, index: u32) {
        let Some(link) = self.seats[index as usize].link.take() else { return };
        let to = self.spares.pop().unwrap_or_else(|| {
            self.seats.push(Seat::new());
            self.seats.len() as u32 - 1
        });
        let generation = self.seats[to as usize].generation.wrapping_add(1);
        let home = &mut self.seats[index as usize];
        let (number, in_flight) = (home.number, std::mem::take(&mut home.in_flight));
        home.moved = Some(Moved { generation: home.generation, to: (to, generation) });
        let going = |id: &LaneId| {
            let lane = &self.lanes[*id as usize];
            lane.state == LaneState::Going && lane.seat == index
        };
        let lanes: Vec<_> = home.lanes.iter().copied().filter(going).collect();
        for id in &lanes {
            self.lanes[*id as usize].seat = to;
        }
        let place = &mut self.seats[to as usize];
        (place.is_spare, place.generation, place.number) = (true, generation, number);
        (place.in_flight, place.lanes) = (in_flight, lanes);
        let renamed = link.rename(&self.poller, seat::token(to, generation));
        place.link = Some(link);
        self.soil(to);
        if let Err(failure) = renamed {
            self.broke(to, &failure);
        }
    }

    /// The seat of the connection that had this generation at a seat, if it still exists.
    pub(super) fn place_of(&self, index: u32, generation: u32) -> Option<u32> {
        let seat = &self.seats[index as usize];
        match seat.moved {
            _ if seat.generation == generation => Some(index),
            Some(Moved { generation: former, to: (to, current) }) if former == generation => {
                (self.seats[to as usize].generation == current).then_some(to)
            }
            _ => None,
        }
    }

    /// Makes a seat without a connection available again, if it is one for last requests.
    pub(super) fn vacate(&mut self, index: u32) {
        let seat = &mut self.seats[index as usize];
        if seat.is_spare && seat.link.is_none() {
            seat.is_spare = false;
            seat.lanes.clear();
            self.spares.push(index);
        }
    }
}
