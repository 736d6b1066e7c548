//! UDP sockets for QUIC without a runtime: several datagrams per system call, with the kernel's segmentation in both
//! directions.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use wirelab_contract::event::Configured;
use wirelab_engine::poller::Poller;

use crate::quic_config::QuicSettings;
use crate::quic_socket::LARGEST_PAYLOAD;
use crate::refusal::Refusal;

/// Messages per system call.
const BATCH: usize = 8;

/// The largest message that the kernel merges, in bytes.
const MESSAGE: usize = 64 * 1024;

/// Memory for received messages. It belongs to the thread.
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    meta: [RecvMeta; BATCH],
}

impl Default for Scratch {
    fn default() -> Self {
        Self { bytes: vec![0; BATCH * MESSAGE], meta: [RecvMeta::default(); BATCH] }
    }
}

impl Scratch {
    /// A message and the size of each of its datagrams.
    pub fn message(&self, number: usize) -> (&[u8], &RecvMeta) {
        let meta = &self.meta[number];
        (&self.bytes[number * MESSAGE..][..meta.len], meta)
    }
}

pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    joins: bool,
    payload: usize,
}

/// The result of a system call.
pub(crate) enum Got {
    /// So many messages.
    Messages(usize),
    /// So many messages, and none is left.
    Last(usize),
    /// Nothing listens at the port of the server.
    Refused,
}

impl Socket {
    /// Opens a socket that is connected to the server.
    pub fn connected(settings: &QuicSettings, server: SocketAddr) -> Result<Self, Refusal> {
        Ok(Self::new(settings, settings.connected_socket(server)?))
    }

    /// Opens one of several sockets at this address; the kernel distributes clients over them.
    pub fn shared(settings: &QuicSettings, address: SocketAddr) -> Result<Self, Refusal> {
        Ok(Self::new(settings, settings.shared_socket(address)?))
    }

    fn new(settings: &QuicSettings, (io, state, joins): (UdpSocket, UdpSocketState, bool)) -> Self {
        Self { io, state, joins, payload: settings.largest_payload().into() }
    }

    /// The bound port.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.io.local_addr()?.port())
    }

    /// The effective settings.
    pub fn report(&self, settings: &QuicSettings) -> Configured {
        settings.report_of(&self.io, self.segments(), self.joins)
    }

    /// Has the socket watched.
    pub fn watch(&self, poller: &Poller, token: u64) -> io::Result<()> {
        poller.add(&self.io, token)
    }

    /// Has the socket watched under another token.
    pub fn rename(&self, poller: &Poller, token: u64) -> io::Result<()> {
        poller.rename(&self.io, token)
    }

    /// Whether one call can send several datagrams; false after the kernel refused to.
    pub fn segments(&self) -> bool {
        self.state.max_gso_segments() > 1
    }

    pub fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Number of datagrams that one call may send.
    pub fn most_segments(&self) -> usize {
        // The kernel refuses a larger packet.
        self.state.max_gso_segments().min(LARGEST_PAYLOAD / self.payload).max(1)
    }

    /// Sends. Returns false if the kernel takes nothing now.
    pub fn send(&self, transmit: &quinn_proto::Transmit, bytes: &[u8]) -> io::Result<bool> {
        let transmit = Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| quinn::udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: &bytes[..transmit.size],
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        match self.state.try_send((&self.io).into(), &transmit) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Err(error),
            // For QUIC any other failure to send is a lost packet, which it sends again.
            Err(_) => Ok(true),
        }
    }

    /// Receives as many messages as there are, at most a batch.
    pub fn receive(&self, scratch: &mut Scratch) -> Got {
        let mut slices = scratch.bytes.chunks_exact_mut(MESSAGE).map(IoSliceMut::new);
        let mut slices: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        // Errors are reports about earlier datagrams, one for each.
        for _ in 0..BATCH {
            match self.state.recv((&self.io).into(), &mut slices, &mut scratch.meta) {
                Ok(count @ BATCH..) => return Got::Messages(count),
                Ok(count) => return Got::Last(count),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Got::Refused,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Got::Last(0),
                Err(_) => {}
            }
        }
        Got::Last(0)
    }
}
