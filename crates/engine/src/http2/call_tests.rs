//! Calls of gRPC: what is sent, and which replies are right.

use std::rc::Rc;

use proptest::prelude::*;
use wirelab_contract::spec::Request;

use super::tests::{Server, sent};
use super::*;
use crate::testing::{Plain, cases, client_spec, in_pieces, pieces};

const ANSWER: [u8; 9] = [9, 0xcc, 0x3b, 0x7f, 0x66, 0x9e, 0xa0, 0xf6, 0x3f];

fn spec() -> ClientSpec {
    let mut spec = client_spec("grpcc");
    spec.request.path = "/heron/2".to_owned();
    spec.request.body_size = 9;
    spec
}

fn machine() -> Http2 {
    Http2::new(&Rc::new(Http2::plan(&spec()).unwrap()))
}

fn message(bytes: &[u8]) -> Vec<u8> {
    [&[0][..], &(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

/// A reply on a stream, whose trailers have this `grpc-status`.
fn reply(server: Server, stream: u32, body: &[u8], status: &[u8]) -> Server {
    let mut trailers = Vec::new();
    fields::encode_literal(&mut trailers, false, b"grpc-status", status);
    let server = server.head(stream, false).frame(kind::DATA, 0, stream, body);
    server.frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &trailers)
}

/// The end of the request in the first slot.
fn outcome(server: &Server) -> Plain {
    outcome_of(machine(), server)
}

fn outcome_of(mut machine: Http2, server: &Server) -> Plain {
    machine.start(0, 0);
    let (events, failure, _) = in_pieces(&mut machine, &server.0, &[server.0.len()]);
    assert_eq!((failure, events.len()), (None, 2), "{events:?}");
    events[1]
}

#[test]
fn a_call_is_a_request_for_trailers_with_a_message_behind_its_length() {
    let mut machine = machine();
    machine.start(0, 0);
    let frames = sent(&mut machine);
    let head = &frames.iter().find(|frame| frame.0 == kind::HEADERS).unwrap().3;
    let holds = |part: &[u8]| head.windows(part.len()).any(|window| window == part);
    // The index of `POST`.
    assert_eq!(head[..2], [0x86, 0x83]);
    for part in [&b"/wirelab.Heron/SquareRoot"[..], b"\x02te\x08trailers", b"\x0ccontent-type\x10application/grpc"] {
        assert!(holds(part), "{part:?}");
    }
    assert!(!holds(b"content-length"));
    let data = frames.iter().find(|frame| frame.0 == kind::DATA).unwrap();
    assert_eq!((data.1, &data.3[..]), (flag::END_STREAM, &[0, 0, 0, 0, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0x40][..]));
}

#[test]
fn a_reply_is_right_with_one_message_that_holds_the_root_and_the_status_0() {
    let server = || Server::default().settings(&[]);
    let failed = |kind| ("failed", 0, None, 0, Some(kind));
    let right = message(&ANSWER);
    // The size is that of the message, and a call has no HTTP status.
    assert_eq!(outcome(&reply(server(), 1, &right, b"0")), ("done", 0, None, 9, None));
    let compressed = [&[1], &right[1..]].concat();
    for (what, body, status, kind) in [
        ("another status", &right[..], &b"3"[..], ErrorKind::Status),
        ("a status that is no number", &right, b"ok", ErrorKind::Status),
        ("no message", b"", b"0", ErrorKind::Protocol),
        ("two messages", &[&right[..], &right].concat(), b"0", ErrorKind::Protocol),
        ("half a message", &right[..10], b"0", ErrorKind::Protocol),
        ("half a length", &right[..3], b"0", ErrorKind::Protocol),
        ("a compressed message", &compressed, b"0", ErrorKind::Protocol),
        ("another number", &message(&[9, 0, 0, 0, 0, 0, 0, 0, 0]), b"0", ErrorKind::Digest),
        ("a longer message", &message(&[&ANSWER[..], &[0]].concat()), b"0", ErrorKind::Digest),
        ("a shorter message", &message(&ANSWER[..8]), b"0", ErrorKind::Digest),
        ("an empty message", &message(b""), b"0", ErrorKind::Digest),
    ] {
        assert_eq!(outcome(&reply(server(), 1, body, status)), failed(kind), "{what}");
    }
    let without_status = server().head(1, false).frame(kind::DATA, flag::END_STREAM, 1, &right);
    assert_eq!(outcome(&without_status), failed(ErrorKind::Protocol));
    // Only a head, as of a call that the server refuses at once.
    let mut head = vec![0x88];
    fields::encode_literal(&mut head, false, b"grpc-status", b"12");
    let refused = server().frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &head);
    assert_eq!(outcome(&refused), failed(ErrorKind::Status));
    // The status 404, as of a proxy without its server.
    let lost = server().frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &[0x8d]);
    assert_eq!(outcome(&lost), failed(ErrorKind::Status));
}

#[test]
fn a_call_of_the_users_sends_its_message_and_takes_any_message() {
    let mut spec = spec();
    let body = serde_json::json!({"path": "/a.B/C", "method": "GET", "body": {"text": "xyz"}, "body_size": 3});
    spec.request = serde_json::from_value(body).unwrap();
    let calling = || Http2::new(&Rc::new(Http2::plan(&spec).unwrap()));
    let mut machine = calling();
    machine.start(0, 0);
    let frames = sent(&mut machine);
    assert_eq!(frames.last().unwrap().3, b"\0\0\0\0\x03xyz");
    let server = || Server::default().settings(&[]);
    assert_eq!(outcome_of(calling(), &reply(server(), 1, &message(b"anything"), b"0")), ("done", 0, None, 8, None));
    let refused = outcome_of(calling(), &reply(server(), 1, b"", b"5"));
    assert_eq!(refused, ("failed", 0, None, 0, Some(ErrorKind::Status)));
}

#[test]
fn a_status_is_named_and_the_reason_of_the_server_is_decoded_and_cut() {
    let text = |status, reason: &str| refusal(status, reason.as_bytes());
    assert_eq!(text(5, ""), "the server answered with `grpc-status` 5 (NOT_FOUND) instead of 0");
    assert!(text(16, "no %22key%22").ends_with(" 16 (UNAUTHENTICATED) instead of 0: `no \\\"key\\\"`"));
    assert!(text(17, &"ü".repeat(201)).ends_with(&format!(" 17 instead of 0: `{}...`", "ü".repeat(200))));
}

#[test]
fn a_path_that_names_no_method_and_a_message_of_another_size_are_refused() {
    for (wrong, why) in [
        (Request { path: "/bytes/9".to_owned(), ..spec().request }, "/heron/NUMBER"),
        (Request { body_size: 8, ..spec().request }, "has 9 bytes"),
        (Request { path: "/a.B/C".to_owned(), ..spec().request }, "is no message"),
    ] {
        let planned = Http2::plan(&ClientSpec { request: wrong, ..spec() });
        assert!(matches!(planned, Err(Refusal::Unsupported(text)) if text.contains(why)));
    }
}

/// The spec of a call of the user with these messages, whose answer is a stream.
fn stream_spec(messages: &[&str], expected: Option<u64>) -> ClientSpec {
    let mut spec = spec();
    let size = messages.len();
    spec.mix = serde_json::from_value(json!([{
        "name": "own", "weight": 1,
        "variants": [{"method": "POST", "path": "/a.B/C", "body_size": size, "body": {"messages": messages}}],
        "expect": {"messages": expected},
        "method": {"streams_response": true, "response_type": "a.D", "descriptors": ""},
    }]))
    .unwrap();
    spec
}

#[test]
fn all_messages_of_a_call_are_sent_each_behind_its_length() {
    for messages in [&[][..], &["Bw=="], &["Bw==", "CA==", "CQ=="]] {
        let mut machine = Http2::new(&Rc::new(Http2::plan(&stream_spec(messages, None)).unwrap()));
        machine.start(0, 0);
        let frames = sent(&mut machine);
        let body: Vec<_> =
            frames.iter().filter(|frame| frame.0 == kind::DATA).flat_map(|frame| frame.3.clone()).collect();
        let right: Vec<_> = (7..).take(messages.len()).flat_map(|byte| message(&[byte])).collect();
        assert_eq!(body, right);
        assert!(frames.last().unwrap().1 & flag::END_STREAM != 0);
    }
}

#[test]
fn an_answer_may_have_any_number_of_messages_or_the_expected_one() {
    let three =
        reply(Server::default().settings(&[]), 1, &[message(b"ab"), message(b""), message(b"c")].concat(), b"0");
    for (expected, outcome) in [
        (None, ("done", 0, None, 3, None)),
        (Some(3), ("done", 0, None, 3, None)),
        (Some(4), ("failed", 0, None, 0, Some(ErrorKind::Truncated))),
        (Some(2), ("failed", 0, None, 0, Some(ErrorKind::Digest))),
    ] {
        let machine = Http2::new(&Rc::new(Http2::plan(&stream_spec(&[], expected)).unwrap()));
        assert_eq!(outcome_of(machine, &three), outcome, "{expected:?}");
    }
    let none = reply(Server::default().settings(&[]), 1, &[], b"0");
    let machine = Http2::new(&Rc::new(Http2::plan(&stream_spec(&[], None)).unwrap()));
    assert_eq!(outcome_of(machine, &none), ("done", 0, None, 0, None));
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn replies_in_any_order_and_pieces_belong_to_their_calls(
        order in Just([0_u32, 1, 2, 3]).prop_shuffle(),
        wrong in prop::array::uniform4(any::<bool>()),
        cut in 0_usize..14,
        pieces in pieces(),
    ) {
        let mut machine = machine();
        (0..4).for_each(|slot| machine.start(slot, 0));
        let right = message(&ANSWER);
        let mut server = Server::default().settings(&[]);
        for &slot in &order {
            server = server.head(slot * 2 + 1, false).frame(kind::DATA, 0, slot * 2 + 1, &right[..cut]);
        }
        for &slot in &order {
            let mut trailers = Vec::new();
            let status: &[u8] = if wrong[slot as usize] { b"3" } else { b"0" };
            fields::encode_literal(&mut trailers, true, b"grpc-status", status);
            server = server.frame(kind::DATA, 0, slot * 2 + 1, &right[cut..]);
            server = server.frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, slot * 2 + 1, &trailers);
        }
        let (events, failure, _) = in_pieces(&mut machine, &server.0, &pieces);
        prop_assert_eq!(failure, None);
        let ended: Vec<_> = events.into_iter().filter(|event| event.0 != "first byte").collect();
        let expected = order.map(|slot| match wrong[slot as usize] {
            true => ("failed", slot, None, 0, Some(ErrorKind::Status)),
            false => ("done", slot, None, 9, None),
        });
        prop_assert_eq!(ended, expected);
    }

    #[test]
    fn any_body_in_any_pieces_gives_the_same_outcome(
        body in prop::collection::vec(prop::sample::select(&[0_u8, 1, 9, 0xcc][..]), 0..30),
        pieces in pieces(),
    ) {
        let server = reply(Server::default().settings(&[]), 1, &body, b"0");
        let run = |sizes: &[usize]| {
            let mut machine = machine();
            machine.start(0, 0);
            in_pieces(&mut machine, &server.0, sizes)
        };
        let (events, failure, _) = run(&pieces);
        prop_assert_eq!(events.len(), 2);
        prop_assert_eq!((events, failure), { let (events, failure, _) = run(&[server.0.len()]); (events, failure) });
    }
}
