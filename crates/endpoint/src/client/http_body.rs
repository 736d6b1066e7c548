//! The body of a request for hyper.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use hyper::body::{Body, Frame, SizeHint};

use crate::client::http::Recipe;
use crate::payload;

impl Recipe {
    /// Copies the request for sending.
    pub(crate) fn request(&self) -> Request<PatternBody> {
        self.head().map(|()| PatternBody::new(self.body_size()))
    }
}

/// A number of bytes of the pattern, in slices of one buffer.
#[derive(Debug)]
pub(crate) struct PatternBody {
    offset: u64,
    left: u64,
}

impl PatternBody {
    /// The first `size` bytes of the pattern.
    pub const fn new(size: u64) -> Self {
        Self { offset: 0, left: size }
    }
}

impl Body for PatternBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = payload::piece(self.offset, self.left);
        self.offset += piece.len() as u64;
        self.left -= piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
