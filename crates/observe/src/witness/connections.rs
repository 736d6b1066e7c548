//! The TCP connections of one network namespace, and what the kernel knows of each (sock_diag(7), `TCP_INFO` of tcp(7)).
//!
//! Those that are open are asked for before the window and after it. Of one that ends in between, the kernel tells by itself,
//! with its counts as they were at its end. Nothing is asked while the window is open.

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
use wirelab_model::transport::TransportReport;

use crate::witness::orders::{Listener, Sought, Transports};
use crate::witness::watch::within;

/// The kernel's groups for ended sockets, `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY` of linux/sock_diag.h.
const ENDED: [u32; 2] = [1, 3];

/// Room for what the kernel tells until it is read: that of some thousand connections. The kernel may grant less.
const ROOM: usize = 4 << 20;

/// The kernel tells of an ended socket a moment later, from a queue of work. Nothing for this long: it has told all.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// But no more often than this, where something else in the namespace goes on ending connections.
const PATIENCE: u32 = 100;

/// The connections of a namespace that are looked at.
pub(crate) struct Connections {
    questions: Socket,
    news: Socket,
    /// What was counted before the window, by the kernel's number of the socket.
    before: HashMap<u64, Connection>,
    /// What those had counted that ended since.
    ended: HashMap<u64, Connection>,
    /// What those had counted that were open as the window ended.
    after: Option<HashMap<u64, Connection>>,
    listeners: Vec<Listener>,
    trouble: Option<String>,
}

/// What is known of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Connection {
    local_port: u16,
    remote_port: u16,
    round_trip_us: u32,
    round_trip_min_us: u32,
    /// In bytes.
    window: u64,
    segments: u64,
    retransmitted: u64,
    bytes_retransmitted: u64,
}

impl Connections {
    /// Begins to look, before the window: notes what was counted so far.
    pub(crate) fn open(namespace: &Path) -> Result<Self, String> {
        let attempt = |error: io::Error| format!("looking at the TCP connections of {}: {error}", namespace.display());
        // Without entering where that is not needed, because entering needs a privilege.
        let (questions, news) = if is_own(namespace).map_err(attempt)? {
            sockets()
        } else {
            File::open(namespace).and_then(|namespace| within(&namespace, sockets))
        }
        .map_err(attempt)?;
        let (before, ended) = (HashMap::new(), HashMap::new());
        let mut connections =
            Self { questions, news, before, ended, after: None, listeners: Vec::new(), trouble: None };
        // What ended before the window is not to be taken for what ended in it.
        connections.settle();
        connections.ended.clear();
        connections.before = connections.open_now().map_err(attempt)?;
        Ok(connections)
    }

    /// The sockets that waited for connections when it began to look.
    pub(crate) fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Reads what the kernel told.
    pub(crate) fn look(&mut self) {
        loop {
            match receive(&self.news, libc::MSG_DONTWAIT) {
                Ok(messages) => {
                    let ended = messages.into_iter().filter_map(|message| match message {
                        NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(told)) => connection(&told),
                        _ => None,
                    });
                    self.ended.extend(ended);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    let why = "connections ended faster than they could be read, so the others say nothing";
                    self.trouble.get_or_insert_with(|| why.to_owned());
                }
                Err(error) => {
                    self.trouble.get_or_insert_with(|| format!("reading of ended connections: {error}"));
                    return;
                }
            }
        }
    }

    /// Reads until the kernel has nothing more to tell.
    fn settle(&mut self) {
        for _ in 0..PATIENCE {
            let told = poll(&mut [PollFd::new(&self, PollFlags::IN)], Some(&QUIET));
            if matches!(told, Ok(0)) {
                return;
            }
            self.look();
        }
    }

    /// The window has ended: what is counted from now on does not count.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        self.after = Some(self.open_now().map_err(|error| format!("asking for the TCP connections: {error}"))?);
        Ok(())
    }

    /// What the connections sought counted in the window.
    pub(crate) fn finish(mut self, sought: &Sought) -> Result<Transports, String> {
        self.settle();
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        let mut all = self.ended;
        // Of one that ended after the window, the count at the window's end.
        all.extend(self.after.ok_or(crate::window::NO_WINDOW)?);
        let of = |is_one: &dyn Fn(&Connection) -> bool| {
            let chosen = all.iter().filter(|(_, connection)| is_one(connection));
            report(chosen.map(|(number, connection)| connection.since(self.before.get(number))))
        };
        Ok(Transports {
            servers: of(&|connection| sought.is_servers(connection.local_port)),
            client: of(&|connection| sought.is_clients(connection.local_port, connection.remote_port)),
        })
    }

    /// The connections that are open now; notes the listeners.
    fn open_now(&mut self) -> io::Result<HashMap<u64, Connection>> {
        let mut open = HashMap::new();
        self.listeners.clear();
        for (family, socket_id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
            ask(&self.questions, family, socket_id)?;
            'answers: loop {
                for message in receive(&self.questions, 0)? {
                    match message {
                        NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(told)) => {
                            if told.header.state == TCP_LISTEN {
                                let (inode, port) = (told.header.inode, told.header.socket_id.source_port);
                                self.listeners.push(Listener { inode, port });
                            }
                            open.extend(connection(&told));
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

    /// What was counted since then.
    fn since(self, before: Option<&Self>) -> Self {
        before.map_or(self, |before| Self {
            segments: self.segments.saturating_sub(before.segments),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            bytes_retransmitted: self.bytes_retransmitted.saturating_sub(before.bytes_retransmitted),
            ..self
        })
    }
}

/// Whether it is the namespace of this process.
fn is_own(namespace: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(namespace)?.ino() == std::fs::metadata("/proc/self/ns/net")?.ino())
}

/// One socket to ask, and one that is told, in the network namespace of this thread.
fn sockets() -> io::Result<(Socket, Socket)> {
    let questions = Socket::new(NETLINK_SOCK_DIAG)?;
    questions.connect(&SocketAddr::new(0, 0))?;
    let mut news = Socket::new(NETLINK_SOCK_DIAG)?;
    news.bind_auto()?;
    news.set_rx_buf_sz(ROOM as libc::c_int)?;
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
            .map_err(|error| io::Error::other(format!("the kernel's answer is not understood: {error}")))?;
        // Messages begin at multiples of four.
        let length = (message.header.length as usize).next_multiple_of(4).clamp(1, rest.len());
        messages.push(message.payload);
        rest = &rest[length..];
    }
    Ok(messages)
}

/// A connection, with the kernel's number of its socket. None: it is none (yet), or only waits for late packets.
fn connection(told: &InetResponse) -> Option<(u64, Connection)> {
    let socket = &told.header.socket_id;
    if told.header.state == TCP_LISTEN || socket.destination_port == 0 {
        return None;
    }
    told.nlas.iter().find_map(|attribute| match attribute {
        Nla::TcpInfo(info) => Some((u64::from_ne_bytes(socket.cookie), Connection::new(socket, info))),
        _ => None,
    })
}

/// All of them together.
fn report(connections: impl Iterator<Item = Connection>) -> TransportReport {
    let all: Vec<_> = connections.collect();
    if all.is_empty() {
        return TransportReport::default();
    }
    // The kernel's words for "no sample yet".
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
    fn connections_are_added_and_one_without_a_round_trip_has_no_part_in_the_mean() {
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
        };
        assert_eq!(report, expected);
        assert_eq!(report.check(), Ok(()));
    }

    #[test]
    fn no_connection_has_no_values() {
        assert_eq!(report(std::iter::empty()), TransportReport::default());
    }

    #[test]
    fn only_what_was_counted_since_the_begin_counts() {
        let now = one(30, 100, 5);
        assert_eq!(now.since(Some(&one(20, 60, 5))), Connection { bytes_retransmitted: 0, ..one(30, 40, 0) });
        assert_eq!(now.since(None), now);
    }
}
