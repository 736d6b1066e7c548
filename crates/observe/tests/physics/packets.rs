//! The observer `packets`, compared with packets of known number and size. A host in its own network namespace sends
//! datagrams to itself, and its loopback interface both sends and receives each. This program plays test, host and
//! witness in turn.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use wirelab_model::metric::{Value, Values};
use wirelab_model::missing::Missing;
use wirelab_model::network::{Between, Place, Vantage};
use wirelab_observe::{Captures, Observer, Stage, Targets, Window, Witness, create};
use wirelab_testkit::physics::Test;
use wirelab_testkit::{Skip, skip, test};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(each_packet_of_the_window_counts_once_and_no_other_does).retries(2),
        test!(a_super_packet_counts_as_the_datagrams_that_it_becomes).retries(2),
        test!(at_a_shared_interface_only_packets_between_the_hosts_of_the_trial_count).retries(2),
        test!(packets_that_found_no_room_make_the_values_void).retries(2),
        test!(a_capture_has_every_packet_and_each_datagram_of_a_super_packet).retries(2),
        test!(the_end_of_a_witness_is_a_reason_and_the_next_trial_has_another).retries(2),
    ]
}

/// Whether packets can be captured; if not, the test is skipped.
fn can_capture() -> bool {
    let can = Witness::default().can_capture();
    if let Err(why) = &can {
        skip(Skip::KernelLacks { what: "capturing packets".to_owned(), why: why.to_string() });
    }
    can.is_ok()
}

/// Sizes of the headers of Ethernet, IPv4 and UDP.
const HEADERS: f64 = 42.0;

// --- The host ---

/// Sends datagrams as a line of its standard input demands: their number, the bytes of each, and the number per batch.
pub fn host() -> ExitCode {
    let new = |flags| {
        // SAFETY: the process has one thread, and unshares neither memory nor file descriptors.
        unsafe { unshare_unsafe(flags) }
    };
    let is_owner = new(UnshareFlags::NEWUSER | UnshareFlags::NEWNET).is_ok();
    if !is_owner {
        new(UnshareFlags::NEWNET).expect("a network namespace");
    }
    let socket = loopback();
    say(if is_owner { "owner" } else { "guest" });
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let [count, size, at_once] = line
            .split(' ')
            .map(|word| word.parse::<usize>().expect("a number"))
            .collect::<Vec<_>>()
            .try_into()
            .expect("three");
        set(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, if at_once > 1 { size as i32 } else { 0 });
        let bytes = vec![7; size * at_once];
        for _ in 0..count / at_once {
            socket.send(&bytes).expect("sending");
        }
        say("sent");
    }
    ExitCode::SUCCESS
}

fn say(word: &str) {
    println!("{word}");
    std::io::stdout().flush().expect("standard output");
}

fn set(socket: i32, level: i32, option: i32, value: i32) {
    // SAFETY: the value lives through the call, and its exact size is passed.
    let status = unsafe { libc::setsockopt(socket, level, option, (&raw const value).cast(), 4) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

/// A socket that is connected to itself, on a loopback interface that is up. No thread reads from it.
fn loopback() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    // SAFETY: `ifreq` is plain data, for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request lives through the call and has the type that the call expects.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
    let port = socket.local_addr().expect("an address").port();
    socket.connect((Ipv4Addr::LOCALHOST, port)).expect("connecting");
    socket
}

struct Host {
    child: Child,
    lines: BufReader<ChildStdout>,
    vantage: Vantage,
}

impl Host {
    fn start() -> Self {
        let program = std::env::current_exe().unwrap();
        let mut child =
            Command::new(program).arg("play-host").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let namespace = |kind| format!("/proc/{}/ns/{kind}", child.id()).into();
        let vantage = Vantage {
            place: Place::Client,
            namespace: namespace("net"),
            owner: (line.trim() == "owner").then(|| namespace("user")),
            interface: "lo".to_owned(),
            mtu: 65_536,
            is_encapsulated: false,
            between: None,
        };
        Self { child, lines, vantage }
    }

    fn send(&mut self, count: usize, size: usize, at_once: usize) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{count} {size} {at_once}").unwrap();
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "sent");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// --- The tests ---

/// A window of one request, in which values per request equal totals.
const WINDOW: Window = Window { ns: 1, requests: 1, bytes: 1 };

fn prepared(host: &Host, witness: &Witness, captures: Option<&Captures>) -> Box<dyn Observer> {
    let mut observer = create("packets").unwrap();
    observer.prepare(&Stage { vantages: std::slice::from_ref(&host.vantage), witness, captures, films: None });
    observer
}

fn number(values: &Values, name: &str) -> f64 {
    let value = &values[name];
    value.number().unwrap_or_else(|| panic!("{name}: {value:?}"))
}

#[track_caller]
fn assert_seen(values: &Values, packets: f64, bytes: f64, largest: f64) {
    for way in ["sent", "received"] {
        assert_eq!(number(values, &format!("packets_client_{way}_per_request")), packets, "{way}");
        assert_eq!(number(values, &format!("packets_client_bytes_{way}_per_request")), bytes, "{way}");
    }
    assert_eq!(number(values, "packets_client_largest"), largest);
}

fn each_packet_of_the_window_counts_once_and_no_other_does() {
    if !can_capture() {
        return;
    }
    let (mut host, witness, targets) = (Host::start(), Witness::default(), Targets::default());
    // Twice, with the same witness.
    for _ in 0..2 {
        let mut observer = prepared(&host, &witness, None);
        host.send(100, 50, 1);
        observer.begin(&targets);
        host.send(5000, 200, 1);
        host.send(3, 1000, 1);
        observer.end(&targets);
        host.send(100, 900, 1);
        let values = observer.values(&WINDOW);
        assert_seen(&values, 5003.0, 5000.0 * (200.0 + HEADERS) + 3.0 * (1000.0 + HEADERS), 1028.0);
        assert_eq!(number(&values, "packets_client_up_to_1000_share"), 5000.0 / 5003.0);
        assert_eq!(number(&values, "packets_client_up_to_100_share"), 0.0);
        assert!(values["packets_server_node_largest"].number().is_none(), "nobody looked there");
    }
}

fn a_super_packet_counts_as_the_datagrams_that_it_becomes() {
    if !can_capture() {
        return;
    }
    let (mut host, witness, targets) = (Host::start(), Witness::default(), Targets::default());
    let mut observer = prepared(&host, &witness, None);
    observer.begin(&targets);
    host.send(4000, 1200, 40);
    observer.end(&targets);
    assert_seen(&observer.values(&WINDOW), 4000.0, 4000.0 * (1200.0 + HEADERS), 1228.0);
}

fn at_a_shared_interface_only_packets_between_the_hosts_of_the_trial_count() {
    if !can_capture() {
        return;
    }
    let (mut host, witness, targets) = (Host::start(), Witness::default(), Targets::default());
    let mut seen = |other: Ipv4Addr| {
        let between = Between { these: [Ipv4Addr::LOCALHOST.into()].into(), those: [other.into()].into() };
        // Here the pod and its node have the same interface.
        let vantages = [Place::ServerPod, Place::ServerNode].map(|place| Vantage {
            place,
            is_encapsulated: place == Place::ServerNode,
            between: Some(between.clone()),
            ..host.vantage.clone()
        });
        let mut observer = create("packets").unwrap();
        observer.prepare(&Stage { vantages: &vantages, witness: &witness, captures: None, films: None });
        host.send(10, 100, 1);
        observer.begin(&targets);
        host.send(5000, 200, 1);
        observer.end(&targets);
        host.send(10, 100, 1);
        observer.values(&WINDOW)
    };
    let values = seen(Ipv4Addr::LOCALHOST);
    for way in ["sent", "received"] {
        assert_eq!(number(&values, &format!("packets_server_node_{way}_per_request")), 5000.0);
        let bytes = 5000.0 * (200.0 + HEADERS);
        assert_eq!(number(&values, &format!("packets_server_node_bytes_{way}_per_request")), bytes);
        assert!(values[&format!("packets_server_node_inner_bytes_{way}_per_request")].number().is_none());
    }
    assert_eq!(number(&values, "packets_server_node_largest"), 228.0);
    assert!(values["packets_client_largest"].number().is_none(), "nobody looked there");
    let values = seen(Ipv4Addr::new(127, 0, 0, 9));
    assert_eq!(values["packets_server_node_sent_per_request"], Value::missing(Missing::NoPacketsAtPod));
}

fn packets_that_found_no_room_make_the_values_void() {
    if !can_capture() {
        return;
    }
    let (mut host, witness, targets) = (Host::start(), Witness::default(), Targets::default());
    let mut observer = prepared(&host, &witness, None);
    observer.begin(&targets);
    let pid = witness_of_this();
    kill_process(pid, Signal::STOP).unwrap();
    // Several times the capacity of the ring.
    host.send(150_000, 10, 1);
    kill_process(pid, Signal::CONT).unwrap();
    observer.end(&targets);
    let values = observer.values(&WINDOW);
    let value = &values["packets_client_sent_per_request"];
    assert!(matches!(value, Value::NotMeasured(Missing::FramesLost { .. })), "{value:?}");
}

fn a_capture_has_every_packet_and_each_datagram_of_a_super_packet() {
    if !can_capture() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let captures = Captures { stem: folder.path().join("trial"), keys: Some(folder.path().join("keys")) };
    fs::write(folder.path().join("keys"), "CLIENT_RANDOM 1 2\n").unwrap();
    let (mut host, witness, targets) = (Host::start(), Witness::default(), Targets::default());
    let mut observer = prepared(&host, &witness, Some(&captures));
    // Before the window, in it, and after it.
    host.send(10, 100, 1);
    observer.begin(&targets);
    host.send(40, 1200, 40);
    observer.end(&targets);
    host.send(10, 100, 1);
    assert_seen(&observer.values(&WINDOW), 40.0, 40.0 * (1200.0 + HEADERS), 1228.0);
    let bytes = fs::read(folder.path().join("trial-client.pcapng")).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut kinds, mut sizes) = (0, Vec::new(), Vec::new());
    while at < bytes.len() {
        kinds.push(word(at));
        if word(at) == 6 {
            assert_eq!(word(at + 20), word(at + 24), "all of the frame is there");
            sizes.push(word(at + 24));
        }
        at += word(at + 4) as usize;
    }
    assert_eq!(kinds[..3], [0x0a0d_0d0a, 10, 1]);
    let of = |size| sizes.iter().filter(|other| **other == size).count();
    // Each packet was sent and received.
    assert_eq!((sizes.len(), of(142), of(1242)), (120, 40, 80));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the keys and the capture, no unfinished one");
}

fn the_end_of_a_witness_is_a_reason_and_the_next_trial_has_another() {
    if !can_capture() {
        return;
    }
    let (mut host, witness, targets) = (Host::start(), Witness::default(), Targets::default());
    let mut observer = prepared(&host, &witness, None);
    observer.begin(&targets);
    kill_process(witness_of_this(), Signal::KILL).unwrap();
    observer.end(&targets);
    let values = observer.values(&WINDOW);
    assert_eq!(values["packets_client_sent_per_request"], Value::missing(Missing::WitnessEnded));
    let mut observer = prepared(&host, &witness, None);
    observer.begin(&targets);
    host.send(7, 100, 1);
    observer.end(&targets);
    assert_seen(&observer.values(&WINDOW), 7.0, 7.0 * (100.0 + HEADERS), 128.0);
}

/// The only child of this process that is a witness.
fn witness_of_this() -> Pid {
    let own = std::process::id().to_string();
    let is_ours = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1).map(str::to_owned));
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        parent.as_ref() == Some(&own) && line.ends_with(b"\0witness\0")
    };
    let names = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let found: Vec<_> = names.filter(|name| is_ours(name)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    Pid::from_raw(found[0].parse().unwrap()).unwrap()
}
