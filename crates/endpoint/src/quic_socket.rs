//! The UDP socket below quinn: quinn's own input and output, plus two facts that quinn hides.
//!
//! Whether segmentation offload is still in use (quinn disables it silently after an error), and whether the kernel
//! reported that nothing listens at the server's port (quinn ignores it, and retries until the idle time-out).

use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// A UDP socket for a quinn endpoint.
#[derive(Debug)]
pub struct QuicSocket {
    io: UdpSocket,
    state: UdpSocketState,
    /// Whether the kernel may merge datagrams on receipt.
    joins: bool,
    refused: Notify,
    /// Size of the largest datagram in either direction.
    payload: usize,
}

/// The largest UDP payload over IPv4. The kernel's segmented and merged packets are not larger either.
pub const LARGEST_PAYLOAD: usize = 65_507;

impl QuicSocket {
    /// Wraps `socket`, which must be non-blocking, and sets the options that QUIC needs. `joins` controls receive
    /// offload; `payload` is the size of the largest datagram in either direction.
    pub fn new(socket: std::net::UdpSocket, joins: bool, payload: u16) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        if !joins {
            // quinn has just enabled it; a kernel without the option has nothing to disable.
            let _ = crate::udp_socket::set_join_on_receive(&socket, false);
        }
        let joins = joins && crate::udp_socket::joins_on_receive(&socket);
        let io = UdpSocket::from_std(socket)?;
        Ok(Self { io, state, joins, refused: Notify::new(), payload: payload.into() })
    }

    /// The kernel's socket.
    pub const fn io(&self) -> &UdpSocket {
        &self.io
    }

    /// Whether one call can send several datagrams; false after the kernel refused to.
    pub fn segments(&self) -> bool {
        self.state.max_gso_segments() > 1
    }

    /// Whether the kernel merges datagrams on receipt.
    pub const fn joins(&self) -> bool {
        self.joins
    }

    /// Resolves when the kernel reports, from now on, that nothing listens at the peer's port. Only a connected socket
    /// gets such reports.
    pub fn refused(&self) -> Notified<'_> {
        self.refused.notified()
    }

    fn note(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            self.refused.notify_waiters();
        }
    }
}

impl AsyncUdpSocket for QuicSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(WritePoller { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match self.io.try_io(Interest::WRITABLE, || self.state.try_send((&self.io).into(), transmit)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            // For QUIC any other failure to send is a lost packet, which it sends again.
            Err(error) => {
                self.note(&error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            match self.io.try_io(Interest::READABLE, || self.state.recv((&self.io).into(), bufs, meta)) {
                Ok(datagrams) => return Poll::Ready(Ok(datagrams)),
                // Either no datagram, which clears the readiness, or an error from an ICMP message.
                Err(error) => self.note(&error),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        // The kernel refuses a larger packet, and quinn takes the refusal for a loss.
        self.state.max_gso_segments().min(LARGEST_PAYLOAD / self.payload).max(1)
    }

    fn max_receive_segments(&self) -> usize {
        // quinn allocates and clears a buffer for as many of the largest datagrams.
        if self.joins { self.state.gro_segments().min(LARGEST_PAYLOAD.div_ceil(self.payload)) } else { 1 }
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

type Waiting = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

/// Wakes one of the connections that share the socket when it can send again.
struct WritePoller {
    socket: Arc<QuicSocket>,
    waiting: Option<Waiting>,
}

impl UdpPoller for WritePoller {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let waiting = this.waiting.get_or_insert_with(|| {
            let socket = Arc::clone(&this.socket);
            Box::pin(async move { socket.io.writable().await })
        });
        let result = ready!(waiting.as_mut().poll(cx));
        this.waiting = None;
        Poll::Ready(result)
    }
}

impl fmt::Debug for WritePoller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WritePoller").field("waiting", &self.waiting.is_some()).finish_non_exhaustive()
    }
}
