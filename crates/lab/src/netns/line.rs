//! Model of one direction of an emulated link, without I/O and clock: frames enter with their arrival time and leave
//! with their delivery time.
//!
//! A frame is either lost, or it queues for the line (drop-tail), is transmitted at the line's rate, and then travels
//! for the line's delay. Frames that travel do not count for the queue, as on a real line. A frame takes its own
//! transmission time, so its last bit arrives no earlier than the rate allows.

use std::collections::{BinaryHeap, VecDeque};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use wirelab_model::link::Link;
use wirelab_model::queue::Queue;

/// Direction of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the client's side to the server's.
    Up,
    /// From the server's side to the client's.
    Down,
}

/// Frame counters of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Frames received.
    pub came: u64,
    /// Frames delivered, duplicates included.
    pub delivered: u64,
    /// Bytes of the delivered frames.
    pub bytes: u64,
    /// Frames lost by the loss model.
    pub lost: u64,
    /// Frames dropped because the queue was full.
    pub overflowed: u64,
}

/// One direction of a link. All times are nanoseconds of one clock.
#[derive(Debug)]
pub(crate) struct Line<F> {
    delay: u64,
    jitter: u64,
    /// Bits per second.
    rate: Option<u64>,
    queue: Queue,
    loss: Loss,
    reorder: f64,
    duplicate: f64,
    random: ChaCha8Rng,
    /// End of transmission, and length, of each frame that waits or is being transmitted.
    backlog: VecDeque<(u64, u64)>,
    backlog_bytes: u64,
    /// End of the last transmission.
    busy_until: u64,
    /// Latest delivery time of a frame that keeps its order.
    latest: u64,
    under_way: BinaryHeap<Delivery<F>>,
    sequence: u64,
    tally: Tally,
}

impl<F: AsRef<[u8]> + Clone> Line<F> {
    pub(crate) fn new(link: &Link, direction: Direction, seed: u64) -> Self {
        let rate = match direction {
            Direction::Down => link.rate,
            Direction::Up => link.rate_up.or(link.rate),
        };
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(direction as u64);
        Self {
            delay: link.round_trip.nanos() / 2,
            jitter: link.jitter.nanos(),
            rate: rate.map(|rate| rate.0.max(1)),
            queue: link.queue,
            loss: Loss::new(link.loss.0, link.loss_burst),
            reorder: link.reorder.0,
            duplicate: link.duplicate.0,
            random,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            busy_until: 0,
            latest: 0,
            under_way: BinaryHeap::new(),
            sequence: 0,
            tally: Tally::default(),
        }
    }

    /// Accepts a frame.
    pub(crate) fn arrive(&mut self, now: u64, frame: F) {
        self.tally.came += 1;
        if self.loss.next(&mut self.random) {
            self.tally.lost += 1;
            return;
        }
        if self.happens(self.duplicate) {
            self.admit(now, frame.clone());
        }
        self.admit(now, frame);
    }

    /// Time of the next delivery.
    pub(crate) fn next_delivery(&self) -> Option<u64> {
        self.under_way.peek().map(|delivery| delivery.at)
    }

    /// A frame whose delivery time has come.
    pub(crate) fn deliver(&mut self, now: u64) -> Option<F> {
        if self.next_delivery()? > now {
            return None;
        }
        let frame = self.under_way.pop()?.frame;
        self.tally.delivered += 1;
        self.tally.bytes += frame.as_ref().len() as u64;
        Some(frame)
    }

    /// Counters so far.
    pub(crate) const fn tally(&self) -> Tally {
        self.tally
    }

    fn admit(&mut self, now: u64, frame: F) {
        let length = frame.as_ref().len() as u64;
        let Some(transmitted) = self.transmit(now, length) else {
            self.tally.overflowed += 1;
            return;
        };
        let overtakes = self.happens(self.reorder);
        let delay = if overtakes { 0 } else { self.delay_with_jitter() };
        let mut at = transmitted + delay;
        if !overtakes {
            at = at.max(self.latest);
            self.latest = at;
        }
        self.sequence += 1;
        self.under_way.push(Delivery { at, sequence: self.sequence, frame });
    }

    /// End of transmission of a frame of this length that arrives now; `None`: the queue is full.
    fn transmit(&mut self, now: u64, length: u64) -> Option<u64> {
        let Some(rate) = self.rate else { return Some(now) };
        while let Some((end, length)) = self.backlog.front().copied().filter(|(end, _)| *end <= now) {
            debug_assert!(end <= self.busy_until);
            self.backlog.pop_front();
            self.backlog_bytes -= length;
        }
        // The frame in transmission no longer counts for the queue.
        if let Some((_, in_transmission)) = self.backlog.front() {
            let (frames, bytes) = (self.backlog.len() as u64 - 1, self.backlog_bytes - in_transmission);
            if !self.queue.has_room(frames, bytes, length) {
                return None;
            }
        }
        let nanos = u128::from(length) * 8 * 1_000_000_000 / u128::from(rate);
        let end = now.max(self.busy_until) + u64::try_from(nanos).unwrap_or(u64::MAX / 4);
        self.busy_until = end;
        self.backlog.push_back((end, length));
        self.backlog_bytes += length;
        Some(end)
    }

    fn delay_with_jitter(&mut self) -> u64 {
        if self.jitter == 0 {
            return self.delay;
        }
        (self.delay + self.random.random_range(0..=2 * self.jitter)).saturating_sub(self.jitter)
    }

    fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.random::<f64>() < share
    }
}

/// Gilbert's loss model: a good state without loss, and a bad state in which every packet is lost.
#[derive(Debug)]
struct Loss {
    /// Transition probability from good to bad, per packet.
    enter: f64,
    /// Transition probability from bad to good, per packet.
    leave: f64,
    bad: bool,
}

impl Loss {
    /// Takes the share of losses and their mean run length. The mean stay in the bad state is 1/leave packets, and
    /// its stationary share is enter/(enter + leave).
    fn new(share: f64, burst: f64) -> Self {
        // Independent losses have a mean run of 1/(1 - share) packets, not 1.
        let leave = if burst > 1.0 { 1.0 / burst } else { 1.0 - share };
        let enter = if share < 1.0 { (leave * share / (1.0 - share)).min(1.0) } else { 1.0 };
        Self { enter, leave: if share < 1.0 { leave } else { 0.0 }, bad: false }
    }

    fn next(&mut self, random: &mut ChaCha8Rng) -> bool {
        if self.enter <= 0.0 {
            return false;
        }
        let turns = random.random::<f64>() < if self.bad { self.leave } else { self.enter };
        self.bad ^= turns;
        self.bad
    }
}

/// A frame under way; ordered so that the earliest delivery is the greatest, for the heap.
#[derive(Debug)]
struct Delivery<F> {
    at: u64,
    sequence: u64,
    frame: F,
}

impl<F> Ord for Delivery<F> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl<F> PartialOrd for Delivery<F> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<F> PartialEq for Delivery<F> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<F> Eq for Delivery<F> {}

#[cfg(test)]
mod tests {
    use wirelab_model::units::{BitRate, Share, Size, Span};

    use super::*;

    const MS: u64 = 1_000_000;

    fn line(link: Link) -> Line<Vec<u8>> {
        Line::new(&link, Direction::Down, 7)
    }

    fn drain(line: &mut Line<Vec<u8>>) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        while let Some(at) = line.next_delivery() {
            assert!(at == 0 || line.deliver(at - 1).is_none());
            all.push((at, line.deliver(at).unwrap()));
        }
        all
    }

    #[test]
    fn a_frame_takes_half_the_round_trip_and_its_own_transmission() {
        let mut line = line(Link { round_trip: Span(20 * MS), rate: Some(BitRate(8_000_000)), ..Link::wire() });
        line.arrive(5, vec![1; 1000]);
        line.arrive(5, vec![2; 500]);
        assert_eq!(drain(&mut line), [(5 + 11 * MS, vec![1; 1000]), (5 + 11 * MS + MS / 2, vec![2; 500])]);
    }

    #[test]
    fn each_direction_has_its_rate() {
        let link = Link { rate: Some(BitRate(8_000_000)), rate_up: Some(BitRate(4_000_000)), ..Link::wire() };
        let mut up = Line::new(&link, Direction::Up, 7);
        up.arrive(0, vec![0; 1000]);
        assert_eq!(up.next_delivery(), Some(2 * MS));
        let mut same = Line::new(&Link { rate_up: None, ..link }, Direction::Up, 7);
        same.arrive(0, vec![0; 1000]);
        assert_eq!(same.next_delivery(), Some(MS));
    }

    #[test]
    fn the_queue_drops_excess_frames_and_ignores_frames_under_way() {
        let link = Link {
            round_trip: Span(200 * MS),
            rate: Some(BitRate(8_000_000)),
            queue: Queue::Bytes(Size(2000)),
            ..Link::wire()
        };
        let mut slow = line(link);
        // One in transmission, two in the queue; the fourth frame finds it full.
        for _ in 0..4 {
            slow.arrive(0, vec![0; 1000]);
        }
        assert_eq!(slow.tally().overflowed, 1);
        let mut paced = line(link);
        // At the line's rate no frame waits, though a hundred frames are under way at a time.
        for number in 0..200 {
            paced.arrive(number * MS, vec![0; 1000]);
        }
        assert_eq!(paced.tally().overflowed, 0);
        assert_eq!(drain(&mut paced).len(), 200);
    }

    #[test]
    fn a_queue_of_packets_drops_by_their_number_whatever_their_size() {
        let link = Link { rate: Some(BitRate(8_000_000)), queue: Queue::Packets(2), ..Link::wire() };
        for length in [60, 1514] {
            let mut slow = line(link);
            for _ in 0..4 {
                slow.arrive(0, vec![0; length]);
            }
            assert_eq!(slow.tally().overflowed, 1, "one in transmission, two in the queue");
            assert_eq!(drain(&mut slow).len(), 3);
        }
    }

    #[test]
    fn the_line_is_never_faster_than_its_rate() {
        let mut line =
            line(Link { rate: Some(BitRate(10_000_000)), queue: Queue::Bytes(Size(1 << 30)), ..Link::wire() });
        for _ in 0..1000 {
            line.arrive(0, vec![0; 1250]);
        }
        let delivered = drain(&mut line);
        assert_eq!(delivered.last().unwrap().0, 1000 * MS);
    }

    #[test]
    fn losses_have_the_configured_share_and_run_length() {
        for (share, burst, run) in [(0.01, 1.0, 1.0 / 0.99), (0.05, 4.0, 4.0), (0.3, 1.0, 1.0 / 0.7)] {
            let mut line = line(Link { loss: Share(share), loss_burst: burst, ..Link::wire() });
            let (mut lost, mut runs, mut before) = (0_u32, 0_u32, 0);
            let mut within = false;
            const FRAMES: u32 = 400_000;
            for _ in 0..FRAMES {
                line.arrive(0, vec![0]);
                let this = line.tally().lost > before;
                before = line.tally().lost;
                lost += u32::from(this);
                runs += u32::from(this && !within);
                within = this;
            }
            // Five standard errors of the share; runs multiply them by `burst`.
            let error = 5.0 * (share * (1.0 - share) * 2.0 * run / f64::from(FRAMES)).sqrt();
            assert!((f64::from(lost) / f64::from(FRAMES) - share).abs() < error, "{share}: {lost}");
            assert!((f64::from(lost) / f64::from(runs) / run - 1.0).abs() < 0.05, "{burst}: {lost} in {runs}");
        }
    }

    #[test]
    fn loss_and_duplication_may_be_total() {
        let mut nothing = line(Link { loss: Share(1.0), ..Link::wire() });
        let mut twice = line(Link { duplicate: Share(1.0), ..Link::wire() });
        for _ in 0..100 {
            nothing.arrive(0, vec![0]);
            twice.arrive(0, vec![0]);
        }
        // The state changes before the fate of the first packet is decided.
        assert_eq!(nothing.tally().lost, 100);
        assert_eq!(drain(&mut twice).len(), 200);
    }

    #[test]
    fn jitter_keeps_the_order_and_stays_in_its_bounds_and_overtaking_does_not() {
        let link = Link { round_trip: Span(20 * MS), jitter: Span(2 * MS), ..Link::wire() };
        let mut shaky = line(link);
        let mut reordering = line(Link { jitter: Span(0), reorder: Share(0.1), ..link });
        for number in 0..1000_u64 {
            shaky.arrive(number * MS, number.to_be_bytes().into());
            reordering.arrive(number * MS, number.to_be_bytes().into());
        }
        let order = |frames: &[(u64, Vec<u8>)]| frames.iter().map(|(_, frame)| frame.clone()).collect::<Vec<_>>();
        let delivered = drain(&mut shaky);
        assert!(order(&delivered).is_sorted());
        for (number, (at, _)) in delivered.iter().enumerate() {
            let delay = at - number as u64 * MS;
            assert!((8 * MS..=12 * MS).contains(&delay), "{delay}");
        }
        assert!(!order(&drain(&mut reordering)).is_sorted());
    }

    #[test]
    fn the_same_seed_gives_the_same_fate_and_the_directions_have_their_own() {
        let link = Link { loss: Share(0.5), ..Link::wire() };
        let fate = |direction, seed| {
            let mut line = Line::new(&link, direction, seed);
            (0..200_u8).for_each(|number| line.arrive(0, vec![number]));
            drain(&mut line)
        };
        assert_eq!(fate(Direction::Up, 1), fate(Direction::Up, 1));
        assert_ne!(fate(Direction::Up, 1), fate(Direction::Down, 1));
        assert_ne!(fate(Direction::Up, 1), fate(Direction::Up, 2));
    }
}
