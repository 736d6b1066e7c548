//! A server's responses to requests by HTTP/3.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio_quiche::http3::driver::{
    InboundFrame, InboundFrameStream, IncomingH3Headers, OutboundFrame, OutboundFrameSender,
};
use wirelab_endpoint::program::{Reply, Site, piece, until};
use wirelab_quiche::{number, response, text};

use crate::frames::put;

/// Answers a request, and counts it. A stream that fails is the client's to report.
pub async fn answer(request: IncomingH3Headers, site: Arc<Site>) {
    let arrival = Instant::now();
    let IncomingH3Headers { headers, send, recv, read_fin, .. } = request;
    let path = text(&headers, b":path").unwrap_or("/");
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let reply = site.reply(text(&headers, b":method").unwrap_or_default(), path);
    let (mut outward, mut inward) = (Outward(send), Inward { frames: recv, is_over: read_fin });
    let answered = match reply {
        Reply::Document(body) => outward.document(body, &[]).await,
        Reply::Typed(body, kind) => outward.document(body, &[("content-type", kind)]).await,
        Reply::Pattern(size) => outward.pattern(size).await,
        Reply::Echo => outward.echo(number(&headers, b"content-length"), &mut inward).await,
        Reply::Delay(microseconds) => {
            until(arrival + Duration::from_micros(microseconds)).await;
            outward.empty(200, &[]).await
        }
        Reply::Redirect(place) => outward.empty(302, &[("location", place)]).await,
        Reply::Status(status) => outward.empty(status, &[]).await,
    };
    if answered.is_some() {
        site.count();
    }
    // Left alone, the driver would tell the client that it is not wanted.
    while inward.next().await.is_some() {}
}

/// A request's body.
struct Inward {
    frames: InboundFrameStream,
    is_over: bool,
}

impl Inward {
    /// The next part; none: that was all, or the client gave it up.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.is_over {
            match self.frames.recv().await {
                Some(InboundFrame::Body(piece, is_last)) => {
                    self.is_over = is_last;
                    return Some(piece.freeze());
                }
                Some(InboundFrame::Datagram(_)) => {}
                None => return None,
            }
        }
        None
    }
}

/// A response. All of it was handed over where a function returns `Some`.
struct Outward(OutboundFrameSender);

impl Outward {
    async fn head(&mut self, status: u16, length: Option<u64>, more: &[(&str, &str)]) -> Option<()> {
        put(&mut self.0, OutboundFrame::Headers(response(status, length, more), None)).await
    }

    async fn body(&mut self, piece: Bytes, is_last: bool) -> Option<()> {
        put(&mut self.0, OutboundFrame::Body(piece, is_last)).await
    }

    async fn empty(&mut self, status: u16, more: &[(&str, &str)]) -> Option<()> {
        self.head(status, Some(0), more).await?;
        self.body(Bytes::new(), true).await
    }

    async fn document(&mut self, body: Bytes, more: &[(&str, &str)]) -> Option<()> {
        self.head(200, Some(body.len() as u64), more).await?;
        self.body(body, true).await
    }

    async fn pattern(&mut self, size: u64) -> Option<()> {
        self.head(200, Some(size), &[]).await?;
        let mut sent = 0;
        loop {
            let piece = piece(sent, size - sent);
            sent += piece.len() as u64;
            self.body(piece, sent == size).await?;
            if sent == size {
                return Some(());
            }
        }
    }

    async fn echo(&mut self, length: Option<u64>, inward: &mut Inward) -> Option<()> {
        self.head(200, length, &[]).await?;
        while let Some(piece) = inward.next().await {
            if !piece.is_empty() {
                self.body(piece, false).await?;
            }
        }
        // A request that was given up has no answer.
        if !inward.is_over {
            return None;
        }
        self.body(Bytes::new(), true).await
    }
}
