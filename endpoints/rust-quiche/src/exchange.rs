//! Requests in flight on one connection of a client, which get events from the reading loop.

use std::collections::HashMap;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::{Answer, Failure};

/// A request in flight.
#[derive(Debug, Default)]
pub struct Exchange {
    waker: Option<Waker>,
    first_byte: Option<Instant>,
    bytes_in: u64,
    status: Option<u16>,
    announced: Option<u64>,
    /// The received body, if a caller wants it.
    kept: Option<Vec<u8>>,
    outcome: Option<Result<Instant, Failure>>,
}

impl Exchange {
    /// A request that was just sent. `keeps`: a caller wants the body.
    pub fn new(keeps: bool) -> Self {
        Self { kept: keeps.then(Vec::new), ..Self::default() }
    }

    /// Header fields came: an interim response, the response, or its trailers, which say nothing of status and length.
    pub fn head(&mut self, now: Instant, status: Option<u16>, announced: Option<u64>) {
        self.first_byte.get_or_insert(now);
        if self.status.is_none_or(|status| status < 200) {
            (self.status, self.announced) = (status, announced);
        }
    }

    /// A part of the body came.
    pub fn body(&mut self, now: Instant, piece: &[u8]) {
        self.first_byte.get_or_insert(now);
        self.bytes_in += piece.len() as u64;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(piece);
        }
    }

    /// The response is over.
    pub fn end(&mut self, attempt: &str, now: Instant) {
        self.first_byte.get_or_insert(now);
        match self.announced {
            Some(announced) if self.bytes_in < announced => {
                let message = format!("{attempt}: the response ended after {} of {announced} bytes", self.bytes_in);
                self.settle(Err(Failure::new(ErrorKind::Truncated, message)));
            }
            _ => self.settle(Ok(now)),
        }
    }

    pub fn fail(&mut self, failure: Failure) {
        self.settle(Err(failure));
    }

    /// Whether it is over, well or not.
    pub const fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    fn settle(&mut self, outcome: Result<Instant, Failure>) {
        // The first event counts: a reset after the end has no effect.
        self.outcome.get_or_insert(outcome);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The requests in flight, by stream.
#[derive(Debug, Default)]
pub struct Exchanges(HashMap<u64, Exchange>);

/// The response, and its body if kept.
type Taken = (Answer, Option<Vec<u8>>);

impl Exchanges {
    /// Adds a request.
    pub fn begin(&mut self, stream: u64, exchange: Exchange) {
        self.0.insert(stream, exchange);
    }

    /// The request on a stream; none: it was given up.
    pub fn get(&mut self, stream: u64) -> Option<&mut Exchange> {
        self.0.get_mut(&stream)
    }

    /// Takes a request that is over; otherwise waits for its end.
    pub fn poll(&mut self, stream: u64, cx: &Context<'_>) -> Poll<Result<Taken, Failure>> {
        let Some(exchange) = self.0.get_mut(&stream) else {
            return Poll::Ready(Err(Failure::new(ErrorKind::Other, "the request was given up")));
        };
        if exchange.outcome.is_none() {
            exchange.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let Some(Exchange { first_byte, bytes_in, status, kept, outcome: Some(outcome), .. }) = self.0.remove(&stream)
        else {
            unreachable!("it was there with its outcome");
        };
        Poll::Ready(outcome.map(|last_byte| {
            let first_byte = first_byte.unwrap_or(last_byte);
            (Answer { first_byte, last_byte, bytes_in, status }, kept)
        }))
    }

    /// Gives up a request. False: it was over already.
    pub fn give_up(&mut self, stream: u64) -> bool {
        self.0.remove(&stream).is_some()
    }

    /// All of them fail.
    pub fn fail_all(&mut self, failure: &Failure) {
        for exchange in self.0.values_mut() {
            exchange.fail(failure.clone());
        }
    }
}
