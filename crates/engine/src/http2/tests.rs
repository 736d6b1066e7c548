//! Responses in any pieces, with any order of their frames, belong to their requests.

use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::machine::Event;
use crate::testing::{cases, client_spec, in_pieces, pieces};

fn machine(change: impl FnOnce(&mut ClientSpec)) -> Http2 {
    let mut spec = client_spec("h2c");
    change(&mut spec);
    Http2::new(&Rc::new(Http2::plan(&spec).unwrap()))
}

/// Frames that a server sends.
#[derive(Default)]
pub(super) struct Server(pub Vec<u8>);

impl Server {
    pub fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        frame::head(&mut self.0, payload.len(), kind, flags, stream);
        self.0.extend_from_slice(payload);
        self
    }

    pub fn settings(self, settings: &[(u16, u32)]) -> Self {
        let mut payload = Vec::new();
        settings.iter().for_each(|(name, value)| frame::set(&mut payload, *name, *value));
        self.frame(kind::SETTINGS, 0, 0, &payload)
    }

    /// A head with the status 200.
    pub fn head(self, stream: u32, ends: bool) -> Self {
        self.frame(kind::HEADERS, flag::END_HEADERS | u8::from(ends), stream, &[0x88])
    }

    fn goaway(self, last: u32, code: u32) -> Self {
        self.frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
    }

    fn data(self, stream: u32, size: usize, ends: bool) -> Self {
        self.frame(kind::DATA, u8::from(ends), stream, &vec![b'x'; size])
    }
}

/// The frames that the machine sent, without the preface: kind, flags, stream, payload.
pub(super) fn sent(machine: &mut Http2) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut bytes = Vec::new();
    while !machine.output().is_empty() {
        bytes.extend_from_slice(machine.output());
        machine.sent(machine.output().len());
    }
    let mut rest = bytes.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(&bytes);
    let mut frames = Vec::new();
    while let Some(header) = Header::read(rest) {
        let end = HEADER + header.length;
        frames.push((header.kind, header.flags, header.stream, rest[HEADER..end].to_vec()));
        rest = &rest[end..];
    }
    assert!(rest.is_empty());
    frames
}

/// Slot, status and size of each complete response; kinds of failures.
type Outcome = (Vec<(Slot, u16, u64)>, Vec<(Slot, ErrorKind)>);

fn outcome(inbox: &mut Inbox) -> Outcome {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for event in inbox.events.drain(..) {
        match event {
            Event::Done { slot, status, bytes_in, .. } => done.push((slot, status.unwrap(), bytes_in)),
            Event::Failed { slot, failure, .. } => failed.push((slot, failure.kind)),
            Event::TurnedAway { slot, .. } => panic!("the request {slot} was turned away"),
            Event::FirstByte { .. } | Event::Opened { .. } => {}
        }
    }
    (done, failed)
}

#[test]
fn a_repeated_request_is_a_few_indices_of_the_peer_s_table() {
    let mut machine = machine(|spec| spec.request.headers = vec![("X-A".to_owned(), "b".to_owned())]);
    machine.start(0, 0);
    machine.start(1, 0);
    let frames = sent(&mut machine);
    let heads: Vec<_> = frames.iter().filter(|frame| frame.0 == kind::HEADERS).collect();
    let first = [&[0x86, 0x82, 0x44, 9][..], b"/bytes/10", &[0x41, 11], b"server.test", &[0x40, 3], b"x-a", &[1], b"b"];
    assert_eq!((heads[0].2, &heads[0].3), (1, &first.concat()));
    // The newest field has the lowest index.
    assert_eq!((heads[1].2, &heads[1].3[..]), (3, &[0x86, 0x82, 0xc0, 0xbf, 0xbe][..]));
    assert!(heads.iter().all(|head| head.1 == flag::END_HEADERS | flag::END_STREAM));
    // A peer without a table gets the fields literally, after saying that its table is not used.
    machine.receive(&Server::default().settings(&[(setting::HEADER_TABLE_SIZE, 0)]).0, &mut Inbox::default()).unwrap();
    machine.start(2, 0);
    let frames = sent(&mut machine);
    assert_eq!(frames[0].0, kind::SETTINGS);
    assert_eq!(frames[1].3[..5], [0x20, 0x86, 0x82, 0x04, 9]);
}

#[test]
fn several_requests_share_the_table_for_the_fields_that_all_have() {
    let mut machine = machine(|spec| {
        let with = |change: serde_json::Value| {
            let mut request = serde_json::json!({"method": "GET", "path": "/a", "body_size": 0});
            request.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            serde_json::json!({"name": "x", "weight": 1, "variants": [request]})
        };
        spec.mix = serde_json::from_value(serde_json::json!([
            with(serde_json::json!({"headers": [["a", "1"], ["b", "1"], ["b", "2"]]})),
            with(serde_json::json!({
                "method": "PUT", "path": "/b", "body_size": 3, "body": {"text": "xyz"},
                "headers": [["b", "2"], ["A", "1"], ["b", "1"]],
            })),
        ]))
        .unwrap();
    });
    let heads = |machine: &mut Http2| -> Vec<_> {
        sent(machine).into_iter().filter(|frame| [kind::HEADERS, kind::DATA].contains(&frame.0)).collect()
    };
    machine.start(0, 1);
    machine.start(1, 0);
    machine.start(2, 1);
    let frames = heads(&mut machine);
    // The authority and `a`, which all requests have, enter the table. The values of `b` have another order.
    let own = |path: &[u8]| [&[0x04, 2][..], path].concat();
    let put = [&[0x02, 3][..], b"PUT", &own(b"/b")].concat();
    let fields = |first: u8, second: u8| [&[0, 1, b'b', 1, first][..], &[0, 1, b'b', 1, second]].concat();
    let put_fields = [&fields(b'2', b'1')[..], &[0, 14], b"content-length", &[1, b'3']].concat();
    let first = [&[0x86, 0x41, 11][..], b"server.test", &put, &[0x40, 1, b'a', 1, b'1'], &put_fields].concat();
    let get = [&[0x86, 0xbf, 0x82][..], &own(b"/a"), &[0xbe], &fields(b'1', b'2')].concat();
    let again = [&[0x86, 0xbf][..], &put, &[0xbe], &put_fields].concat();
    let payloads: Vec<_> = frames.into_iter().map(|frame| (frame.0, frame.2, frame.3)).collect();
    let expected = [
        (kind::HEADERS, 1, first),
        (kind::DATA, 1, b"xyz".to_vec()),
        (kind::HEADERS, 3, get),
        (kind::HEADERS, 5, again),
        (kind::DATA, 5, b"xyz".to_vec()),
    ];
    assert_eq!(payloads, expected);
}

#[test]
fn the_body_of_a_response_is_kept_if_it_is_judged_and_belongs_to_its_request() {
    let (mut machine, mut inbox) = (machine(|_| ()), Inbox::default());
    for slot in 0..3 {
        inbox.begin_body(slot, slot != 1);
        machine.start(slot, 0);
    }
    let mut server = Server::default().settings(&[]);
    for (stream, text) in [(1, ""), (3, ""), (5, ""), (5, "xy"), (1, "ab"), (3, "no"), (1, "c"), (5, "z")] {
        server = match text {
            "" => server.head(stream, false),
            _ => server.frame(kind::DATA, 0, stream, text.as_bytes()),
        };
    }
    machine.receive(&server.0, &mut inbox).unwrap();
    assert_eq!((inbox.kept(0), inbox.kept(1), inbox.kept(2)), (&b"abc"[..], &b""[..], &b"xyz"[..]));
    inbox.begin_body(0, false);
    assert_eq!(inbox.kept(0), b"");
}

#[test]
fn a_body_waits_for_the_credit_of_the_stream_and_of_the_connection() {
    let mut machine = machine(|spec| {
        spec.request.method = "POST".to_owned();
        spec.request.body_size = 100_000;
    });
    let mut inbox = Inbox::default();
    machine.start(7, 0);
    let body = |frames: &[(u8, u8, u32, Vec<u8>)]| {
        frames.iter().filter(|frame| frame.0 == kind::DATA).flat_map(|frame| frame.3.clone()).collect::<Vec<u8>>()
    };
    let mut whole = body(&sent(&mut machine));
    assert_eq!(whole.len(), 65_535);
    let credit = |number: u32| number.to_be_bytes();
    let server = Server::default().settings(&[]).frame(kind::WINDOW_UPDATE, 0, 0, &credit(100_000));
    machine.receive(&server.0, &mut inbox).unwrap();
    assert_eq!(body(&sent(&mut machine)), [0; 0]);
    machine.receive(&Server::default().frame(kind::WINDOW_UPDATE, 0, 1, &credit(10)).0, &mut inbox).unwrap();
    whole.extend(body(&sent(&mut machine)));
    assert_eq!(whole.len(), 65_545);
    machine.receive(&Server::default().settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]).0, &mut inbox).unwrap();
    let frames = sent(&mut machine);
    whole.extend(body(&frames));
    assert!(whole == wirelab_contract::pattern::body(100_000));
    assert_eq!(frames.last().map(|frame| (frame.0, frame.1)), Some((kind::DATA, flag::END_STREAM)));
    machine.receive(&Server::default().head(1, true).0, &mut inbox).unwrap();
    assert_eq!(outcome(&mut inbox), (vec![(7, 200, 0)], vec![]));
}

#[test]
fn what_was_received_is_credited_again_before_it_runs_out() {
    let mut machine = machine(|_| ());
    let mut inbox = Inbox::default();
    machine.start(0, 0);
    machine.receive(&Server::default().settings(&[]).head(1, false).0, &mut inbox).unwrap();
    let (mut stream, mut connection) = (2_i64 << 20, 5_i64 << 20);
    sent(&mut machine);
    for _ in 0..2_000 {
        machine.receive(&Server::default().data(1, 16_384, false).0, &mut inbox).unwrap();
        (stream, connection) = (stream - 16_384, connection - 16_384);
        assert!(stream >= 0 && connection >= 0, "the server has to stop");
        for (kind, _, id, payload) in sent(&mut machine) {
            assert_eq!(kind, kind::WINDOW_UPDATE);
            *if id == 0 { &mut connection } else { &mut stream } += i64::from(frame::number(&payload));
        }
        assert!(stream <= 2 << 20 && connection <= 5 << 20);
    }
}

#[test]
fn no_more_requests_are_sent_than_the_peer_allows() {
    let mut machine = machine(|_| ());
    let mut inbox = Inbox::default();
    machine.receive(&Server::default().settings(&[(setting::MAX_CONCURRENT_STREAMS, 2)]).0, &mut inbox).unwrap();
    (0..5).for_each(|slot| machine.start(slot, 0));
    let heads = |machine: &mut Http2| sent(machine).iter().filter(|frame| frame.0 == kind::HEADERS).count();
    assert_eq!(heads(&mut machine), 2);
    machine.receive(&Server::default().head(3, true).0, &mut inbox).unwrap();
    machine.cancel(4);
    assert_eq!(heads(&mut machine), 1);
    machine.receive(&Server::default().head(5, true).head(1, true).0, &mut inbox).unwrap();
    assert_eq!(heads(&mut machine), 1);
    assert_eq!(outcome(&mut inbox).0, [(1, 200, 0), (2, 200, 0), (0, 200, 0)]);
}

#[test]
fn resets_and_goodbyes_end_the_requests_that_they_name() {
    let mut machine = machine(|_| ());
    let mut inbox = Inbox::default();
    (0..3).for_each(|slot| machine.start(slot, 0));
    let server = Server::default().settings(&[]).frame(kind::RST_STREAM, 0, 1, &code::CANCEL.to_be_bytes());
    machine.receive(&server.goaway(3, 11).0, &mut inbox).unwrap();
    assert_eq!(outcome(&mut inbox), (vec![], vec![(0, ErrorKind::Reset), (2, ErrorKind::Reset)]));
    assert!(!machine.is_open());
    machine.receive(&Server::default().head(3, true).0, &mut inbox).unwrap();
    assert_eq!(outcome(&mut inbox).0, [(1, 200, 0)]);
    machine.end(true, &mut inbox).unwrap();
}

#[test]
fn an_orderly_goodbye_and_a_refused_stream_turn_requests_away_that_were_not_processed() {
    let (mut machine, mut inbox) = (machine(|_| ()), Inbox::default());
    let turned = |inbox: &mut Inbox| {
        let slots = inbox.events.drain(..).map(|event| match event {
            Event::TurnedAway { slot, .. } => slot,
            other => panic!("{other:?}"),
        });
        slots.collect::<Vec<_>>()
    };
    let server = Server::default().settings(&[(setting::MAX_CONCURRENT_STREAMS, 3)]);
    machine.receive(&server.0, &mut inbox).unwrap();
    (0..5).for_each(|slot| machine.start(slot, 0));
    let refused = Server::default().frame(kind::RST_STREAM, 0, 1, &code::REFUSED_STREAM.to_be_bytes());
    machine.receive(&refused.0, &mut inbox).unwrap();
    assert_eq!(turned(&mut inbox), [0]);
    // The first goodbye announces the end (RFC 9113, section 6.8): requests that were not sent go elsewhere.
    assert!(machine.is_open());
    machine.receive(&Server::default().goaway(i32::MAX as u32, code::NO_ERROR).0, &mut inbox).unwrap();
    assert!(!machine.is_open());
    assert_eq!(turned(&mut inbox), [4]);
    machine.receive(&Server::default().goaway(3, code::NO_ERROR).0, &mut inbox).unwrap();
    assert_eq!(turned(&mut inbox), [2, 3]);
    machine.receive(&Server::default().head(3, true).0, &mut inbox).unwrap();
    assert_eq!(outcome(&mut inbox), (vec![(1, 200, 0)], vec![]));
    machine.end(true, &mut inbox).unwrap();
}

#[test]
fn pings_and_settings_are_answered() {
    let mut machine = machine(|_| ());
    sent(&mut machine);
    let server = Server::default().settings(&[]).frame(kind::PING, 0, 0, b"12345678").frame(77, 0, 9, b"unknown");
    machine.receive(&server.0, &mut Inbox::default()).unwrap();
    let expected = vec![(kind::SETTINGS, flag::ACK, 0, vec![]), (kind::PING, flag::ACK, 0, b"12345678".to_vec())];
    assert_eq!(sent(&mut machine), expected);
}

#[test]
fn what_breaks_the_protocol_breaks_the_connection() {
    let server = || Server::default().settings(&[]);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("no settings", Server::default().head(1, true).0),
        ("nonsense", b"\x07nonsense, not a response\r\n\r\n".to_vec()),
        ("a stream that was never opened", server().head(3, true).0),
        ("a body before the head", server().data(1, 5, true).0),
        ("an interrupted block", server().frame(kind::HEADERS, 0, 1, &[0x88]).data(1, 1, false).0),
        ("a push", server().frame(kind::PUSH_PROMISE, 0, 1, &[0; 8]).0),
        ("no credit", server().frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]).0),
        ("a short ping", server().frame(kind::PING, 0, 0, &[0; 4]).0),
        ("all padding", server().head(1, false).frame(kind::DATA, flag::PADDED, 1, &[9, 0, 0]).0),
    ];
    for (what, bytes) in cases {
        for piece in [1, 5, bytes.len()] {
            let (mut machine, mut inbox) = (machine(|_| ()), Inbox::default());
            machine.start(0, 0);
            let result = bytes.chunks(piece).try_for_each(|part| machine.receive(part, &mut inbox));
            assert_eq!(result.unwrap_err().kind, ErrorKind::Protocol, "{what}");
            assert_eq!(outcome(&mut inbox).0, [], "{what}");
        }
    }
}

#[test]
fn a_malformed_response_fails_its_request_alone() {
    let server = || Server::default().settings(&[]);
    let block = |block: &[u8]| server().frame(kind::HEADERS, flag::END_HEADERS, 1, block);
    let cases = [
        ("no status", block(&[0xa1])),
        ("two heads", server().head(1, false).head(1, false)),
        ("two statuses", block(&[0x88, 0x88])),
        ("a status in the trailers", server().head(1, false).head(1, true)),
        ("a status after a field", block(&[0xa0, 0x88])),
    ];
    for (what, server) in cases {
        let (mut machine, mut inbox) = (machine(|_| ()), Inbox::default());
        (0..2).for_each(|slot| machine.start(slot, 0));
        machine.receive(&server.head(3, true).0, &mut inbox).unwrap();
        assert_eq!(outcome(&mut inbox), (vec![(1, 200, 0)], vec![(0, ErrorKind::Protocol)]), "{what}");
    }
}

#[test]
fn a_body_of_another_size_than_announced_fails_its_request_alone() {
    let (mut machine, mut inbox) = (machine(|_| ()), Inbox::default());
    (0..2).for_each(|slot| machine.start(slot, 0));
    let mut head = vec![0x88];
    fields::encode_named(&mut head, false, 28, b"10");
    let server = Server::default().settings(&[]).frame(kind::HEADERS, flag::END_HEADERS, 1, &head).data(1, 9, true);
    machine.receive(&server.head(3, true).0, &mut inbox).unwrap();
    assert_eq!(outcome(&mut inbox), (vec![(1, 200, 0)], vec![(0, ErrorKind::Protocol)]));
}

/// The frames of one response on a stream, and its body size.
fn response() -> impl Strategy<Value = (Vec<(bool, usize, bool)>, u64)> {
    prop::collection::vec((0_usize..40, any::<bool>()), 0..5).prop_map(|pieces| {
        let size = pieces.iter().map(|(size, _)| *size as u64).sum();
        let mut frames = vec![(true, 0, false)];
        frames.extend(pieces.into_iter().map(|(size, padded)| (false, size, padded)));
        (frames, size)
    })
}

/// The request that an event ends.
const fn ended(event: &Event) -> Option<Slot> {
    match event {
        Event::Done { slot, .. } | Event::Failed { slot, .. } | Event::TurnedAway { slot, .. } => Some(*slot),
        Event::FirstByte { .. } | Event::Opened { .. } => None,
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn responses_in_any_order_and_pieces_belong_to_their_requests(
        responses in prop::collection::vec(response(), 1..8),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 60),
        pieces in prop::collection::vec(1_usize..60, 1..20),
    ) {
        let (mut machine, mut inbox) = (machine(|_| ()), Inbox::default());
        let mut left: Vec<_> = responses.iter().enumerate().map(|(number, (frames, _))| {
            machine.start(100 + number as Slot, 0);
            (number as u32 * 2 + 1, frames.iter().copied().collect::<VecDeque<_>>())
        }).collect();
        let mut server = Server::default().settings(&[]);
        let mut turns = turns.iter().cycle();
        while !left.is_empty() {
            let place = turns.next().unwrap().index(left.len());
            let (id, frames) = &mut left[place];
            let (is_head, size, padded) = frames.pop_front().unwrap();
            let ends = frames.is_empty();
            server = match (is_head, padded) {
                (true, _) => server.head(*id, ends),
                (false, false) => server.data(*id, size, ends),
                (false, true) => {
                    let payload = [&[3][..], &vec![b'x'; size], &[0; 3]].concat();
                    server.frame(kind::DATA, flag::PADDED | u8::from(ends), *id, &payload)
                }
            };
            if ends {
                left.remove(place);
            }
        }
        let mut rest = &server.0[..];
        let mut pieces = pieces.iter().cycle();
        while !rest.is_empty() {
            let (now, later) = rest.split_at((*pieces.next().unwrap()).min(rest.len()));
            machine.receive(now, &mut inbox).unwrap();
            rest = later;
        }
        let (mut done, failed) = outcome(&mut inbox);
        done.sort_unstable();
        let expected: Vec<_> =
            responses.iter().enumerate().map(|(number, (_, size))| (100 + number as Slot, 200, *size)).collect();
        prop_assert_eq!((done, failed), (expected, vec![]));
    }

    #[test]
    fn any_bytes_end_each_request_once_at_most_and_do_not_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        kinds in prop::collection::vec((0_u8..11, any::<u8>(), 0_u32..7, prop::collection::vec(any::<u8>(), 0..20)), 0..8),
    ) {
        let (mut machine, mut inbox) = (machine(|_| ()), Inbox::default());
        (0..3).for_each(|slot| machine.start(slot, 0));
        let server = kinds.iter().fold(Server::default().settings(&[]), |server, (kind, flags, stream, payload)| {
            server.frame(*kind, *flags, *stream, payload)
        });
        let _ = machine.receive(&server.0, &mut inbox).and_then(|()| machine.receive(&bytes, &mut inbox));
        let _ = machine.end(true, &mut inbox);
        let mut ended: Vec<_> = inbox.events.iter().filter_map(ended).collect();
        let count = ended.len();
        ended.sort_unstable();
        ended.dedup();
        prop_assert_eq!(ended.len(), count);
    }

    #[test]
    fn bytes_in_any_pieces_give_the_same_events_and_the_same_failure(
        frames in prop::collection::vec((0_u8..11, any::<u8>(), 0_u32..7, prop::collection::vec(any::<u8>(), 0..20)), 0..8),
        responses in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        pieces in pieces(),
    ) {
        let mut server = Server::default().settings(&[]);
        if responses {
            server = server.head(1, false).data(1, 30, true).head(3, false);
        }
        for (kind, flags, stream, payload) in &frames {
            server = server.frame(*kind, *flags, *stream, payload);
        }
        let all = [server.0, bytes].concat();
        let run = |sizes: &[usize]| {
            let mut machine = machine(|_| ());
            (0..3).for_each(|slot| machine.start(slot, 0));
            in_pieces(&mut machine, &all, sizes)
        };
        prop_assert_eq!(run(&[all.len()]), run(&pieces));
    }
}
