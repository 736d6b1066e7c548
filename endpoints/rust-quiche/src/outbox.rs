//! Packets on their way from quiche to the kernel: as many of the same size at once as offload allows.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;

use quiche::Connection;

use crate::socket::Socket;

/// The kernel takes at most this many bytes at once (UDP's own limit).
const MOST: usize = 65_000;

/// No packet is larger: quiche's own limit.
pub const LARGEST: usize = 16_383;

/// The smallest size that a path carries (RFC 9000, section 14): a full packet has it at least.
const FULL: usize = 1200;

thread_local! {
    /// Packets are with the kernel before anything else happens on the thread, so all its connections can share this.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; MOST]);
}

/// Packets of one connection that the kernel has not accepted yet; mostly none.
#[derive(Default)]
pub struct Outbox(Option<Left>);

struct Left {
    packets: Vec<u8>,
    segment: usize,
    to: SocketAddr,
}

/// The result of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Everything is with the kernel.
    All,
    /// The kernel takes no more now.
    Blocked,
}

impl Outbox {
    /// Whether something waits for the kernel.
    pub const fn is_blocked(&self) -> bool {
        self.0.is_some()
    }

    /// Hands over pending packets, and new ones of the connection. An error of the socket other than a lack of
    /// room loses the packets, as on the path; the caller gets the last error.
    pub fn flush(&mut self, connection: &mut Connection, socket: &Socket) -> io::Result<Sent> {
        if let Some(left) = &self.0 {
            if matches!(socket.send(left.to, &left.packets, left.segment), Ok(false)) {
                return Ok(Sent::Blocked);
            }
            self.0 = None;
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let mut result = Ok(Sent::All);
            while let Some((end, segment, to)) = fill(scratch, connection, socket.segments()) {
                match socket.send(to, &scratch[..end], segment) {
                    Ok(true) => {}
                    Ok(false) => {
                        self.0 = Some(Left { packets: scratch[..end].to_vec(), segment, to });
                        return Ok(Sent::Blocked);
                    }
                    // A probe may be too large for the path; later packets are not.
                    Err(error) => result = Err(error),
                }
            }
            result
        })
    }
}

/// Makes packets of one size; the last one may be shorter; `None`: nothing to send. Returns the end of the bytes,
/// the size, and the receiver.
fn fill(scratch: &mut [u8], connection: &mut Connection, segments: usize) -> Option<(usize, usize, SocketAddr)> {
    let (segment, info) = match connection.send(&mut scratch[..LARGEST]) {
        Err(quiche::Error::Done) => return None,
        // A handshake that fails closes the connection, which the next packet tells the peer.
        Err(_) => connection.send(&mut scratch[..LARGEST]).ok()?,
        Ok(sent) => sent,
    };
    let mut end = segment;
    // After a packet that is not full the next one would be made to fit its size.
    let more = if segment < FULL { 0 } else { segments.saturating_sub(1) };
    for _ in 0..more {
        // A packet larger than the first, such as a probe of the path's size, waits for the next round.
        let Some(room) = scratch.get_mut(end..end + segment) else { break };
        let Ok((length, _)) = connection.send(room) else { break };
        end += length;
        if length < segment {
            break;
        }
    }
    Some((end, segment, info.to))
}
