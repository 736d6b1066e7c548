//! The records of a thread, and what it tells others meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use wirelab_contract::spec::{ClientSpec, Recording};

use crate::progress::{Progress, expected_requests};
use crate::record::{Record, Recorder};
use crate::refusal::Failure;
use crate::schedule::Share;
use crate::steady::Judge;

/// The records of a thread.
#[derive(Debug)]
pub(super) struct Book {
    numbers: Arc<AtomicU32>,
    progress: Arc<Progress>,
    measuring: bool,
    recorder: Recorder,
    last_end: Option<Instant>,
    first_failure: Option<Failure>,
    sent_again: u64,
}

impl Book {
    pub fn new(spec: &ClientSpec, share: Share, numbers: Arc<AtomicU32>, progress: Arc<Progress>) -> Self {
        let recorder = Recorder::new(spec.recording, expected_requests(spec, share));
        Self { numbers, progress, measuring: false, recorder, last_end: None, first_failure: None, sent_again: 0 }
    }

    /// The number of a new connection.
    pub fn next_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Decides when the warm-up ends, if it lasts until response times are steady.
    pub fn judge(&self) -> Option<&Arc<Judge>> {
        self.progress.judge.as_ref()
    }

    /// Starts the recording of requests that end.
    pub const fn begin(&mut self) {
        self.measuring = true;
    }

    /// Stops the recording. Returns the end of the last recorded request, if any.
    pub const fn end(&mut self) -> Option<Instant> {
        self.measuring = false;
        self.last_end
    }

    /// Records a request that ended.
    pub fn keep(&mut self, mut record: Record, failure: Option<Failure>) {
        if !self.measuring {
            if let Some(judge) = &self.progress.judge {
                judge.add(&record, failure.is_some());
            }
            return;
        }
        if let Some(failure) = failure {
            record.error = Some(failure.kind);
            increment(&self.progress.failed);
            self.first_failure.get_or_insert(failure);
        } else if let Some(response) = &self.progress.response {
            response.add(record.end.saturating_duration_since(record.intended));
        }
        if let Some(intervals) = &self.progress.intervals {
            intervals.add(&record);
        }
        increment(&self.progress.requests);
        self.last_end = self.last_end.max(Some(record.end));
        self.recorder.push(record);
    }

    /// Counts a request that was turned away and goes again.
    pub fn count_sent_again(&mut self) {
        self.sent_again += u64::from(self.measuring);
    }

    /// Number of requests of the window that were turned away and went again.
    pub const fn sent_again(&self) -> u64 {
        self.sent_again
    }

    /// Returns the records and the first failure.
    pub fn take(&mut self) -> (Recorder, Option<Failure>) {
        (std::mem::replace(&mut self.recorder, Recorder::new(Recording::Samples, 0)), self.first_failure.take())
    }
}

/// Adds one to a counter that only this thread writes, which needs no locked instruction.
fn increment(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
