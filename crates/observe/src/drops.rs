//! Drops and retransmissions inside the machine, from the kernel's protocol counters before and after the window.
//!
//! The counters belong to the network namespaces of client and server; two namespaces are added. Every other user of
//! these namespaces counts too. In a lab without namespaces of its own, that is the whole machine.
//!
//! `procfs` reads one of the three files, /proc/net/netstat, not at all, and the others into fields with other names.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::os::unix::fs::MetadataExt;

use wirelab_model::metric::{Better, Metric, Side, Unit, Values};
use wirelab_model::missing::Missing;

use crate::tree::Pid;
use crate::window::{Reading, values};
use crate::{About, Observer, Targets, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "drops",
    summary: "UDP datagrams and TCP segments that the kernel dropped, and TCP retransmissions.",
    cost: "Three files per network namespace are read before and after the window; the kernel counts in any case.",
    needs: None,
    by_default: true,
    metrics: &[
        COUNTERS[0].metric,
        COUNTERS[1].metric,
        COUNTERS[2].metric,
        COUNTERS[3].metric,
        COUNTERS[4].metric,
        COUNTERS[5].metric,
        COUNTERS[6].metric,
    ],
};

/// A kernel counter and its metric.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// The kernel's name: the heading of its lines in /proc/net/snmp or /proc/net/netstat, and the counter's own name.
    pub kernel: (&'static str, &'static str),
    /// The name of the same counter for IPv6 in /proc/net/snmp6, if the kernel counts IPv6 separately.
    pub ipv6: Option<&'static str>,
    /// The metric that gives the counter's growth.
    pub metric: Metric,
}

/// Every counter, in the order of the metrics.
pub const COUNTERS: [Counter; 7] = [
    counter(
        ("Udp", "RcvbufErrors"),
        Some("Udp6RcvbufErrors"),
        "udp_receive_buffer_errors",
        "UDP datagrams dropped, receive buffer full",
        "Datagrams that were dropped in the measured window because the receiving socket's buffer was full.",
    ),
    counter(
        ("Udp", "InErrors"),
        Some("Udp6InErrors"),
        "udp_in_errors",
        "UDP datagrams dropped on receipt",
        "Datagrams that could not be delivered in the measured window for any reason but a closed port.",
    ),
    counter(
        ("Udp", "SndbufErrors"),
        Some("Udp6SndbufErrors"),
        "udp_send_buffer_errors",
        "UDP datagrams dropped, send buffer full",
        "Datagrams that could not be sent in the measured window for want of buffer space.",
    ),
    counter(
        ("Tcp", "RetransSegs"),
        None,
        "tcp_retransmitted",
        "TCP segments retransmitted",
        "Segments that were sent again in the measured window, by any TCP connection.",
    ),
    counter(
        ("TcpExt", "ListenDrops"),
        None,
        "tcp_listen_drops",
        "TCP connections dropped by listeners",
        "Connection attempts that listening sockets dropped in the measured window, mostly because their queue was \
         full.",
    ),
    counter(
        ("TcpExt", "TCPBacklogDrop"),
        None,
        "tcp_backlog_drops",
        "TCP segments dropped, backlog full",
        "Segments that were dropped in the measured window because the socket's backlog was full.",
    ),
    counter(
        ("TcpExt", "TCPRcvQDrop"),
        None,
        "tcp_receive_queue_drops",
        "TCP segments dropped, receive queue full",
        "Segments that were dropped in the measured window because the socket's receive queue was full.",
    ),
];

const fn counter(
    kernel: (&'static str, &'static str),
    ipv6: Option<&'static str>,
    name: &'static str,
    title: &'static str,
    meaning: &'static str,
) -> Counter {
    let vantage =
        "the kernel's counters of the network namespaces of client and server, other programs in them included";
    let metric = Metric { name, title, unit: Unit::Count, side: Side::Link, vantage, better: Better::Lower, meaning };
    Counter { kernel, ipv6, metric }
}

/// The observer.
#[derive(Debug, Default)]
pub struct Drops {
    begin: Option<Result<Namespaces, Missing>>,
    end: Option<Result<Namespaces, Missing>>,
}

/// The counters of each network namespace, by inode number.
type Namespaces = BTreeMap<u64, Counts>;

/// Counters by heading and name; IPv6 counters have the heading `""`.
type Counts = BTreeMap<(String, String), u64>;

impl Observer for Drops {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, targets: &Targets) {
        self.begin = Some(read(targets));
    }

    fn end(&mut self, targets: &Targets) {
        self.end = Some(read(targets));
    }

    fn values(&mut self, _window: &Window) -> Values {
        values(ABOUT.metrics, COUNTERS.map(|counter| self.grown(&counter)))
    }
}

impl Drops {
    fn grown(&self, counter: &Counter) -> Reading {
        let (Some(begin), Some(end)) = (&self.begin, &self.end) else {
            return Err(Missing::NoWindow);
        };
        grown(counter, begin.as_ref().map_err(Clone::clone)?, end.as_ref().map_err(Clone::clone)?)
    }
}

/// Growth of a counter, summed over all namespaces.
fn grown(counter: &Counter, begin: &Namespaces, end: &Namespaces) -> Reading {
    if !begin.keys().eq(end.keys()) {
        return Err(Missing::NamespaceChanged);
    }
    let mut sum = 0;
    for (before, after) in begin.values().zip(end.values()) {
        let grown = total(counter, after)?.checked_sub(total(counter, before)?);
        sum += grown.ok_or(Missing::CounterBackwards)?;
    }
    Ok(sum as f64)
}

fn total(counter: &Counter, counts: &Counts) -> Result<u64, Missing> {
    let (heading, name) = counter.kernel;
    let of = |heading: &str, name: &str| counts.get(&(heading.to_owned(), name.to_owned())).copied();
    let count = of(heading, name).ok_or_else(|| Missing::kernel_lacks(format!("counter {heading} {name}")))?;
    // A kernel without IPv6 has no such counter.
    Ok(count + counter.ipv6.and_then(|name| of("", name)).unwrap_or_default())
}

/// Reads the counters of the network namespaces of all visible processes, each namespace once.
fn read(targets: &Targets) -> Result<Namespaces, Missing> {
    let mut namespaces = Namespaces::new();
    for pid in targets.servers.iter().chain(&targets.clients).flatten().copied() {
        let path = format!("/proc/{pid}/ns/net");
        let about = fs::metadata(&path).map_err(|error| Missing::unreadable(path, error))?;
        if let Entry::Vacant(new) = namespaces.entry(about.ino()) {
            new.insert(counts(pid)?);
        }
    }
    if namespaces.is_empty() {
        return Err(Missing::ProcessesHidden);
    }
    Ok(namespaces)
}

/// The counters of a process's network namespace.
fn counts(pid: Pid) -> Result<Counts, Missing> {
    let file = |name: &str| {
        let path = format!("/proc/{pid}/net/{name}");
        fs::read_to_string(&path).map_err(|error| Missing::unreadable(path, error))
    };
    let mut counts = Counts::new();
    parse_pairs(&file("snmp")?, &mut counts);
    parse_pairs(&file("netstat")?, &mut counts);
    // Absent where the kernel has no IPv6.
    parse_lines(&file("snmp6").unwrap_or_default(), &mut counts);
    Ok(counts)
}

/// Parses pairs of lines: a heading with names, then the heading with values. Negative values are settings, not
/// counters; they are skipped.
fn parse_pairs(text: &str, counts: &mut Counts) {
    let lines: Vec<_> = text.lines().filter_map(|line| line.split_once(':')).collect();
    for pair in lines.chunks_exact(2) {
        let [(heading, names), (_, values)] = pair else { continue };
        for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
            if let Ok(value) = value.parse() {
                counts.insert(((*heading).to_owned(), name.to_owned()), value);
            }
        }
    }
}

/// Parses lines of a name and a value.
fn parse_lines(text: &str, counts: &mut Counts) {
    for line in text.lines() {
        if let Some((name, value)) = line.split_once(char::is_whitespace)
            && let Ok(value) = value.trim().parse()
        {
            counts.insert((String::new(), name.to_owned()), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(snmp: &str, snmp6: &str) -> Counts {
        let mut counts = Counts::new();
        parse_pairs(snmp, &mut counts);
        parse_lines(snmp6, &mut counts);
        counts
    }

    #[test]
    fn counters_are_found_by_name_and_ipv6_is_added() {
        let snmp = "Tcp: MaxConn RetransSegs\nTcp: -1 12\nUdp: InErrors RcvbufErrors\nUdp: 3 2\n";
        let counts = counts(snmp, "Udp6InErrors                    \t5\nUdp6RcvbufErrors 1\n");
        let total = |number: usize| total(&COUNTERS[number], &counts);
        assert_eq!((total(0), total(1), total(3)), (Ok(3), Ok(8), Ok(12)));
    }

    #[test]
    fn namespaces_are_added_and_a_process_that_moves_between_them_gives_a_reason() {
        let namespaces = |dropped: [u64; 2]| {
            let counted = |number: u64| counts(&format!("Udp: RcvbufErrors\nUdp: {number}\n"), "");
            Namespaces::from([(7, counted(dropped[0])), (9, counted(dropped[1]))])
        };
        assert_eq!(grown(&COUNTERS[0], &namespaces([3, 40]), &namespaces([5, 50])), Ok(12.0));
        let backwards = grown(&COUNTERS[0], &namespaces([3, 40]), &namespaces([3, 39]));
        assert_eq!(backwards, Err(Missing::CounterBackwards));
        let mut moved = namespaces([3, 40]);
        moved.remove(&7);
        assert_eq!(grown(&COUNTERS[0], &namespaces([3, 40]), &moved), Err(Missing::NamespaceChanged));
    }

    #[test]
    fn a_namespace_that_both_processes_share_counts_once() {
        let own = std::process::id();
        let read = |targets| read(&targets).map(|namespaces| namespaces.len());
        assert_eq!(
            read(Targets { servers: Some(vec![own, own]), clients: Some(vec![own]), ..Targets::default() }),
            Ok(1)
        );
        assert!(read(Targets::default()).is_err());
    }

    #[test]
    fn a_counter_that_the_kernel_lacks_gives_a_reason_and_not_zero() {
        let counts = counts("Udp: InErrors\nUdp: 3\n", "");
        let reason = total(&COUNTERS[0], &counts).unwrap_err();
        assert_eq!(reason.to_string(), "this kernel has no counter Udp RcvbufErrors");
    }
}
