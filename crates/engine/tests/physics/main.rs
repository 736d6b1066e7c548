//! The load engine against servers of its own: no request is lost, sent twice, or gets the response of another.

mod http2;
mod raw;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::sample::Sample;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::http1::Http1;
use wirelab_engine::load::Load;
use wirelab_engine::machine::Machine;
use wirelab_engine::record::Results;
use wirelab_engine::schedule::Share;
use wirelab_engine::stream::StreamDialer;
use wirelab_testkit::test;

fn main() -> ExitCode {
    wirelab_testkit::physics::main([
        test!(every_response_of_twenty_thousand_belongs_to_its_request).side_by_side(),
        // Some minutes; only a change of the engine can break it.
        test!(every_response_of_a_million_belongs_to_its_request).quiet(),
        test!(a_connection_that_the_server_closes_is_replaced_and_no_request_fails).side_by_side(),
        test!(a_silent_server_costs_each_request_its_deadline_and_a_late_response_counts_for_none).side_by_side(),
        test!(new_connections_carry_one_request_each_and_are_numbered_from_zero).side_by_side(),
        test!(nothing_that_listens_gives_one_refusal_per_request).side_by_side(),
        test!(an_open_loop_sends_every_arrival_though_a_slow_server_makes_them_wait).side_by_side(),
    ])
}

/// Bodies have sizes below this.
const SIZES: u64 = 1000;

/// A server of clear text that calls `serve` for each connection, with its number.
fn server(serve: impl Fn(u64, TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (stream, serve) = (stream.unwrap(), Arc::clone(&serve));
            std::thread::spawn(move || serve(number as u64, stream));
        }
    });
    address
}

/// Reads requests until the client closes, and calls `answer` for each with its number.
fn each_request(mut stream: &TcpStream, mut answer: impl FnMut(u64) -> std::io::Result<()>) {
    let (mut buffer, mut count) = (Vec::new(), 0);
    let mut piece = [0; 4096];
    while let Ok(size @ 1..) = stream.read(&mut piece) {
        buffer.extend_from_slice(&piece[..size]);
        while let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            buffer.drain(..end + 4);
            if answer(count).is_err() {
                return;
            }
            count += 1;
        }
    }
}

fn response(size: u64) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n").into_bytes();
    bytes.resize(bytes.len() + size as usize, b'x');
    bytes
}

fn spec(server: SocketAddr, change: impl FnOnce(&mut serde_json::Value)) -> ClientSpec {
    let mut spec = serde_json::json!({
        "contract": 1, "protocol": "h1c", "address": server.ip(), "port": server.port(), "server_name": "server.test",
        "request": {"method": "GET", "path": "/", "body_size": 0},
        "connections": {"policy": "persistent", "connections": 16, "streams": 1},
        "schedule": {"loop": "closed", "workers": 16},
        "extent": {"requests": 20_000},
        "timeouts": {"connect_ns": 5_000_000_000_u64, "request_ns": 5_000_000_000_u64},
        "seed": 1, "recording": "samples", "results": "/dev/null",
    });
    change(&mut spec);
    serde_json::from_value(spec).unwrap()
}

/// The records of a load of one thread.
fn load<M: Machine>(spec: ClientSpec) -> Vec<Sample> {
    let share = Share { index: 0, of: 1 };
    let mut load = Load::<StreamDialer<M>>::new(Arc::new(spec), share, Arc::default(), Arc::default()).unwrap();
    load.open(&mut || false).unwrap();
    let zero = Instant::now();
    load.measure(zero, &mut || false).unwrap();
    match load.finish().recorder.finish(zero) {
        Results::Samples(samples) => samples,
        Results::Histograms(_) => panic!("not samples"),
    }
}

/// Sends `count` requests to a server whose n-th response on a connection has n bytes.
fn every_response_belongs_to_its_request(count: u64) {
    let answered = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&answered);
    let address = server(move |_, mut stream| {
        let _ = stream.set_nodelay(true);
        let reader = stream.try_clone().unwrap();
        each_request(&reader, |number| {
            counter.fetch_add(1, Ordering::Relaxed);
            stream.write_all(&response(number % SIZES))
        });
    });
    let samples = load::<Http1>(spec(address, |spec| spec["extent"] = serde_json::json!({"requests": count})));
    assert_eq!(samples.len() as u64, count);
    assert_eq!(answered.load(Ordering::Relaxed), count);
    let mut connections: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in &samples {
        sample.check().unwrap();
        assert_eq!((sample.error, sample.status), (None, Some(200)));
        connections.entry(sample.connection).or_default().push(sample);
    }
    assert_eq!(connections.len(), 16);
    for samples in connections.values_mut() {
        samples.sort_by_key(|sample| sample.start_ns);
        for (number, sample) in samples.iter().enumerate() {
            assert_eq!(sample.bytes_in, number as u64 % SIZES);
        }
        assert!(samples.windows(2).all(|pair| pair[0].last_byte_ns <= pair[1].start_ns), "one request at a time");
    }
}

/// Every protocol over TCP with this number of requests.
fn every_response_by_every_protocol_belongs_to_its_request(count: u64) {
    every_response_belongs_to_its_request(count);
    http2::every_response_belongs_to_its_request(count);
    http2::every_reply_belongs_to_its_call(count);
    raw::every_request_is_answered_once(count);
}

fn every_response_of_twenty_thousand_belongs_to_its_request() {
    every_response_by_every_protocol_belongs_to_its_request(20_000);
}

fn every_response_of_a_million_belongs_to_its_request() {
    every_response_by_every_protocol_belongs_to_its_request(1_000_000);
}

fn a_connection_that_the_server_closes_is_replaced_and_no_request_fails() {
    let opened = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&opened);
    let address = server(move |_, mut stream| {
        counter.fetch_add(1, Ordering::Relaxed);
        let reader = stream.try_clone().unwrap();
        each_request(&reader, |number| match number {
            0..9 => stream.write_all(&response(1)),
            _ => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\nx"),
        });
    });
    let samples = load::<Http1>(spec(address, |spec| spec["extent"] = serde_json::json!({"requests": 2_000})));
    assert_eq!(samples.len(), 2_000);
    assert!(samples.iter().all(|sample| sample.error.is_none() && sample.bytes_in == 1));
    let replaced = samples.iter().filter(|sample| sample.connected_ns.is_some()).count() as u64;
    assert!(replaced >= 2_000 / 10 - 16, "{replaced}");
    assert_eq!(opened.load(Ordering::Relaxed), 16 + replaced);
}

fn a_silent_server_costs_each_request_its_deadline_and_a_late_response_counts_for_none() {
    let address = server(|number, mut stream| {
        let reader = stream.try_clone().unwrap();
        each_request(&reader, |_| {
            // The first connections answer too late, after the client has closed them; all others at once.
            if number < 16 {
                let _ = (&reader).read(&mut [0]);
            }
            stream.write_all(&response(if number < 16 { 7 } else { 2 }))
        });
    });
    let samples = load::<Http1>(spec(address, |spec| {
        spec["timeouts"]["request_ns"] = serde_json::json!(100_000_000);
        spec["extent"] = serde_json::json!({"requests": 500});
    }));
    let failed: Vec<_> = samples.iter().filter(|sample| sample.error.is_some()).collect();
    assert!(failed.len() >= 16, "{}", failed.len());
    assert!(failed.iter().all(|sample| sample.error == Some(ErrorKind::Timeout) && sample.service_ns() >= 100_000_000));
    assert!(samples.iter().filter(|sample| sample.error.is_none()).all(|sample| sample.bytes_in == 2));
    assert_eq!(samples.len(), 500);
}

fn new_connections_carry_one_request_each_and_are_numbered_from_zero() {
    let opened = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&opened);
    let address = server(move |_, mut stream| {
        counter.fetch_add(1, Ordering::Relaxed);
        let reader = stream.try_clone().unwrap();
        each_request(&reader, |number| stream.write_all(&response(number)));
    });
    let samples = load::<Http1>(spec(address, |spec| {
        spec["connections"] = serde_json::json!({"policy": "per_request"});
        spec["extent"] = serde_json::json!({"requests": 1_000});
    }));
    assert_eq!((samples.len() as u64, opened.load(Ordering::Relaxed)), (1_000, 1_000));
    assert!(samples.iter().all(|sample| sample.error.is_none() && sample.bytes_in == 0));
    assert!(samples.iter().all(|sample| sample.connected_ns.is_some()));
    let mut numbers: Vec<_> = samples.iter().map(|sample| sample.connection).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..1_000).collect::<Vec<_>>());
}

fn nothing_that_listens_gives_one_refusal_per_request() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let samples = load::<Http1>(spec(address, |spec| {
        spec["connections"] = serde_json::json!({"policy": "per_request"});
        spec["extent"] = serde_json::json!({"requests": 200});
    }));
    assert_eq!(samples.len(), 200);
    assert!(samples.iter().all(|sample| sample.error == Some(ErrorKind::Refused)));
}

fn an_open_loop_sends_every_arrival_though_a_slow_server_makes_them_wait() {
    let address = server(|_, mut stream| {
        let reader = stream.try_clone().unwrap();
        each_request(&reader, |_| {
            // The time of the server is the subject of the test, which asserts only a lower bound.
            std::thread::sleep(std::time::Duration::from_millis(2));
            stream.write_all(&response(1))
        });
    });
    let samples = load::<Http1>(spec(address, |spec| {
        spec["connections"] = serde_json::json!({"policy": "persistent", "connections": 1, "streams": 1});
        spec["schedule"] = serde_json::json!({"loop": "open", "rate_per_s": 2000.0, "arrivals": "uniform"});
        spec["extent"] = serde_json::json!({"duration_ns": 100_000_000});
    }));
    // 200 arrivals, half a millisecond apart, each served in two: those at the end wait the longest.
    assert_eq!(samples.len(), 200);
    for (number, sample) in samples.iter().enumerate() {
        assert_eq!((sample.intended_ns, sample.error), (number as u64 * 500_000, None));
    }
    assert!(samples[199].lag_ns() >= 200_000_000, "{:?}", samples[199]);
}
