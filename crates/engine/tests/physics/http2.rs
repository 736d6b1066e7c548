//! HTTP/2 and gRPC: many streams of several connections, whose responses come in another order.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use wirelab_contract::heron;
use wirelab_contract::protocol::Protocol;
use wirelab_engine::http2::Http2;

use crate::{load, server, spec};

/// Requests of the mix. The response to `/N` has N bytes.
const REQUESTS: u64 = 97;
const STREAMS: u64 = 64;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Answers what arrived with one read, the last request first. `answer` gets a stream and its block of fields.
fn talk(mut stream: TcpStream, mut answer: impl FnMut(&mut Vec<u8>, u32, &[u8])) {
    let _ = stream.set_nodelay(true);
    let (mut buffer, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    let mut out = Vec::new();
    frame(&mut out, SETTINGS, 0, 0, &[]);
    stream.read_exact(&mut [0; 24]).unwrap();
    while let Ok(size @ 1..) = stream.read(&mut piece) {
        buffer.extend_from_slice(&piece[..size]);
        let mut requests = Vec::new();
        let mut rest = &buffer[..];
        while let Some(head) = rest.get(..9) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some(payload) = rest.get(9..9 + length) else { break };
            match (head[3], head[4]) {
                (SETTINGS, 0) => frame(&mut out, SETTINGS, 1, 0, &[]),
                (HEADERS, _) => requests.push((u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload)),
                _ => {}
            }
            rest = &rest[9 + length..];
        }
        requests.iter().rev().for_each(|(id, block)| answer(&mut out, *id, block));
        let left = rest.len();
        buffer.drain(..buffer.len() - left);
        if stream.write_all(&out).is_err() {
            return;
        }
        out.clear();
    }
}

/// The number in the path of a block, which is a literal field with an indexed name.
fn number(block: &[u8]) -> u64 {
    let at = block.windows(3).position(|part| part[0] == 4 && part[2] == b'/').expect("a path");
    let path = &block[at + 2..at + 2 + usize::from(block[at + 1])];
    std::str::from_utf8(&path[1..]).unwrap().parse().unwrap()
}

fn over(address: SocketAddr, protocol: Protocol, count: u64) -> wirelab_contract::spec::ClientSpec {
    spec(address, |spec| {
        spec["protocol"] = json!(protocol);
        spec["connections"] = json!({"policy": "persistent", "connections": 4, "streams": STREAMS / 4});
        spec["schedule"] = json!({"loop": "closed", "workers": STREAMS});
        spec["extent"] = json!({"requests": count});
    })
}

/// Sends `count` requests of a mix.
pub fn every_response_belongs_to_its_request(count: u64) {
    let answered = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&answered);
    let address = server(move |_, stream| {
        talk(stream, |out, id, block| {
            counter.fetch_add(1, Ordering::Relaxed);
            frame(out, HEADERS, 4, id, &[0x88]);
            frame(out, DATA, 1, id, &vec![b'x'; number(block) as usize]);
        });
    });
    let mut spec = over(address, Protocol::H2c, count);
    let requests = (0..REQUESTS).map(|number| {
        let variant = json!({"method": "GET", "path": format!("/{number}"), "body_size": 0});
        json!({"name": number.to_string(), "weight": 1, "variants": [variant]})
    });
    spec.mix = serde_json::from_value(requests.collect()).unwrap();
    let samples = load::<Http2>(spec);
    assert_eq!((samples.len() as u64, answered.load(Ordering::Relaxed)), (count, count));
    for sample in &samples {
        sample.check().unwrap();
        assert_eq!((sample.error, sample.status), (None, Some(200)));
        assert_eq!(sample.request.map(u64::from), Some(sample.bytes_in));
    }
}

/// Makes `count` calls. The server refuses each seventh of a connection.
pub fn every_reply_belongs_to_its_call(count: u64) {
    let (answered, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counters = (Arc::clone(&answered), Arc::clone(&refused));
    let root = heron::answer(Protocol::Grpcc, heron::NUMBER);
    let message = [&[0, 0, 0, 0, root.len() as u8][..], &root].concat();
    let address = server(move |_, stream| {
        let mut calls = 0;
        talk(stream, |out, id, _| {
            calls += 1;
            let is_refused = calls % 7 == 0;
            if is_refused { &counters.1 } else { &counters.0 }.fetch_add(1, Ordering::Relaxed);
            frame(out, HEADERS, 4, id, &[0x88]);
            if !is_refused {
                frame(out, DATA, 0, id, &message);
            }
            let status = if is_refused { b'8' } else { b'0' };
            frame(out, HEADERS, 5, id, &[&[0, 11][..], b"grpc-status", &[1, status]].concat());
        });
    });
    let mut spec = over(address, Protocol::Grpcc, count);
    spec.request.path = heron::path(heron::NUMBER);
    spec.request.body_size = 9;
    let samples = load::<Http2>(spec);
    let succeeded = samples.iter().filter(|sample| sample.error.is_none()).count() as u64;
    assert!(samples.iter().all(|sample| sample.error.is_some() || (sample.bytes_in, sample.status) == (9, None)));
    assert_eq!((succeeded, count - succeeded), (answered.load(Ordering::Relaxed), refused.load(Ordering::Relaxed)));
    assert_eq!(samples.len() as u64, count);
}
