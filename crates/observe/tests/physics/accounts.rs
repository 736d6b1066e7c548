//! The observers, compared with known work. This program plays worker and test in turn.
//!
//! A worker waits for a line, works, prints its cost by its own account, and waits again. No test depends on a clock.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdout, Command, Stdio};

use wirelab_model::metric::{Side, Value, Values};
use wirelab_model::missing::Missing;
use wirelab_observe::{Observer, Targets, Window, create};
use wirelab_testkit::physics::Test;
use wirelab_testkit::{Skip, skip, test};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(cpu_time_is_what_the_process_itself_reports).retries(2),
        test!(cpu_time_of_threads_that_ended_is_counted).retries(2),
        test!(cpu_time_of_a_living_child_is_counted).retries(2),
        test!(cpu_time_before_and_after_the_window_is_not_counted).retries(2),
        test!(memory_grows_by_what_was_touched_and_older_peaks_are_forgotten).retries(2),
        test!(a_fault_is_counted_for_each_page_that_was_touched),
        test!(each_wait_is_a_voluntary_switch).retries(2),
        test!(datagrams_that_overflow_a_buffer_are_counted),
        test!(drops_in_the_networks_of_both_sides_are_added),
        test!(ended_processes_give_reasons_and_no_request_gives_no_value_per_request),
    ]
}

/// The unit of work: large enough that the cost of reading the clocks does not matter.
const BURN: u64 = 20_000_000;

const PAGE: usize = 4096;

/// Number of pages that a worker touches: more than the kernel's batching of its counters could hide.
const PAGES: usize = 16 * 1024;

const WAITS: usize = 500;

/// Number of datagrams that a worker sends.
const SENT: u64 = 2000;

// --- The worker ---

/// A worker of this kind.
pub fn work(kind: &str) {
    let mut lines = std::io::stdin().lines();
    let mut wait = || lines.next().is_some();
    let mut kept: Vec<Vec<u8>> = Vec::new();
    if kind == "memory" {
        // An earlier peak, before the window.
        drop(touched(4 * PAGES));
    }
    let mut child = (kind == "child").then(|| Worker::start("burn"));
    burn(1000);
    let private = if kind == "drops" { private_network() } else { Ok(()) };
    say(private.map_or_else(|error| error.raw_os_error().unwrap_or(libc::EINVAL).unsigned_abs().into(), |()| 0));
    while wait() {
        let before = own_cpu_ns();
        let mut others = 0;
        match kind {
            "burn" => burn(BURN),
            "threads" => {
                (0..3).for_each(|_| std::thread::spawn(|| burn(BURN / 3)).join().expect("a thread that burns"))
            }
            "child" => others = child.as_mut().map_or(0, Worker::work),
            "memory" => kept.push(touched(PAGES)),
            "waits" => (0..WAITS).for_each(|_| std::thread::sleep(std::time::Duration::from_micros(50))),
            "drops" => {
                say(overflow());
                continue;
            }
            other => panic!("no such work: {other}"),
        }
        say(own_cpu_ns() - before + others);
    }
}

fn say(number: u64) {
    println!("{number}");
    std::io::stdout().flush().expect("the test reads");
}

fn burn(rounds: u64) {
    let mut value = 1_u64;
    for round in 0..rounds {
        value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round));
    }
}

fn touched(pages: usize) -> Vec<u8> {
    let mut bytes = vec![0; pages * PAGE];
    for page in 0..pages {
        bytes[page * PAGE] = 1;
    }
    std::hint::black_box(bytes)
}

/// Gives this process a network namespace of its own, with a loopback interface that is up.
fn private_network() -> std::io::Result<()> {
    // SAFETY: the call takes no pointer, and this process has no other thread that would stay in the old namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: zero bytes are a valid `struct ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the request is valid for the call and names an interface and its flags, as this call expects.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// Sends far more than the default buffer holds, before anything is read. Returns the number of lost datagrams.
fn overflow() -> u64 {
    let (receiver, sender) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    for _ in 0..SENT {
        sender.send(&[0; 8000]).unwrap();
    }
    receiver.set_nonblocking(true).unwrap();
    let received = std::iter::from_fn(|| receiver.recv(&mut [0; 8000]).ok()).count() as u64;
    SENT - received
}

/// The CPU time of this process by its own account, getrusage(2).
fn own_cpu_ns() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for a write during the call, and zero bytes are a valid `struct rusage`.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    let nanos = |time: libc::timeval| time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000;
    nanos(usage.ru_utime) + nanos(usage.ru_stime)
}

// --- The test ---

struct Worker {
    child: Child,
    answers: BufReader<ChildStdout>,
    /// The number that it printed when it began to wait.
    ready: u64,
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    fn start(kind: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["play-account", kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut worker = Self { child, answers, ready: 0 };
        worker.ready = worker.answer();
        worker
    }

    fn answer(&mut self) -> u64 {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }

    /// Lets it work once. Returns its cost (or losses) by its own account.
    fn work(&mut self) -> u64 {
        self.child.stdin.as_mut().unwrap().write_all(b"work\n").unwrap();
        self.answer()
    }

    fn targets(&self) -> Targets {
        Targets { servers: Some(vec![self.child.id()]), ..Targets::default() }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A window in which values per request and per byte equal totals.
const ONE: Window = Window { ns: 1, requests: 1, bytes: 1 };

fn observed(name: &str, targets: &Targets, work: impl FnOnce()) -> Values {
    let mut observer: Box<dyn Observer> = create(name).unwrap();
    observer.begin(targets);
    work();
    observer.end(targets);
    observer.values(&ONE)
}

#[track_caller]
fn number(values: &Values, name: &str) -> f64 {
    values[name].number().unwrap_or_else(|| panic!("{name}: {:?}", values[name]))
}

/// Expects equality within one per cent plus the cost of a line of input and output.
#[track_caller]
fn assert_same_time(observed: f64, reported: u64) {
    let reported = reported as f64;
    assert!(
        (observed - reported).abs() <= 0.01 * reported + 500_000.0,
        "observed {observed} ns, reported {reported} ns"
    );
}

fn cpu_time_of(kind: &str) -> (f64, u64) {
    let mut worker = Worker::start(kind);
    let mut reported = 0;
    let targets = worker.targets();
    let values = observed("cpu", &targets, || reported = worker.work());
    assert_eq!(values["cpu_server_per_request"], values["cpu_server_per_byte"]);
    assert_eq!(values["cpu_client_share"], Value::missing(Missing::ProcessHidden { side: Side::Client }));
    (number(&values, "cpu_server_per_request"), reported)
}

fn cpu_time_is_what_the_process_itself_reports() {
    let (observed, reported) = cpu_time_of("burn");
    assert_same_time(observed, reported);
}

fn cpu_time_of_threads_that_ended_is_counted() {
    let (observed, reported) = cpu_time_of("threads");
    assert_same_time(observed, reported);
}

fn cpu_time_of_a_living_child_is_counted() {
    let (observed, reported) = cpu_time_of("child");
    assert_same_time(observed, reported);
}

fn cpu_time_before_and_after_the_window_is_not_counted() {
    let mut worker = Worker::start("burn");
    let targets = worker.targets();
    let before = worker.work();
    let values = observed("cpu", &targets, || ());
    let idle = number(&values, "cpu_server_per_request");
    assert!(idle * 20.0 < before as f64, "{idle} ns in an idle window, {before} ns of work before it");
}

fn memory_grows_by_what_was_touched_and_older_peaks_are_forgotten() {
    let mut worker = Worker::start("memory");
    let targets = worker.targets();
    let idle = number(&observed("memory", &targets, || ()), "memory_server_peak");
    let busy = observed("memory", &targets, || _ = worker.work());
    let (peak, life) = (number(&busy, "memory_server_peak"), number(&busy, "memory_server_life_peak"));
    let touched = (PAGES * PAGE) as f64;
    // The kernel counts pages per processor in batches, so its sum can be wrong by some hundred pages.
    let grown = peak - idle;
    assert!((grown - touched).abs() < 0.05 * touched, "grown by {grown}, touched {touched}");
    assert!(life >= peak, "{life} {peak}");
    assert!(idle < 4.0 * touched, "the older peak of {} bytes is not in {idle}", 4.0 * touched);
}

fn a_fault_is_counted_for_each_page_that_was_touched() {
    let mut worker = Worker::start("memory");
    let targets = worker.targets();
    let faults = number(&observed("faults", &targets, || _ = worker.work()), "faults_server_per_request");
    // With huge pages one fault covers 512 pages, so only the order is certain.
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let fewest = if huge.is_ok_and(|setting| setting.contains("[always]")) { PAGES / 512 } else { PAGES };
    assert!(faults >= fewest as f64 && faults < 1.1 * PAGES as f64 + 200.0, "{faults} faults, {PAGES} pages");
}

fn each_wait_is_a_voluntary_switch() {
    let mut worker = Worker::start("waits");
    let targets = worker.targets();
    let values = observed("switches", &targets, || _ = worker.work());
    let all = number(&values, "switches_server_per_request");
    let voluntary = all - number(&values, "switches_server_involuntary_per_request");
    assert!((WAITS as f64..WAITS as f64 + 50.0).contains(&voluntary), "{voluntary} for {WAITS} waits");
}

fn datagrams_that_overflow_a_buffer_are_counted() {
    let mut lost = 0;
    let own = Targets { servers: Some(vec![std::process::id()]), ..Targets::default() };
    let values = observed("drops", &own, || lost = overflow());
    let dropped = number(&values, "udp_receive_buffer_errors");
    // Other programs on this machine may drop datagrams too.
    assert!(lost > 0 && dropped >= lost as f64, "{lost} lost, {dropped} dropped");
    assert!(number(&values, "tcp_retransmitted") >= 0.0);
}

fn drops_in_the_networks_of_both_sides_are_added() {
    let (mut client, mut server) = (Worker::start("drops"), Worker::start("drops"));
    if client.ready != 0 {
        let error = std::io::Error::from_raw_os_error(i32::try_from(client.ready).unwrap());
        return skip(Skip::NoNetworkNamespaces { why: error.to_string() });
    }
    let targets = Targets {
        clients: Some(vec![client.child.id()]),
        servers: Some(vec![server.child.id()]),
        ..Targets::default()
    };
    let mut lost = 0;
    let values = observed("drops", &targets, || lost = client.work() + server.work() + server.work());
    // No other process uses these networks.
    assert!(lost > 0);
    assert_eq!(number(&values, "udp_receive_buffer_errors"), lost as f64);
}

fn ended_processes_give_reasons_and_no_request_gives_no_value_per_request() {
    let mut reasons = HashMap::new();
    for name in ["cpu", "memory", "switches", "faults"] {
        let worker = Worker::start("burn");
        let targets = worker.targets();
        let mut observer = create(name).unwrap();
        observer.begin(&targets);
        drop(worker);
        observer.end(&targets);
        reasons.extend(observer.values(&ONE).into_iter().filter(|(name, _)| name.contains("server")));
    }
    assert_eq!(reasons.len(), 4 + 2 + 3 + 2);
    for (name, value) in reasons {
        assert!(matches!(value, Value::NotMeasured(Missing::ProcessEnded { .. })), "{name}: {value:?}");
    }
    let worker = Worker::start("burn");
    let mut observer = create("cpu").unwrap();
    observer.begin(&worker.targets());
    observer.end(&worker.targets());
    let values = observer.values(&Window { ns: 1_000_000_000, requests: 0, bytes: 0 });
    assert_eq!(values["cpu_server_per_request"], Value::missing(Missing::NoSuccess));
    assert!(values["cpu_server_share"].number().is_some());
}
