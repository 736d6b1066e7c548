//! Messages to tokio-quiche's HTTP/3 driver for one stream.

use std::future::poll_fn;

use tokio_quiche::http3::driver::{OutboundFrame, OutboundFrameSender};

/// Hands over a frame, when it has room; `None`: the stream accepts no more.
pub async fn put(stream: &mut OutboundFrameSender, frame: OutboundFrame) -> Option<()> {
    poll_fn(|cx| stream.poll_reserve(cx)).await.ok()?;
    stream.send_item(frame).ok()
}
