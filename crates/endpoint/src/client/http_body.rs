//! The body of a request for hyper.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use hyper::body::{Body, Frame, SizeHint};

use crate::client::http::Recipe;
use crate::payload::Payload;

impl Recipe {
    /// Copies the request for sending.
    pub(crate) fn request(&self) -> Request<OutgoingBody> {
        self.head().map(|()| OutgoingBody::new(self.payload().clone()))
    }
}

/// The body of a request, in slices of one buffer.
#[derive(Debug)]
pub(crate) struct OutgoingBody {
    payload: Payload,
    offset: u64,
}

impl OutgoingBody {
    /// A body that has not been sent yet.
    pub const fn new(payload: Payload) -> Self {
        Self { payload, offset: 0 }
    }

    const fn left(&self) -> u64 {
        self.payload.size() - self.offset
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left() == 0 {
            return Poll::Ready(None);
        }
        let piece = self.payload.piece(self.offset);
        self.offset += piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}
