//! A UDP socket that shows the mark and the remaining hops of each received packet, and never lets packets be
//! fragmented.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use crate::netns::option::set;

/// The remaining hops with which packets leave.
pub(super) const HOPS: u8 = 64;

/// A received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    /// Bytes of the datagram.
    pub length: usize,
    /// The byte with DSCP and ECN.
    pub mark: u8,
    pub hops_left: u8,
}

/// The socket. The kernel neither fragments its packets nor caches a path MTU for them.
#[derive(Debug)]
pub(super) struct Socket {
    inner: UdpSocket,
    is_ipv4: bool,
    /// The mark of the next packet.
    mark: AtomicU8,
}

impl Socket {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let inner = UdpSocket::bind(address)?;
        let is_ipv4 = address.is_ipv4();
        let options = if is_ipv4 {
            [
                (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
                (libc::IP_RECVTOS, 1),
                (libc::IP_RECVTTL, 1),
                (libc::IP_TTL, HOPS.into()),
            ]
        } else {
            [
                (libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
                (libc::IPV6_RECVTCLASS, 1),
                (libc::IPV6_RECVHOPLIMIT, 1),
                (libc::IPV6_UNICAST_HOPS, HOPS.into()),
            ]
        };
        for (option, value) in options {
            set(&inner, if is_ipv4 { libc::IPPROTO_IP } else { libc::IPPROTO_IPV6 }, option, value)?;
        }
        // Without privileges the kernel grants less, which a later loss shows.
        set(&inner, libc::SOL_SOCKET, libc::SO_RCVBUF, 4 << 20)?;
        Ok(Self { inner, is_ipv4, mark: AtomicU8::new(0) })
    }

    /// Bytes of the headers of IP and UDP.
    pub(super) const fn headers(&self) -> usize {
        8 + if self.is_ipv4 { 20 } else { 40 }
    }

    /// Bytes of the headers of Ethernet, IP and UDP.
    pub(super) const fn overhead(&self) -> usize {
        14 + self.headers()
    }

    pub(super) fn connect(&self, to: SocketAddr) -> io::Result<()> {
        self.inner.connect(to)
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// The next datagram of any sender, and the sender. Only before [`Self::connect`].
    pub(super) fn receive_from(&self, buffer: &mut [u8], deadline: Instant) -> io::Result<Option<(usize, SocketAddr)>> {
        let Some(left) = left(deadline) else { return Ok(None) };
        self.inner.set_read_timeout(Some(left))?;
        match self.inner.recv_from(buffer) {
            Ok(received) => Ok(Some(received)),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next datagram of the peer; `None` at the deadline.
    pub(super) fn receive(&self, buffer: &mut [u8], deadline: Instant) -> io::Result<Option<Received>> {
        while let Some(left) = left(deadline) {
            self.inner.set_read_timeout(Some(left))?;
            match self.receive_with(buffer, 0) {
                Ok(received) => return Ok(Some(received)),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// A datagram of the peer that has arrived already.
    pub(super) fn poll(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        match self.receive_with(buffer, libc::MSG_DONTWAIT) {
            Ok(received) => Ok(Some(received)),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a datagram with a mark. False: the kernel did not take it, so it is lost.
    pub(super) fn send(&self, datagram: &[u8], mark: u8) -> io::Result<bool> {
        if self.mark.swap(mark, Ordering::Relaxed) != mark {
            let (level, option) =
                if self.is_ipv4 { (libc::IPPROTO_IP, libc::IP_TOS) } else { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) };
            set(&self.inner, level, option, mark.into())?;
        }
        for is_last in [false, true] {
            match self.inner.send(datagram) {
                Ok(_) => return Ok(true),
                // The error may be that of an earlier packet; a second one is this packet's.
                Err(error) if is_transient(&error) && !is_last => {}
                Err(error) if is_transient(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Size of the largest IP packet that the interface to the peer takes, as far as the kernel knows.
    pub(super) fn mtu(&self) -> io::Result<u32> {
        let (level, option) =
            if self.is_ipv4 { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
        let mut value: libc::c_int = 0;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the value and its length live through the call, and the length is the value's.
        let status = unsafe {
            libc::getsockopt(self.inner.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length)
        };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(value.cast_unsigned()) }
    }

    fn receive_with(&self, buffer: &mut [u8], flags: libc::c_int) -> io::Result<Received> {
        let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = [0_u64; 16];
        // SAFETY: `msghdr` is plain data, for which all zeroes is a value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: everything that the message points to lives through the call, with the lengths that it states.
        let count = unsafe { libc::recvmsg(self.inner.as_raw_fd(), &raw mut message, flags) };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut received = Received { length: count.cast_unsigned(), mark: 0, hops_left: 0 };
        // SAFETY: the kernel filled the control buffer that the message points to, which still lives, and wrote its
        // length.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        while !header.is_null() {
            // SAFETY: the header is within the control buffer, whose alignment is that of the header.
            let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
            // SAFETY: each of the options that are on carries at least one byte.
            let data = unsafe { libc::CMSG_DATA(header) };
            match (level, kind) {
                // SAFETY: a message of this kind carries one byte.
                (libc::IPPROTO_IP, libc::IP_TOS) => received.mark = unsafe { data.read() },
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    // SAFETY: a message of these kinds carries one `int`, perhaps unaligned.
                    received.hops_left = unsafe { data.cast::<libc::c_int>().read_unaligned() } as u8;
                }
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    // SAFETY: a message of this kind carries one `int`, perhaps unaligned.
                    received.mark = unsafe { data.cast::<libc::c_int>().read_unaligned() } as u8;
                }
                _ => {}
            }
            // SAFETY: the header is one of this message, whose control buffer still lives.
            header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
        }
        Ok(received)
    }
}

fn left(deadline: Instant) -> Option<std::time::Duration> {
    Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// Whether an error concerns one packet only: nothing to read in time, a full queue, a packet that is too large, or a
/// peer that the network reported as unreachable.
fn is_transient(error: &io::Error) -> bool {
    const OF_PACKETS: [i32; 9] = [
        libc::EAGAIN,
        libc::EINTR,
        libc::ENOBUFS,
        libc::EMSGSIZE,
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::ENETDOWN,
        libc::EPERM,
    ];
    error.raw_os_error().is_some_and(|number| OF_PACKETS.contains(&number))
}
