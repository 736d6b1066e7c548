//! When requests start: workers of a closed loop with their pauses, arrivals of an open loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use wirelab_contract::spec::{ClientSpec, Pause, Schedule};

use crate::arrivals::ArrivalTimes;
use crate::schedule::{Limit, Phase, Share, pause, random};

/// A request that should start as soon as a lane is free.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub intended: Instant,
    pub worker: u32,
}

/// The requests of one period: the warm-up or the measured window.
#[derive(Debug)]
pub(super) struct Pace {
    kind: Kind,
    limit: Limit,
    pending: VecDeque<Pending>,
}

#[derive(Debug)]
enum Kind {
    Closed {
        pause: Pause,
        /// Workers in their pauses.
        resting: BinaryHeap<Reverse<(Instant, u32)>>,
        /// The random numbers of each worker.
        random: Vec<ChaCha8Rng>,
        /// Workers that have not ended.
        active: u32,
    },
    Open {
        start: Instant,
        times: ArrivalTimes,
        /// The next arrival, if it is within the period.
        next: Option<Instant>,
        /// The latest start of waiting arrivals; set after the last arrival.
        latest_start: Option<Instant>,
        patience: Duration,
    },
    /// Nothing starts.
    Idle,
}

/// The treatment of the next pending request.
pub(super) enum Verdict {
    Start(Pending),
    /// Its worker ended.
    Retired,
    /// It waited too long.
    GaveUp(Pending),
}

impl Pace {
    /// Nothing to send.
    pub const fn idle() -> Self {
        Self { kind: Kind::Idle, limit: Limit::Requests(0), pending: VecDeque::new() }
    }

    /// A thread's requests of a period that begins at `start`.
    pub fn new(spec: &ClientSpec, share: Share, phase: Phase, mut limit: Limit, start: Instant) -> Self {
        let mut pending = VecDeque::new();
        let kind = match spec.schedule {
            Schedule::Closed { workers, pause } => {
                let active = share.part32(workers);
                pending.extend((0..active).map(|worker| Pending { intended: start, worker }));
                let random = match pause {
                    Pause::Uniform { .. } => (0..active).map(|user| random(spec.seed, share, phase, user)).collect(),
                    Pause::None | Pause::Fixed { .. } => vec![random(spec.seed, share, phase, 0)],
                };
                Kind::Closed { pause, resting: BinaryHeap::new(), random, active }
            }
            Schedule::Open { .. } => match ArrivalTimes::of(spec, share, phase) {
                Some(mut times) => {
                    let next = Self::arrival(&mut times, &mut limit, start);
                    let patience = Duration::from_nanos(spec.timeouts.request_ns);
                    Kind::Open { start, times, next, latest_start: None, patience }
                }
                None => Kind::Idle,
            },
        };
        Self { kind, limit, pending }
    }

    fn arrival(times: &mut ArrivalTimes, limit: &mut Limit, start: Instant) -> Option<Instant> {
        let at = start + Duration::from_nanos(times.next_ns()?);
        limit.take(at).then_some(at)
    }

    /// Makes the requests pending whose time has come.
    pub fn advance(&mut self, now: Instant) {
        match &mut self.kind {
            Kind::Closed { resting, .. } => {
                while let Some(Reverse((at, worker))) = resting.peek().copied().filter(|next| next.0.0 <= now) {
                    resting.pop();
                    self.pending.push_back(Pending { intended: at, worker });
                }
            }
            Kind::Open { start, times, next, latest_start, patience } => {
                while let Some(at) = next.filter(|at| *at <= now) {
                    self.pending.push_back(Pending { intended: at, worker: 0 });
                    *next = Self::arrival(times, &mut self.limit, *start);
                }
                if next.is_none() && latest_start.is_none() {
                    *latest_start = Some(now + *patience);
                }
            }
            Kind::Idle => {}
        }
    }

    /// The time at which `advance` is wanted, if any.
    pub fn next_time(&self) -> Option<Instant> {
        match &self.kind {
            Kind::Closed { resting, .. } => resting.peek().map(|next| next.0.0),
            Kind::Open { next, .. } => *next,
            Kind::Idle => None,
        }
    }

    /// Whether a request waits for a lane.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Decides on the next pending request, if any; a lane is free for it.
    pub fn take(&mut self, now: Instant) -> Option<Verdict> {
        let pending = self.pending.pop_front()?;
        Some(match &mut self.kind {
            Kind::Closed { active, .. } => {
                // The actual start counts, because no request may start after the end.
                if self.limit.take(now.max(pending.intended)) {
                    Verdict::Start(pending)
                } else {
                    *active -= 1;
                    Verdict::Retired
                }
            }
            Kind::Open { latest_start, .. } if latest_start.is_some_and(|latest| now > latest) => {
                Verdict::GaveUp(pending)
            }
            Kind::Open { .. } | Kind::Idle => Verdict::Start(pending),
        })
    }

    /// A worker's request ended at `end`, and the worker can go on at `now`.
    pub fn completed(&mut self, worker: u32, end: Instant, now: Instant) {
        if let Kind::Closed { pause: kind, resting, random, .. } = &mut self.kind {
            if *kind == Pause::None {
                self.pending.push_back(Pending { intended: now, worker });
            } else {
                let index = (worker as usize).min(random.len() - 1);
                resting.push(Reverse((end + pause(*kind, &mut random[index]), worker)));
            }
        }
    }

    /// Whether nothing will start any more, apart from what lanes do now.
    pub fn is_over(&self) -> bool {
        match &self.kind {
            Kind::Closed { active, .. } => *active == 0,
            Kind::Open { next, .. } => next.is_none() && self.pending.is_empty(),
            Kind::Idle => true,
        }
    }
}
