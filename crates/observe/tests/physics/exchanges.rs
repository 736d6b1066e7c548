//! The kernel's count and times of requests on TCP connections between two threads.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use wirelab_observe::{Targets, Window, create};
use wirelab_testkit::physics::Test;
use wirelab_testkit::{Skip, skip, test};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![test!(each_request_with_a_response_is_counted_once_and_its_time_lies_within_the_clients)]
}

/// The server answers each byte after this time, so that no request is answered before it has left. The kernel measures
/// this time, and the test asserts it as the lower bound.
const DELAY: Duration = Duration::from_millis(2);

/// Starts a server on a thread; returns its port.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let (mut stream, mut byte) = (stream.unwrap(), [0]);
                stream.set_nodelay(true).unwrap();
                while stream.read_exact(&mut byte).is_ok() {
                    thread::sleep(DELAY);
                    // In two parts, so that a response has several arrivals.
                    if stream.write_all(&[1; 500]).and_then(|()| stream.write_all(&[2; 500])).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

fn exchange(stream: &mut TcpStream) -> Duration {
    let begun = Instant::now();
    stream.write_all(&[1]).unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    begun.elapsed()
}

fn each_request_with_a_response_is_counted_once_and_its_time_lies_within_the_clients() {
    let [port, other] = [serve(), serve()];
    let connect = |port| TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut kept, mut unrelated) = (connect(port), connect(other));
    exchange(&mut kept);
    let mut observer = create("exchanges").unwrap();
    let clients = Some(vec![std::process::id()]);
    let targets = Targets { clients, ports: vec![port], ..Targets::default() };
    observer.begin(&targets);
    let mut times: Vec<_> = (0..30).map(|_| exchange(&mut kept)).collect();
    // Each on a connection of its own, and some to another port.
    times.extend((0..12).map(|_| exchange(&mut connect(port))));
    (0..5).for_each(|_| {
        exchange(&mut unrelated);
    });
    // A request without a response does not count.
    kept.write_all(&[1]).unwrap();
    observer.end(&targets);
    let values = observer.values(&Window { ns: 1, requests: 42, bytes: 1 });
    let Some(seen) = observer.exchanges() else {
        let why = values["kernel_requests"].reason().unwrap_or_default();
        skip(Skip::KernelLacks { what: "tracepoints of sockets for eBPF".to_owned(), why });
        return;
    };
    assert_eq!((seen.durations.count(), values["kernel_requests"].number()), (42, Some(42.0)));
    let longest = times.iter().max().unwrap().as_nanos() as f64;
    for metric in ["kernel_response_median", "kernel_response_p90"] {
        let kernel = values[metric].number().unwrap();
        assert!((DELAY.as_nanos() as f64 * 0.97..longest * 1.04).contains(&kernel), "{metric}: {kernel} of {longest}");
    }
    assert!(values["kernel_response_p99"].reason().unwrap().contains("only 42 requests"));
    assert!(seen.watched_from_ns < seen.first_ns && seen.first_ns < seen.last_ns && seen.last_ns < seen.watched_to_ns);
}
