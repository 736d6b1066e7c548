//! A UDP socket with segmentation and receive offload, by the crate that quinn uses, so that endpoints differ in their
//! QUIC and not in their system calls.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use wirelab_contract::spec::Transport;
use wirelab_endpoint::program::{Configured, Refusal, udp_socket};

/// Bytes that one receipt may bring: with receive offload the kernel joins datagrams up to this size.
const JOINED: usize = 65_536;

/// Receipts per system call.
const RECEIPTS: usize = 4;

thread_local! {
    /// Received bytes are handled before any other work on the thread, so all its sockets can share this.
    static INBOX: RefCell<Vec<u8>> = RefCell::new(vec![0; JOINED * RECEIPTS]);
}

/// A socket, in a runtime.
pub struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    segments: usize,
    local: SocketAddr,
}

impl Socket {
    /// A socket at `local`; a client's is connected to `server`, so that it hears if nothing listens there. With
    /// `shared` several sockets may have the same port, and the kernel spreads clients over them.
    pub fn open(
        local: SocketAddr,
        server: Option<SocketAddr>,
        shared: bool,
        settings: &Transport,
    ) -> Result<Self, Refusal> {
        let failed = |error: io::Error| Refusal::failed(format!("preparing a UDP socket at {local}: {error}"));
        let socket =
            if shared { udp_socket::open_shared(local, settings)? } else { udp_socket::open(local, settings)? };
        if let Some(server) = server {
            udp_socket::connect(&socket, server)?;
        }
        let state = UdpSocketState::new((&socket).into()).map_err(failed)?;
        if settings.gro == Some(false) {
            // It was just switched on; if the kernel lacks the option, this has no effect.
            let _ = udp_socket::set_join_on_receive(&socket, false);
        }
        if settings.gro == Some(true) && !udp_socket::joins_on_receive(&socket) {
            return Err(Refusal::unsupported("`gro`: this kernel cannot join UDP datagrams (Linux 5.0 can)"));
        }
        let segments = if settings.gso == Some(false) { 1 } else { state.max_gso_segments() };
        if settings.gso == Some(true) && segments < 2 {
            return Err(Refusal::unsupported("`gso`: this kernel cannot segment UDP datagrams (Linux 4.18 can)"));
        }
        let local = socket.local_addr().map_err(failed)?;
        Ok(Self { io: UdpSocket::from_std(socket).map_err(failed)?, state, segments, local })
    }

    /// Its local address.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Datagrams that may be sent at once.
    pub fn segments(&self) -> usize {
        // The kernel may have refused to take several; then it does not get several again.
        self.segments.min(self.state.max_gso_segments())
    }

    /// Returns when something was received.
    pub async fn readable(&self) -> io::Result<()> {
        self.io.readable().await
    }

    /// Returns when something can be sent.
    pub async fn writable(&self) -> io::Result<()> {
        self.io.writable().await
    }

    /// Shows every available datagram, once. False: none.
    pub fn receive(&self, mut look: impl FnMut(&mut [u8], SocketAddr)) -> io::Result<bool> {
        INBOX.with_borrow_mut(|inbox| {
            let mut metas = [RecvMeta::default(); RECEIPTS];
            let mut parts = inbox.chunks_mut(JOINED).map(IoSliceMut::new);
            let mut buffers: [IoSliceMut<'_>; RECEIPTS] =
                std::array::from_fn(|_| parts.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let receive = || self.state.recv((&self.io).into(), &mut buffers, &mut metas);
            let count = match self.io.try_io(Interest::READABLE, receive) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            };
            for (meta, buffer) in metas.iter().zip(&mut buffers).take(count) {
                for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                    look(datagram, meta.addr);
                }
            }
            Ok(true)
        })
    }

    /// Sends datagrams of `segment` bytes each, the last one of the rest. False: the kernel takes nothing now.
    pub fn send(&self, destination: SocketAddr, contents: &[u8], segment: usize) -> io::Result<bool> {
        let segment_size = (contents.len() > segment).then_some(segment);
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        match self.io.try_io(Interest::WRITABLE, || self.state.try_send((&self.io).into(), &transmit)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Its active settings.
    pub fn report(&self, configured: &mut Configured) {
        configured.insert("gso".to_owned(), (self.segments() > 1).into());
        configured.insert("gro".to_owned(), udp_socket::joins_on_receive(&self.io).into());
        udp_socket::report(&self.io, configured);
    }
}
