//! A request on a connection: it sends by itself, and gets the events of its stream.

use std::future::poll_fn;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::{Answer, Failure, Sink};

use crate::exchange::Exchange;
use crate::link::Link;
use crate::speaker::{Speaker, give_up};

impl<S: Speaker> Link<S> {
    /// Sends a request and receives the whole response.
    pub async fn exchange(&self, request: &S::Request, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let stream = self.open(request, body.is_some()).await?;
        // Where the future is dropped at its deadline, the stream is given up.
        let in_flight = InFlight { link: self, stream };
        self.send(stream, request).await?;
        let (answer, kept) = poll_fn(|cx| self.state.borrow_mut().exchanges.poll(stream, cx)).await?;
        drop(in_flight);
        if let (Some(body), Some(kept)) = (body, kept) {
            body(&kept);
        }
        Ok(answer)
    }

    async fn open(&self, request: &S::Request, keeps: bool) -> Result<u64, Failure> {
        loop {
            self.failed(S::ATTEMPT)?;
            {
                let state = &mut *self.state.borrow_mut();
                let Some(speaker) = &mut state.speaker else {
                    return Err(Failure::new(ErrorKind::Other, "the connection is not ready for requests"));
                };
                if let Some(stream) = speaker.open(&mut self.connection.lock(), request)? {
                    state.exchanges.begin(stream, Exchange::new(keeps));
                    return Ok(stream);
                }
            }
            self.arrived.notified().await;
        }
    }

    async fn send(&self, stream: u64, request: &S::Request) -> Result<(), Failure> {
        let (length, mut sent) = (S::length(request), 0);
        while sent < length {
            let taken = {
                let state = &mut *self.state.borrow_mut();
                if state.exchanges.get(stream).is_none_or(|exchange| exchange.is_over()) {
                    return Ok(());
                }
                let Some(speaker) = &mut state.speaker else { return Ok(()) };
                let piece = S::piece(request, sent);
                let is_last = sent + piece.len() as u64 == length;
                speaker.send(&mut self.connection.lock(), stream, piece, is_last)?
            };
            sent += taken as u64;
            if taken == 0 {
                self.flush();
                self.arrived.notified().await;
            }
        }
        self.flush();
        Ok(())
    }
}

/// A request whose stream is given up unless it ended.
struct InFlight<'a, S: Speaker> {
    link: &'a Link<S>,
    stream: u64,
}

impl<S: Speaker> Drop for InFlight<'_, S> {
    fn drop(&mut self) {
        if self.link.state.borrow_mut().exchanges.give_up(self.stream) {
            give_up(&mut self.link.connection.lock(), self.stream, S::DONE);
            self.link.flush();
        }
    }
}
