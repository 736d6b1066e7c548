//! The TCP connections of one network namespace, as the kernel accounts them (sock_diag(7), `TCP_INFO` of tcp(7)).
//!
//! Open connections are read before and after the window. The kernel reports each connection that ends in between, with
//! its counts at the end. Nothing is requested inside the window.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP, TCP_LISTEN};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirelab_model::missing::Missing;
use wirelab_model::transport::TransportReport;

use crate::witness::orders::{Listener, Selection, Transports};
use crate::witness::watch::within;

/// The kernel's multicast groups for ended sockets: `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY` of
/// linux/sock_diag.h.
const ENDED: [u32; 2] = [1, 3];

/// Bytes of the receive buffer: reports of some thousand connections. The kernel may grant less.
const BUFFER: usize = 4 << 20;

/// The kernel reports ended sockets with a delay, from a work queue. Silence of this length means that all were
/// reported.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Maximum number of such waits, in case other programs keep ending connections.
const MOST_WAITS: u32 = 100;

/// The watched connections of a namespace.
pub(crate) struct Connections {
    questions: Socket,
    news: Socket,
    /// Counts before the window, by socket cookie.
    before: HashMap<u64, Connection>,
    /// Final counts of connections that ended since.
    ended: HashMap<u64, Connection>,
    /// Counts of connections that were open at the end of the window.
    after: Option<HashMap<u64, Connection>>,
    listeners: Vec<Listener>,
    trouble: Option<Missing>,
}

/// The account of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Connection {
    local_port: u16,
    remote_port: u16,
    round_trip_us: u32,
    round_trip_min_us: u32,
    /// Congestion window in bytes.
    window: u64,
    segments: u64,
    retransmitted: u64,
    bytes_retransmitted: u64,
}

impl Connections {
    /// Starts watching, before the window, and records the counts so far.
    pub(crate) fn open(namespace: &Path) -> Result<Self, Missing> {
        let attempt = |error: io::Error| {
            Missing::failed(format!("cannot watch the TCP connections of {}", namespace.display()), error)
        };
        // Enters the namespace only if it is another one, because entering needs a privilege.
        let (questions, news) = if is_own(namespace).map_err(attempt)? {
            sockets()
        } else {
            File::open(namespace).and_then(|namespace| within(&namespace, sockets))
        }
        .map_err(attempt)?;
        let (before, ended) = (HashMap::new(), HashMap::new());
        let mut connections =
            Self { questions, news, before, ended, after: None, listeners: Vec::new(), trouble: None };
        // Discards connections that ended before the window.
        connections.settle();
        connections.ended.clear();
        connections.before = connections.open_now().map_err(attempt)?;
        Ok(connections)
    }

    /// The listening sockets at the time of [`Connections::open`].
    pub(crate) fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Reads the kernel's reports that have arrived.
    pub(crate) fn look(&mut self) {
        loop {
            match receive(&self.news, libc::MSG_DONTWAIT) {
                Ok(messages) => {
                    let ended = messages.into_iter().filter_map(|message| match message {
                        NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => connection(&response),
                        _ => None,
                    });
                    self.ended.extend(ended);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.trouble.get_or_insert(Missing::ConnectionsLost);
                }
                Err(error) => {
                    let attempt = "reading the reports of ended connections";
                    self.trouble.get_or_insert_with(|| Missing::failed(attempt, error));
                    return;
                }
            }
        }
    }

    /// Reads reports until the kernel has sent all.
    fn settle(&mut self) {
        for _ in 0..MOST_WAITS {
            let ready = poll(&mut [PollFd::new(&self, PollFlags::IN)], Some(&QUIET));
            if matches!(ready, Ok(0)) {
                return;
            }
            self.look();
        }
    }

    /// Ends the window: records the counts of open connections.
    pub(crate) fn end(&mut self) -> Result<(), Missing> {
        self.after = Some(self.open_now().map_err(|error| Missing::failed("cannot list the TCP connections", error))?);
        Ok(())
    }

    /// The counts of the selected connections in the window.
    pub(crate) fn finish(mut self, selection: &Selection) -> Result<Transports, Missing> {
        self.settle();
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        let mut all = self.ended;
        // For a connection that ended after the window, the counts at the window's end replace its final ones.
        all.extend(self.after.ok_or(Missing::NoWindow)?);
        let of = |is_one: &dyn Fn(&Connection) -> bool| {
            let chosen = all.iter().filter(|(_, connection)| is_one(connection));
            report(chosen.map(|(number, connection)| connection.since(self.before.get(number))))
        };
        Ok(Transports {
            servers: of(&|connection| selection.is_servers(connection.local_port)),
            client: of(&|connection| selection.is_clients(connection.local_port, connection.remote_port)),
        })
    }

    /// The open connections; records the listeners, too.
    fn open_now(&mut self) -> io::Result<HashMap<u64, Connection>> {
        let mut open = HashMap::new();
        self.listeners.clear();
        for (family, socket_id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
            ask(&self.questions, family, socket_id)?;
            'answers: loop {
                for message in receive(&self.questions, 0)? {
                    match message {
                        NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                            if response.header.state == TCP_LISTEN {
                                let (inode, port) = (response.header.inode, response.header.socket_id.source_port);
                                self.listeners.push(Listener { inode, port });
                            }
                            open.extend(connection(&response));
                        }
                        NetlinkPayload::Done(_) => break 'answers,
                        NetlinkPayload::Error(error) => return Err(error.to_io()),
                        _ => {}
                    }
                }
            }
        }
        Ok(open)
    }
}

impl AsFd for Connections {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is open as long as `self`, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(self.news.as_raw_fd()) }
    }
}

impl Connection {
    fn new(socket: &SocketId, info: &TcpInfo) -> Self {
        Self {
            local_port: socket.source_port,
            remote_port: socket.destination_port,
            round_trip_us: info.rtt,
            round_trip_min_us: info.min_rtt,
            window: u64::from(info.snd_cwnd) * u64::from(info.snd_mss),
            segments: info.segs_out.into(),
            retransmitted: info.total_retrans.into(),
            bytes_retransmitted: info.bytes_retrans,
        }
    }

    /// The growth of the counts since an earlier account.
    fn since(self, before: Option<&Self>) -> Self {
        before.map_or(self, |before| Self {
            segments: self.segments.saturating_sub(before.segments),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            bytes_retransmitted: self.bytes_retransmitted.saturating_sub(before.bytes_retransmitted),
            ..self
        })
    }
}

/// Whether this process is in the namespace.
fn is_own(namespace: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(namespace)?.ino() == std::fs::metadata("/proc/self/ns/net")?.ino())
}

/// A socket for requests and one for the kernel's reports, in the network namespace of this thread.
fn sockets() -> io::Result<(Socket, Socket)> {
    let questions = Socket::new(NETLINK_SOCK_DIAG)?;
    questions.connect(&SocketAddr::new(0, 0))?;
    let mut news = Socket::new(NETLINK_SOCK_DIAG)?;
    news.bind_auto()?;
    news.set_rx_buf_sz(BUFFER as libc::c_int)?;
    ENDED.iter().try_for_each(|group| news.add_membership(*group))?;
    Ok((questions, news))
}

fn ask(socket: &Socket, family: u8, socket_id: SocketId) -> io::Result<()> {
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        states: StateFlags::all(),
        socket_id,
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0).map(|_| ())
}

/// The messages of one read.
fn receive(socket: &Socket, flags: libc::c_int) -> io::Result<Vec<NetlinkPayload<SockDiagMessage>>> {
    // The kernel fills up to 32 KiB at a time.
    let mut buffer = Vec::with_capacity(1 << 15);
    socket.recv(&mut buffer, flags)?;
    let mut messages = Vec::new();
    let mut rest = buffer.as_slice();
    while !rest.is_empty() {
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
            .map_err(|error| io::Error::other(format!("the kernel's answer cannot be parsed: {error}")))?;
        // Messages are aligned to four bytes.
        let length = (message.header.length as usize).next_multiple_of(4).clamp(1, rest.len());
        messages.push(message.payload);
        rest = &rest[length..];
    }
    Ok(messages)
}

/// A connection with its socket cookie; `None` for listeners and for sockets without a peer or without `TCP_INFO`
/// (TIME_WAIT).
fn connection(response: &InetResponse) -> Option<(u64, Connection)> {
    let socket = &response.header.socket_id;
    if response.header.state == TCP_LISTEN || socket.destination_port == 0 {
        return None;
    }
    response.nlas.iter().find_map(|attribute| match attribute {
        Nla::TcpInfo(info) => Some((u64::from_ne_bytes(socket.cookie), Connection::new(socket, info))),
        _ => None,
    })
}

/// Sums and means over all connections.
fn report(connections: impl Iterator<Item = Connection>) -> TransportReport {
    let all: Vec<_> = connections.collect();
    if all.is_empty() {
        return TransportReport::default();
    }
    // The kernel's values for "no sample yet".
    let sampled = |us: &u32| *us > 0 && *us != u32::MAX;
    let round_trips: Vec<u64> = all.iter().map(|one| one.round_trip_us).filter(sampled).map(u64::from).collect();
    let smallest = all.iter().map(|one| one.round_trip_min_us).filter(sampled).min();
    let sum = |count: fn(&Connection) -> u64| Some(all.iter().map(count).sum());
    TransportReport {
        connections: all.len() as u64,
        round_trip_min_ns: smallest.map(|us| u64::from(us) * 1000),
        round_trip_ns: (round_trips.iter().sum::<u64>() * 1000).checked_div(round_trips.len() as u64),
        packets_sent: sum(|one| one.segments),
        packets_lost: sum(|one| one.retransmitted),
        bytes_lost: sum(|one| one.bytes_retransmitted),
        congestion_events: None,
        congestion_window: all.iter().map(|one| one.window).max().filter(|window| *window > 0),
        payload_max: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(round_trip_us: u32, segments: u64, retransmitted: u64) -> Connection {
        Connection {
            local_port: 80,
            remote_port: 4000,
            round_trip_us,
            round_trip_min_us: round_trip_us / 2,
            window: 14_000,
            segments,
            retransmitted,
            bytes_retransmitted: 1000 * retransmitted,
        }
    }

    #[test]
    fn connections_are_added_and_one_without_a_round_trip_is_left_out_of_the_mean() {
        let report = report([one(20, 100, 2), one(41, 50, 1), one(0, 3, 0)].into_iter());
        let expected = TransportReport {
            connections: 3,
            round_trip_min_ns: Some(10_000),
            round_trip_ns: Some(30_500),
            packets_sent: Some(153),
            packets_lost: Some(3),
            bytes_lost: Some(3000),
            congestion_events: None,
            congestion_window: Some(14_000),
            payload_max: None,
        };
        assert_eq!(report, expected);
        assert_eq!(report.check(), Ok(()));
    }

    #[test]
    fn no_connection_has_no_values() {
        assert_eq!(report(std::iter::empty()), TransportReport::default());
    }

    #[test]
    fn only_counts_since_the_begin_of_the_window_count() {
        let now = one(30, 100, 5);
        assert_eq!(now.since(Some(&one(20, 60, 5))), Connection { bytes_retransmitted: 0, ..one(30, 40, 0) });
        assert_eq!(now.since(None), now);
    }
}
