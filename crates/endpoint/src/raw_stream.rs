//! Requests of raw QUIC on the streams of any QUIC library: the client's exchange and the server's answer.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use wirelab_contract::error_kind::ErrorKind;

use crate::client::transport::{Answer, Failure, Sink};
use crate::raw::{HEADER, Header};
use crate::server::Site;
use crate::{payload, wait};

/// The attempted operation in failure messages.
pub const ATTEMPT: &str = "sending a request by QUIC";

/// A bidirectional stream, which carries one request and its answer.
pub trait RawStream {
    /// The error type.
    type Error: Send;

    /// Sends bytes; returns when the library has accepted them.
    fn send(&mut self, piece: Bytes) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Closes the sending side; bytes sent before still arrive.
    fn finish(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Receives the next bytes in order; `None` if the peer has finished.
    fn receive(&mut self) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;

    /// Tells the peer to stop sending (STOP_SENDING).
    fn stop(&mut self);

    /// Aborts the sending side (RESET_STREAM).
    fn reset(&mut self);
}

/// Sends a request and receives its answer. `failed` converts an error of the stream.
///
/// # Errors
///
/// The [`Failure`] from `failed`, or a failure if the answer is shorter or longer than requested.
pub async fn exchange<S: RawStream>(
    stream: &mut S,
    header: Header,
    body: Option<Sink<'_>>,
    failed: impl Fn(S::Error) -> Failure,
) -> Result<Answer, Failure> {
    stream.send(Bytes::copy_from_slice(&header.encode())).await.map_err(&failed)?;
    let mut sent = 0;
    while sent < header.body {
        let piece = payload::piece(sent, header.body - sent);
        sent += piece.len() as u64;
        stream.send(piece).await.map_err(&failed)?;
    }
    stream.finish().await.map_err(&failed)?;
    let result = receive(stream, header.wanted, body, failed).await;
    if result.is_err() {
        // Tells the server to stop, so that it does not keep sending during the next request.
        stream.stop();
    }
    result
}

async fn receive<S: RawStream>(
    stream: &mut S,
    wanted: u64,
    mut body: Option<Sink<'_>>,
    failed: impl Fn(S::Error) -> Failure,
) -> Result<Answer, Failure> {
    let mut first_byte = None;
    let mut bytes_in = 0;
    loop {
        let chunk = stream.receive().await.map_err(&failed)?;
        let now = Instant::now();
        let first_byte = *first_byte.get_or_insert(now);
        let Some(chunk) = chunk else {
            if bytes_in < wanted {
                let message = format!("{ATTEMPT}: the response ended after {bytes_in} of {wanted} bytes");
                return Err(Failure { kind: ErrorKind::Truncated, message });
            }
            return Ok(Answer { first_byte, last_byte: now, bytes_in, status: None });
        };
        bytes_in += chunk.len() as u64;
        if bytes_in > wanted {
            let message = format!("{ATTEMPT}: the response is longer than the requested {wanted} bytes");
            return Err(Failure { kind: ErrorKind::Digest, message });
        }
        if let Some(body) = &mut body {
            body(&chunk);
        }
    }
}

/// Answers the request on a stream, and counts it. The client reports failed streams.
pub async fn answer<S: RawStream + Send>(mut stream: S, site: &Site) {
    if try_answer(&mut stream, site).await.is_some() {
        site.count();
    }
}

async fn try_answer<S: RawStream + Send>(stream: &mut S, site: &Site) -> Option<()> {
    let Some(header) = read_request(stream).await else {
        stream.reset();
        return None;
    };
    let arrival = Instant::now();
    if header.delay_us > 0 {
        if !site.offers_delay() {
            stream.reset();
            return None;
        }
        wait::until(arrival + Duration::from_micros(header.delay_us)).await;
    }
    site.work();
    let mut sent = 0;
    while sent < header.wanted {
        let piece = payload::piece(sent, header.wanted - sent);
        sent += piece.len() as u64;
        stream.send(piece).await.ok()?;
    }
    stream.finish().await.ok()
}

/// Reads a whole request: the header, the announced bytes of body, and the end of the stream.
async fn read_request<S: RawStream + Send>(stream: &mut S) -> Option<Header> {
    let mut start = BytesMut::new();
    let mut received = 0_u64;
    while let Some(chunk) = stream.receive().await.ok()? {
        let missing = HEADER.saturating_sub(start.len()).min(chunk.len());
        start.extend_from_slice(&chunk[..missing]);
        received += chunk.len() as u64;
    }
    let header = Header::decode(start.first_chunk()?);
    (received - HEADER as u64 == header.body).then_some(header)
}
