//! The counters of system calls, compared with `strace -f -c`. This program plays worker and test in turn.
//!
//! strace counts whole lives and stops its processes, so it gets its own workers: one works twice and one works three
//! times. The difference of their counts is the third piece of work, which is what the observer sees.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Stdio};

use wirelab_model::metric::{Side, Value, Values};
use wirelab_model::missing::Missing;
use wirelab_observe::syscalls::{ByName, CALLS, Means, Total};
use wirelab_observe::{Observer, Targets, Window, create};
use wirelab_testkit::physics::Test;
use wirelab_testkit::{Skip, eventually, skip, test};

/// The tests of this file, by both means of counting.
pub fn tests() -> Vec<Test> {
    type Case = (&'static str, fn(Means));
    const COUNTED: [Case; 6] = [
        ("counts_are_those_of_strace", counts_are_those_of_strace),
        ("a_window_without_calls_has_none", a_window_without_calls_has_none),
        ("calls_of_a_thread_that_ended_in_the_window_count", calls_of_a_thread_that_ended_in_the_window_count),
        ("both_sides_have_their_own", both_sides_have_their_own),
        ("a_process_that_ended_before_is_a_reason_and_not_zero", a_process_that_ended_before_is_a_reason_and_not_zero),
        ("the_limit_on_open_files_is_as_before", the_limit_on_open_files_is_as_before),
    ];
    let mut tests = Vec::new();
    for (name, run) in COUNTED {
        for means in [Means::Best, Means::Counters] {
            let path = format!("{}::{name}::{means:?}", module_path!());
            let test = Test::new(&path, move || {
                if can_count(means) {
                    run(means);
                }
            });
            // The C library reads /proc/self/maps in pieces, whose number can differ by one with the random addresses.
            tests.push(test.retries(2));
        }
    }
    tests.push(test!(strace_counts_the_same_work));
    tests.push(test!(strace_that_may_not_trace_is_a_reason));
    tests
}

/// The child of a test: it writes and ends.
pub fn child() {
    scribble(30);
    std::thread::spawn(|| scribble(11)).join().expect("a thread that writes");
}

// --- The worker ---

/// Number of threads and processes that end in each piece of work. Their last call never returns, so strace does not
/// count it.
const ENDS: u64 = 3;

/// The worker.
pub fn work() {
    let mut helper = Helper::start(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(socket.local_addr().expect("its address")).expect("itself as peer");
        move || {
            for _ in 0..20 {
                socket.send(&[0; 100]).expect("room in the buffer");
                socket.recv(&mut [0; 100]).expect("what was sent");
            }
        }
    });
    let mut ends = Some(Helper::start(|| || scribble(25)));
    say();
    for line in std::io::stdin().lines() {
        match line.expect("a line of text").as_str() {
            "work" => {
                helper.work();
                std::thread::spawn(|| scribble(50)).join().expect("a thread that writes");
                let own = std::env::current_exe().expect("this program");
                let ended = Command::new(own).arg("play-child").stdin(Stdio::null()).status().expect("a child");
                assert!(ended.success());
            }
            "end" => {
                let mut ends = ends.take().expect("it ends once");
                ends.work();
                ends.end();
            }
            other => panic!("no such work: {other}"),
        }
        say();
    }
    // At once, because threads whose pipes close would race with the end of the process.
    std::process::exit(0);
}

/// A thread that outlives a piece of work. It works when it reads a byte, and answers with one.
struct Helper {
    thread: std::thread::JoinHandle<()>,
    ask: std::io::PipeWriter,
    answer: std::io::PipeReader,
}

impl Helper {
    fn start<W: FnMut()>(make: impl FnOnce() -> W + Send + 'static) -> Self {
        let (mut asked, ask) = std::io::pipe().expect("a pipe");
        let (answer, mut answered) = std::io::pipe().expect("a pipe");
        let thread = std::thread::spawn(move || {
            let mut work = make();
            while asked.read_exact(&mut [0]).is_ok() {
                work();
                answered.write_all(&[0]).expect("a reader");
            }
        });
        Self { thread, ask, answer }
    }

    fn work(&mut self) {
        self.ask.write_all(&[0]).expect("the thread reads");
        self.answer.read_exact(&mut [0]).expect("the thread answers");
    }

    fn end(self) {
        drop(self.ask);
        self.thread.join().expect("a thread that ends");
    }
}

fn scribble(times: usize) {
    let mut nowhere = File::options().write(true).open("/dev/null").expect("/dev/null");
    for _ in 0..times {
        nowhere.write_all(b"x").expect("a place for everything");
    }
}

fn say() {
    println!("done");
    std::io::stdout().flush().expect("the test reads");
}

// --- The test ---

struct Worker {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    fn start(strace: Option<&str>) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut command = match strace {
            Some(output) => {
                let mut command = Command::new("strace");
                command.args(["-f", "-c", "-o", output]).arg(own);
                command
            }
            None => Command::new(own),
        };
        // With heaps of their own, threads would shrink them at varying points, with a varying number of calls.
        command.env("MALLOC_ARENA_MAX", "1");
        let spawned = command.arg("play-calls").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.expect("the worker starts; this test needs strace (apt-get install strace)");
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut worker = Self { child, answers };
        worker.answer();
        worker
    }

    fn answer(&mut self) {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
    }

    fn work(&mut self, kind: &str) {
        self.child.stdin.as_mut().unwrap().write_all(format!("{kind}\n").as_bytes()).unwrap();
        self.answer();
    }

    fn targets(&self) -> Targets {
        Targets { servers: Some(vec![self.child.id()]), ..Targets::default() }
    }

    /// Waits until every thread waits for input, because an answer can be read before its sender waits again.
    fn rest(&self) {
        let folder = format!("/proc/{}/task", self.child.id());
        let waits = |thread: fs::DirEntry| {
            let call = fs::read_to_string(thread.path().join("syscall")).unwrap_or_default();
            call.split_ascii_whitespace().next() == Some(&libc::SYS_read.to_string())
        };
        let is_at_rest = || fs::read_dir(&folder).unwrap().flatten().all(waits);
        eventually("the rest of the worker", is_at_rest);
    }

    /// The totals of both observers for a piece of work.
    fn observed(&mut self, means: Means, kind: Option<&str>) -> Values {
        let mut observers: [Box<dyn Observer>; 2] = [Box::new(Total::by(means)), Box::new(ByName::by(means))];
        self.rest();
        observers.iter_mut().for_each(|observer| observer.begin(&self.targets()));
        if let Some(kind) = kind {
            self.work(kind);
            self.rest();
        }
        observers.iter_mut().rev().for_each(|observer| observer.end(&self.targets()));
        let window = Window { ns: 1, requests: 1, bytes: 1 };
        observers.iter_mut().flat_map(|observer| observer.values(&window)).collect()
    }

    fn finish(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn count(values: &Values, name: &str) -> u64 {
    let value = &values[&format!("syscalls_server_{name}per_request")];
    value.number().unwrap_or_else(|| panic!("{name}: {value:?}")) as u64
}

/// strace's counts by name for a process with this number of pieces of work.
fn strace(pieces: usize) -> BTreeMap<String, u64> {
    let path = std::env::temp_dir().join(format!("wirelab-strace-{}-{pieces}", std::process::id()));
    let mut worker = Worker::start(path.to_str());
    (0..pieces).for_each(|_| worker.work("work"));
    worker.finish();
    let table = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    // Columns: % time, seconds, usecs/call, calls, errors or nothing, name.
    let rows = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        Some(((*fields.last()?).to_owned(), fields.get(3)?.parse().ok()?))
    });
    rows.filter(|(name, _)| name != "total").collect()
}

/// Whether the kernel lets this user count by these means; if not, the test is skipped.
fn can_count(means: Means) -> bool {
    let values = Worker::start(None).observed(means, None);
    let value = &values["syscalls_server_per_request"];
    if value.number().is_none() {
        skip(Skip::KernelLacks { what: format!("counting system calls ({means:?})"), why: format!("{value:?}") });
    }
    value.number().is_some()
}

fn counts_are_those_of_strace(means: Means) {
    let mut worker = Worker::start(None);
    worker.work("work");
    worker.work("work");
    let values = worker.observed(means, Some("work"));
    let (twice, thrice) = (strace(2), strace(3));
    let more = |name: &str| {
        let of = |life: &BTreeMap<String, u64>| life.get(name).copied().unwrap_or(0);
        of(&thrice) - of(&twice)
    };

    // Waiting for the end of a thread calls futex only if the thread has not ended yet, so the number varies.
    let known: Vec<_> = CALLS.iter().map(|(name, _)| *name).filter(|name| *name != "futex").collect();
    for name in &known {
        assert_eq!(count(&values, &format!("{name}_")), more(name), "{name}");
    }
    assert_eq!((count(&values, "sendto_"), count(&values, "recvfrom_")), (20, 20));
    assert!(count(&values, "write_") >= 30 + 11 + 50);

    let others = thrice.keys().filter(|name| !known.contains(&name.as_str()) && *name != "futex");
    assert_eq!(count(&values, "other_"), others.map(|name| more(name)).sum::<u64>() + ENDS);
    let named: u64 = CALLS.iter().map(|(name, _)| count(&values, &format!("{name}_"))).sum();
    assert_eq!(count(&values, ""), named + count(&values, "other_"));
}

fn a_window_without_calls_has_none(means: Means) {
    let mut worker = Worker::start(None);
    let values = worker.observed(means, None);
    let numbers: Vec<_> = values.iter().filter(|(name, _)| name.contains("server")).map(|(_, v)| v.number()).collect();
    assert!(numbers.len() == 1 + CALLS.len() + 1 && numbers.contains(&Some(0.0)), "{numbers:?}");
    assert!(numbers.iter().flatten().all(|number| *number == 0.0), "{numbers:?}");
}

fn calls_of_a_thread_that_ended_in_the_window_count(means: Means) {
    let mut worker = Worker::start(None);
    let values = worker.observed(means, Some("end"));
    // 25 empty lines, a byte to it and one from it, and the answer to the test.
    assert_eq!(count(&values, "write_"), 25 + 1 + 1 + 1);
    // Its byte and the end of its pipe; in the main thread, its answer and the next line.
    assert_eq!(count(&values, "read_"), 1 + 1 + 1);
}

fn both_sides_have_their_own(means: Means) {
    let (mut busy, idle) = (Worker::start(None), Worker::start(None));
    busy.work("work");
    let (servers, clients) = (Some(vec![busy.child.id()]), Some(vec![idle.child.id()]));
    let targets = Targets { servers, clients, ..Targets::default() };
    let mut observer = ByName::by(means);
    busy.rest();
    idle.rest();
    observer.begin(&targets);
    busy.work("work");
    busy.rest();
    observer.end(&targets);
    let values = observer.values(&Window { ns: 1, requests: 1, bytes: 1 });
    assert_eq!(count(&values, "sendto_"), 20);
    assert_eq!(values["syscalls_client_sendto_per_request"].number(), Some(0.0));
    assert_eq!(values["syscalls_client_other_per_request"].number(), Some(0.0));
}

fn a_process_that_ended_before_is_a_reason_and_not_zero(means: Means) {
    let mut child = Command::new(std::env::current_exe().unwrap()).arg("play-child").spawn().unwrap();
    child.wait().unwrap();
    let targets = Targets { servers: Some(vec![child.id()]), ..Targets::default() };
    let mut observer = ByName::by(means);
    observer.begin(&targets);
    observer.end(&targets);
    for (name, value) in observer.values(&Window { ns: 1, requests: 1, bytes: 1 }) {
        let hidden = Missing::ProcessHidden { side: Side::Client };
        let ended = Missing::ProcessEnded { pid: child.id() };
        assert_eq!(value, Value::missing(if name.contains("client") { hidden } else { ended }), "{name}");
    }
}

fn the_limit_on_open_files_is_as_before(means: Means) {
    let limit = || {
        let limits = fs::read_to_string("/proc/self/limits").unwrap();
        limits.lines().find(|line| line.starts_with("Max open files")).unwrap().to_owned()
    };
    let before = limit();
    let worker = Worker::start(None);
    let mut observer = Total::by(means);
    observer.begin(&worker.targets());
    observer.end(&worker.targets());
    assert_eq!(limit(), before);
}

fn strace_counts_the_same_work() {
    let mut worker = Worker::start(None);
    worker.work("work");
    let mut observer = create("strace").unwrap();
    worker.rest();
    observer.begin(&worker.targets());
    worker.rest();
    worker.work("work");
    worker.rest();
    observer.end(&worker.targets());
    let values = observer.values(&Window { ns: 1, requests: 1, bytes: 1 });
    let count = |name: &str| {
        let value = &values[&format!("strace_server_{name}per_request")];
        value.number().unwrap_or_else(|| panic!("{name}: {value:?}")) as u64
    };
    // Calls in which no thread waited when strace attached have the same count by every other means.
    let kernel = worker.observed(Means::Best, Some("work"));
    for name in ["sendto_", "recvfrom_", "write_", "openat_", "close_", "mmap_"] {
        assert_eq!(count(name), self::count(&kernel, name), "{name}");
    }
    assert_eq!((count("sendto_"), count("recvfrom_")), (20, 20));
    let named: u64 = CALLS.iter().map(|(name, _)| count(&format!("{name}_"))).sum();
    assert_eq!(count(""), named + count("other_"));
    assert_eq!(values["strace_client_per_request"], Value::missing(Missing::ProcessHidden { side: Side::Client }));
}

fn strace_that_may_not_trace_is_a_reason() {
    // Only one process may trace another at a time.
    let worker = Worker::start(None);
    let mut first = create("strace").unwrap();
    first.begin(&worker.targets());
    let mut second = create("strace").unwrap();
    second.begin(&worker.targets());
    second.end(&worker.targets());
    let refusal = &second.values(&Window { ns: 1, requests: 1, bytes: 1 })["strace_server_per_request"];
    assert!(matches!(refusal, Value::NotMeasured(Missing::StraceEnded { .. })), "{refusal:?}");
    first.end(&worker.targets());
    let values = first.values(&Window { ns: 1, requests: 1, bytes: 1 });
    assert!(values["strace_server_per_request"].number().is_some(), "{values:?}");
}
