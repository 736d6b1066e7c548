//! The raw protocols `tcp` and `tls`: sequential requests on one stream, framed by sizes alone.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::ClientSpec;

use crate::client::failure;
use crate::client::stream::{Dialed, Dialer, Stream, TICKET_WAIT};
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::payload;
use crate::raw::{HEADER, Header};
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// Maximum bytes per read. The buffer belongs to the thread, not to the connection: its content is not used after a
/// read.
const READ: usize = 256 * 1024;

/// Opens raw connections over TCP.
pub(crate) struct TcpTransport {
    dialer: Dialer,
    request: Rc<RawRequest>,
}

/// The request that every connection sends.
struct RawRequest {
    header: Header,
    /// The header and the beginning of the body, so that a small request takes one system call.
    opening: Bytes,
    wants_tickets: bool,
    scratch: RefCell<Box<[u8]>>,
}

/// A raw connection.
pub(crate) struct TcpConnection {
    stream: Stream,
    request: Rc<RawRequest>,
    open: bool,
}

impl Transport for TcpTransport {
    type Connection = TcpConnection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        let dialer = Dialer::new(spec)?;
        let header = Header::of(spec);
        header.check_visible(spec.protocol)?;
        let mut opening = header.encode().to_vec();
        opening.extend_from_slice(payload::piece_slice(0, header.body.min(64 * 1024)));
        let request = RawRequest {
            header,
            opening: opening.into(),
            wants_tickets: dialer.wants_tickets(),
            scratch: RefCell::new(vec![0; READ].into()),
        };
        Ok(Self { dialer, request: Rc::new(request) })
    }

    async fn connect(&self) -> Result<Opened<TcpConnection>, Failure> {
        let Dialed { stream, connected, ready } = self.dialer.dial().await?;
        let connection = TcpConnection { stream, request: Rc::clone(&self.request), open: true };
        Ok(Opened { connection, connected, ready })
    }

    fn configured(&self) -> Configured {
        self.dialer.configured()
    }

    fn tickets(&self) -> usize {
        self.dialer.tickets()
    }

    fn accounts(&self) -> Option<&Accounts> {
        Some(self.dialer.accounts())
    }
}

impl Connection for TcpConnection {
    async fn request(&mut self, _: usize, mut body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let request = Rc::clone(&self.request);
        let mut exchange = Exchange { request: &request, sent: 0, flushed: false, received: 0, first_byte: None };
        // Until the exchange is complete, the state of the stream is unknown.
        self.open = false;
        let last_byte = poll_fn(|cx| exchange.poll(cx, &mut self.stream, &mut body)).await?;
        self.open = true;
        let first_byte = exchange.first_byte.unwrap_or(last_byte);
        Ok(Answer { first_byte, last_byte, bytes_in: exchange.received, status: None })
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn another(&self) -> Option<Self> {
        None
    }

    fn handshake(&self) -> Option<Handshake> {
        self.stream.proof().handshake()
    }

    async fn close(mut self) {
        let proof = self.stream.proof();
        if self.request.wants_tickets && !proof.has_ticket() {
            let ticket = poll_fn(|cx| {
                let scratch = &mut *self.request.scratch.borrow_mut();
                let polled = self.stream.poll_chunk(cx, scratch, READ, <[u8]>::is_empty);
                // Tickets carry no application data, so the stream stays pending when they arrive.
                if proof.has_ticket() || polled.is_ready() { Poll::Ready(()) } else { Poll::Pending }
            });
            // Without a ticket the next connection has a full handshake, and its sample says so.
            let _ = timeout(TICKET_WAIT, ticket).await;
        }
        // The peer may have closed first.
        let _ = timeout(TICKET_WAIT, self.stream.shutdown()).await;
    }
}

/// One request and its response. Both directions run concurrently, because a server may answer before it has read the
/// whole body.
struct Exchange<'a> {
    request: &'a RawRequest,
    /// Bytes sent, including the header.
    sent: u64,
    flushed: bool,
    received: u64,
    first_byte: Option<Instant>,
}

impl Exchange<'_> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        body: &mut Option<Sink<'_>>,
    ) -> Poll<Result<Instant, Failure>> {
        let wrote = self.poll_write(cx, stream);
        if let Poll::Ready(Err(error)) = &wrote {
            return Poll::Ready(Err(failure::io("sending the request", error)));
        }
        while self.received < self.request.header.wanted {
            let limit = usize::try_from(self.request.header.wanted - self.received).unwrap_or(usize::MAX);
            let scratch = &mut *self.request.scratch.borrow_mut();
            let look = |bytes: &[u8]| {
                if let Some(sink) = body {
                    sink(bytes);
                }
                bytes.len()
            };
            match stream.poll_chunk(cx, scratch, limit, look) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => {
                    let (got, wanted) = (self.received, self.request.header.wanted);
                    let message = format!("the server closed the connection after {got} of {wanted} bytes of response");
                    return Poll::Ready(Err(Failure::new(ErrorKind::Truncated, message)));
                }
                Poll::Ready(Ok(count)) => {
                    self.received += count as u64;
                    if self.first_byte.is_none() {
                        self.first_byte = Some(Instant::now());
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(failure::io("receiving the response", &error))),
            }
        }
        if wrote.is_pending() { Poll::Pending } else { Poll::Ready(Ok(Instant::now())) }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<io::Result<()>> {
        let total = HEADER as u64 + self.request.header.body;
        let opening = self.request.opening.len() as u64;
        while self.sent < total {
            let piece = if self.sent < opening {
                &self.request.opening[self.sent as usize..]
            } else {
                payload::piece_slice(self.sent - HEADER as u64, total - self.sent)
            };
            let count = std::task::ready!(Pin::new(&mut *stream).poll_write(cx, piece))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += count as u64;
        }
        if !self.flushed {
            std::task::ready!(Pin::new(stream).poll_flush(cx))?;
            self.flushed = true;
        }
        Poll::Ready(Ok(()))
    }
}
