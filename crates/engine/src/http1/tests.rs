//! Responses in any pieces give the same events, and what no request asked for is never a response.

use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::machine::Event;
use crate::testing::{cases, client_spec, in_pieces, pieces};

fn machine(method: &str) -> Http1 {
    let mut spec = client_spec("h1c");
    spec.request.method = method.to_owned();
    Http1::new(&Rc::new(Http1::plan(&spec).unwrap()))
}

/// Sends the whole request.
fn send(machine: &mut Http1, slot: Slot) -> Vec<u8> {
    machine.start(slot, 0);
    let mut bytes = Vec::new();
    while !machine.output().is_empty() {
        bytes.extend_from_slice(machine.output());
        machine.sent(machine.output().len());
    }
    bytes
}

/// Status, size and slot of each complete response.
fn done(inbox: &mut Inbox) -> Vec<(Slot, u16, u64)> {
    let events = inbox.events.drain(..);
    events
        .filter_map(|event| match event {
            Event::Done { slot, status, bytes_in, .. } => Some((slot, status.unwrap(), bytes_in)),
            _ => None,
        })
        .collect()
}

/// Status, body size, and whether the connection stays open.
#[track_caller]
fn check(method: &str, response: &str, ends: bool, expected: Result<(u16, u64, bool), ErrorKind>) {
    for piece in [1, 2, 3, 7, response.len().max(1)] {
        let (mut machine, mut inbox) = (machine(method), Inbox::default());
        send(&mut machine, 5);
        let mut result = Ok(());
        for part in response.as_bytes().chunks(piece) {
            result = result.and_then(|()| machine.receive(part, &mut inbox));
        }
        if ends {
            result = result.and_then(|()| machine.end(true, &mut inbox));
        }
        match expected {
            Ok((status, size, open)) => {
                result.unwrap_or_else(|failure| panic!("in pieces of {piece}: {failure:?}"));
                assert_eq!(done(&mut inbox), [(5, status, size)], "in pieces of {piece}");
                assert_eq!(machine.is_open(), open, "in pieces of {piece}");
            }
            Err(kind) => {
                assert_eq!(result.unwrap_err().kind, kind, "in pieces of {piece}");
                assert_eq!(done(&mut inbox), []);
            }
        }
    }
}

#[test]
fn bodies_end_as_the_specification_says() {
    check("GET", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", false, Ok((200, 3, true)));
    check("GET", "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", false, Ok((200, 3, true)));
    check("GET", "HTTP/1.1 204 No Content\r\n\r\n", false, Ok((204, 0, true)));
    check("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", false, Ok((304, 0, true)));
    check("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", false, Ok((200, 0, true)));
    check("GET", "HTTP/1.1 200 OK\r\n\r\nabcd", true, Ok((200, 4, false)));
    check("GET", "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", false, Ok((200, 1, false)));
    check("GET", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: x, Close\r\n\r\n", false, Ok((200, 0, false)));
    let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\n";
    check("GET", &format!("{chunks}\r\n"), false, Ok((200, 13, true)));
    check("GET", &format!("{chunks}digest: x\r\na: b\r\n\r\n"), false, Ok((200, 13, true)));
}

#[test]
fn a_long_body_behind_a_head_in_two_parts_does_not_count_as_head() {
    let mut heads = super::head::Heads::default();
    assert_eq!(heads.read(b"HTTP/1.1 200 OK\r\ncontent-le").unwrap(), super::head::Parsed::Incomplete);
    let mut rest = b"ngth: 300000\r\n\r\n".to_vec();
    let size = rest.len();
    rest.resize(size + 300_000, b'x');
    assert!(matches!(heads.read(&rest).unwrap(), super::head::Parsed::Complete(_, of) if of == size));
}

#[test]
fn interim_responses_are_no_responses() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx";
    check("GET", &format!("{interim}{last}"), false, Ok((200, 1, true)));
    check("GET", "HTTP/1.1 101 Switching Protocols\r\n\r\n", false, Err(ErrorKind::Protocol));
    check("GET", &"HTTP/1.1 100 Continue\r\n\r\n".repeat(30_000), false, Err(ErrorKind::Protocol));
}

#[test]
fn what_breaks_the_protocol_breaks_the_connection() {
    check("GET", "\x07nonsense\r\n\r\n", true, Err(ErrorKind::Protocol));
    check("GET", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx", false, Err(ErrorKind::Protocol));
    check("GET", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nx", false, Err(ErrorKind::Protocol));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    check("GET", &format!("{chunked}\r\n"), false, Err(ErrorKind::Protocol));
    check("GET", &format!("{chunked}3\r\nabcd\r\n"), false, Err(ErrorKind::Protocol));
    check("GET", &format!("{chunked}fffffffffffffffff\r\n"), false, Err(ErrorKind::Protocol));
}

#[test]
fn an_early_end_is_a_truncated_response() {
    for response in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ] {
        check("GET", response, true, Err(ErrorKind::Truncated));
    }
    let (mut machine, mut inbox) = (machine("GET"), Inbox::default());
    send(&mut machine, 0);
    machine.receive(b"HTTP/1.1 200 OK\r\n\r\nabc", &mut inbox).unwrap();
    assert_eq!(machine.end(false, &mut inbox).unwrap_err().kind, ErrorKind::Truncated);
}

#[test]
fn bytes_after_a_response_are_not_the_next_response() {
    let (mut machine, mut inbox) = (machine("GET"), Inbox::default());
    send(&mut machine, 1);
    let response = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx";
    machine.receive(&[&response[..], &response[..]].concat(), &mut inbox).unwrap();
    assert_eq!(done(&mut inbox), [(1, 200, 1)]);
    assert!(!machine.is_open());
}

#[test]
fn a_response_before_the_whole_request_was_sent_ends_the_connection() {
    let mut spec = client_spec("h1c");
    spec.request.method = "POST".to_owned();
    spec.request.body_size = 1 << 20;
    let mut machine = Http1::new(&Rc::new(Http1::plan(&spec).unwrap()));
    let mut inbox = Inbox::default();
    machine.start(1, 0);
    machine.sent(machine.output().len());
    machine.receive(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n", &mut inbox).unwrap();
    assert_eq!(done(&mut inbox), [(1, 413, 0)]);
    assert!(!machine.is_open() && machine.output().is_empty());
}

#[test]
fn a_request_has_its_host_its_fields_and_its_body() {
    let mut spec = client_spec("h1c");
    spec.request.headers = vec![("Host".to_owned(), "other.test".to_owned()), ("X-A".to_owned(), "b".to_owned())];
    spec.request.method = "POST".to_owned();
    spec.request.body_size = 300_000;
    let mut machine = Http1::new(&Rc::new(Http1::plan(&spec).unwrap()));
    let request = send(&mut machine, 0);
    let (head, body) = request.split_at(request.len() - 300_000);
    let expected = "POST /bytes/10 HTTP/1.1\r\nhost: other.test\r\nx-a: b\r\ncontent-length: 300000\r\n\r\n";
    assert_eq!(std::str::from_utf8(head).unwrap(), expected);
    assert!(body == wirelab_contract::pattern::body(300_000));
    for (name, value) in [("a b", "s3cr3t"), ("a", "s3cr3t\r\nd: e"), ("", "s3cr3t")] {
        spec.request.headers = vec![(name.to_owned(), value.to_owned())];
        let refusal = Http1::plan(&spec).unwrap_err().to_string();
        assert!(!refusal.contains("s3cr3t"), "{name:?}: {refusal} shows a value, which may be a secret");
    }
}

/// A valid response and its body size.
fn response() -> impl Strategy<Value = (String, u64)> {
    let date = prop_oneof![Just(""), Just("date: Mon, 23 Nov 2026 21:00:00 GMT\r\n"), Just("date: later\r\n")];
    let body = "[a-z]{0,40}";
    let framed = (body, any::<bool>(), 1_usize..9).prop_map(|(body, chunked, size): (String, bool, usize)| {
        let length = body.len() as u64;
        if !chunked {
            return (format!("content-length: {length}\r\n\r\n{body}"), length);
        }
        let chunks: String = body
            .as_bytes()
            .chunks(size)
            .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), std::str::from_utf8(chunk).unwrap()))
            .collect();
        (format!("transfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"), length)
    });
    (date, framed).prop_map(|(date, (framed, length))| (format!("HTTP/1.1 200 OK\r\n{date}{framed}"), length))
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn responses_in_any_pieces_belong_to_their_requests(
        responses in prop::collection::vec(response(), 1..6),
        pieces in prop::collection::vec(1_usize..50, 1..20),
    ) {
        let (mut machine, mut inbox) = (machine("GET"), Inbox::default());
        let mut pieces = pieces.iter().cycle();
        for (slot, (text, size)) in responses.iter().enumerate() {
            prop_assert!(machine.is_open());
            send(&mut machine, slot as Slot);
            let mut rest = text.as_bytes();
            while !rest.is_empty() {
                let (now, later) = rest.split_at((*pieces.next().unwrap()).min(rest.len()));
                machine.receive(now, &mut inbox).unwrap();
                rest = later;
            }
            prop_assert_eq!(done(&mut inbox), [(slot as Slot, 200, *size)]);
        }
    }

    #[test]
    fn any_bytes_give_one_response_or_one_failure_and_no_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        prefix in prop::sample::select(vec!["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]),
    ) {
        let (mut machine, mut inbox) = (machine("GET"), Inbox::default());
        send(&mut machine, 0);
        let text = [prefix.as_bytes(), &bytes].concat();
        let result = machine.receive(&text, &mut inbox).and_then(|()| machine.end(true, &mut inbox));
        prop_assert!(!machine.is_open() || result.is_err());
        prop_assert_eq!(done(&mut inbox).len(), usize::from(result.is_ok()));
    }

    #[test]
    fn bytes_in_any_pieces_give_the_same_events_and_the_same_failure(
        text in prop_oneof![
            "[ -~\r\n]{0,80}",
            "HTTP/1\\.[01] [0-9]{3} OK\r\n(content-length: [0-9]{1,2}\r\n|connection: close\r\n|[a-z: ]{1,9}\r\n){0,3}\r\n[a-z]{0,40}",
            "HTTP/1\\.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n([0-9a-f]{1,2}(;x)?\r\n[a-z]{0,20}\r\n){0,4}[0-9a-z\r\n]{0,9}",
            "(HTTP/1\\.1 10[0-3] OK\r\n\r\n){0,3}HTTP/1\\.1 20[04] OK\r\n\r\n[a-z]{0,20}",
        ],
        pieces in pieces(),
    ) {
        let run = |sizes: &[usize]| {
            let mut machine = machine("GET");
            send(&mut machine, 3);
            in_pieces(&mut machine, text.as_bytes(), sizes)
        };
        prop_assert_eq!(run(&[text.len()]), run(&pieces));
    }
}
