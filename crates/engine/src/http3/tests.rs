//! Responses in any pieces give the same events, and what breaks the protocol is refused.

use proptest::prelude::*;

use super::*;
use crate::testing::{Plain, cases, client_spec, pieces, plain};

fn framed(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, kind);
    frame::put(&mut out, payload.len() as u64);
    out.extend_from_slice(payload);
    out
}

/// A head with an indexed status and further bytes of the block.
fn head(status: u8, more: &[u8]) -> Vec<u8> {
    let mut block = vec![0, 0];
    crate::http2::encode_integer(&mut block, 0xc0, 6, status.into());
    framed(kind::HEADERS, &[&block[..], more].concat())
}

/// `content-length` with one digit.
const fn length(digit: u8) -> [u8; 3] {
    [0x54, 1, digit]
}

/// The events of a stream whose bytes arrive in pieces of these sizes, and the failure of the connection.
fn events(bytes: &[u8], sizes: &[usize]) -> (Vec<Plain>, Option<String>) {
    let (mut response, mut inbox, mut decoder) = (Response::new(4, false), Inbox::default(), Decoder::default());
    let mut sizes = sizes.iter().cycle();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(sizes.next().copied().unwrap_or(1).clamp(1, rest.len()));
        if let Err(refused) = response.receive(now, &mut decoder, &mut inbox) {
            let (Unreadable::Response(failure) | Unreadable::Connection(failure)) = refused;
            return (inbox.events.into_iter().map(plain).collect(), Some(failure.message));
        }
        rest = later;
    }
    response.end(&mut inbox);
    (inbox.events.into_iter().map(plain).collect(), None)
}

#[track_caller]
fn check(parts: &[Vec<u8>], expected: Result<(u16, u64), ErrorKind>) {
    let bytes = parts.concat();
    for size in [1, 2, 3, bytes.len().max(1)] {
        let (events, failure) = events(&bytes, &[size]);
        let last = events.last().copied();
        match expected {
            Ok((status, size)) => assert_eq!((last, failure), (Some(("done", 4, Some(status), size, None)), None)),
            Err(ErrorKind::Protocol) if failure.is_some() => {}
            Err(kind) => assert_eq!((last, failure), (Some(("failed", 4, None, 0, Some(kind))), None)),
        }
    }
}

#[test]
fn a_response_is_its_head_its_body_and_perhaps_trailers() {
    let data = |size: usize| framed(kind::DATA, &vec![b'x'; size]);
    check(&[head(25, &[]), data(3), data(0), data(70)], Ok((200, 73)));
    check(&[head(25, &length(b'3')), data(3)], Ok((200, 3)));
    check(&[head(63, &[]), head(24, &[]), head(27, &[]), data(1)], Ok((404, 1)));
    check(&[head(25, &[]), framed(0x21, b"grease"), data(2), framed(kind::HEADERS, &[0, 0])], Ok((200, 2)));
    check(&[head(26, &length(b'9'))], Ok((304, 0)));
    check(&[head(25, &length(b'9')), data(3)], Err(ErrorKind::Truncated));
    check(&[head(25, &length(b'1')), data(3)], Err(ErrorKind::Protocol));
    check(&[], Err(ErrorKind::Truncated));
    check(&[head(25, &[]), vec![0, 9, b'x']], Err(ErrorKind::Truncated));
    check(&[head(63, &[])], Err(ErrorKind::Truncated));
}

#[test]
fn what_breaks_the_protocol_is_refused() {
    let data = framed(kind::DATA, b"x");
    for parts in [
        vec![data.clone(), head(25, &[])],
        vec![framed(kind::DATA, b""), head(25, &[])],
        vec![framed(kind::SETTINGS, b"")],
        vec![head(25, &[]), framed(kind::PUSH_PROMISE, &[0])],
        vec![head(25, &[]), framed(kind::HEADERS, &[0, 0]), data],
        // A reference to the dynamic table, an index behind the static one, a head without a status, two statuses.
        vec![framed(kind::HEADERS, &[1, 0, 0x80])],
        vec![framed(kind::HEADERS, &[0, 0, 0xff, 36])],
        vec![framed(kind::HEADERS, &[0, 0])],
        vec![head(25, &[0xc0 | 27])],
        vec![framed(kind::HEADERS, &[0, 0, 0x5f])],
    ] {
        check(&parts, Err(ErrorKind::Protocol));
    }
    check(&[head(24, &[]).repeat(200_000)], Err(ErrorKind::Protocol));
}

#[test]
fn a_malformed_response_leaves_its_connection() {
    for (what, bytes) in [
        ("no status", framed(kind::HEADERS, &[0, 0])),
        ("two statuses", head(25, &[0xc0 | 27])),
        ("a status in the trailers", [head(25, &[]), head(25, &[])].concat()),
    ] {
        let refused = Response::new(4, false).receive(&bytes, &mut Decoder::default(), &mut Inbox::default());
        assert!(matches!(refused, Err(Unreadable::Response(_))), "{what}: {refused:?}");
    }
}

#[test]
fn the_control_stream_begins_with_settings_and_may_refuse_requests() {
    let settings = framed(kind::SETTINGS, &[1, 0]);
    let goaway = framed(kind::GOAWAY, &[8]);
    let feed = |bytes: &[u8], size: usize| {
        let mut stream = Inward::default();
        let mut found = None;
        for piece in bytes.chunks(size) {
            found = found.or(stream.receive(piece)?);
        }
        Ok::<_, Failure>((found, stream.end().is_ok()))
    };
    for size in [1, 3, 100] {
        let all = [&[0][..], &settings, &framed(0x21, b"grease"), &goaway].concat();
        assert_eq!(feed(&all, size).unwrap(), (Some(8), false));
        for wrong in [&goaway[..], &[&settings[..], &settings].concat(), &[&settings[..], &framed(0, b"x")].concat()] {
            assert!(feed(&[&[0], wrong].concat(), size).is_err(), "{wrong:?}");
        }
        assert!(feed(&[1, 0, 0, 0], size).is_err(), "a push stream");
        assert_eq!(feed(&[0x21, 0, 0, 0, 0], size).unwrap(), (None, true), "an unknown stream");
    }
}

#[test]
fn a_request_is_its_head_and_its_body() {
    let mut spec = client_spec("h3");
    spec.request.method = "PUT".to_owned();
    spec.request.body_size = 300_000;
    spec.request.headers = vec![("X-A".to_owned(), "b".to_owned())];
    let [request] = &Encoded::all(&spec).unwrap()[..] else { panic!("one request") };
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < request.size() {
        bytes.extend_from_slice(request.from(bytes.len() as u64));
    }
    let authority = b"server.test:80";
    let fields = [
        &[0, 0, 0xc0 | 21, 0xc0 | 23, 0x50, 14][..],
        authority,
        &[0x51, 9],
        b"/bytes/10",
        &[0x23],
        b"x-a",
        &[1, b'b', 0x27, 7],
        b"content-length",
        &[6],
        b"300000",
    ];
    let expected =
        [framed(kind::HEADERS, &fields.concat()), framed(kind::DATA, &wirelab_contract::pattern::body(300_000))];
    assert!(bytes == expected.concat(), "{:?}", &bytes[..80]);
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn bytes_in_any_pieces_give_the_same_events_and_the_same_failure(
        parts in prop::collection::vec(
            prop_oneof![
                Just(head(25, &[])),
                Just(head(63, &[])),
                (0_u64..8, prop::collection::vec(any::<u8>(), 0..30)).prop_map(|(kind, payload)| framed(kind, &payload)),
                prop::collection::vec(any::<u8>(), 0..9),
            ],
            0..6,
        ),
        pieces in pieces(),
    ) {
        let bytes = parts.concat();
        prop_assert_eq!(events(&bytes, &[bytes.len()]), events(&bytes, &pieces));
    }
}
