//! Raw requests one after the other on a stream of bytes, framed by sizes alone.

use std::rc::Rc;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;

use super::Header;
use crate::machine::{Inbox, Machine, Slot};
use crate::payload::{Headed, Payload};
use crate::refusal::{Failure, Refusal};

/// The request that every connection sends.
#[derive(Debug)]
pub struct Plan {
    request: Headed,
    /// Size of the response in bytes.
    wanted: u64,
}

/// A connection, which carries one request at a time.
#[derive(Debug)]
pub struct RawStream {
    plan: Rc<Plan>,
    /// The request under way.
    current: Option<Current>,
    /// Bytes of the request that were sent.
    sent: u64,
    /// Bytes of the request to send.
    total: u64,
    open: bool,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    slot: Slot,
    /// Bytes of the response.
    received: u64,
}

impl Machine for RawStream {
    type Plan = Plan;

    fn plan(spec: &ClientSpec) -> Result<Plan, Refusal> {
        if !spec.mix.is_empty() {
            return Err(Refusal::unsupported("`mix`: a client of a raw transport repeats one request"));
        }
        let header = Header::of(spec);
        header.check_visible(spec.protocol)?;
        let request = Headed::new(header.encode().to_vec(), Payload::of(&spec.request)?);
        Ok(Plan { request, wanted: header.wanted })
    }

    fn new(plan: &Rc<Plan>) -> Self {
        Self { plan: Rc::clone(plan), current: None, sent: 0, total: 0, open: true }
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn start(&mut self, slot: Slot, _: usize) {
        self.current = Some(Current { slot, received: 0 });
        (self.sent, self.total) = (0, self.plan.request.size());
    }

    fn cancel(&mut self, _: Slot) {
        // A late response would be taken for the response to the next request.
        self.open = false;
        self.current = None;
        self.total = self.sent;
    }

    fn receive(&mut self, bytes: &[u8], inbox: &mut Inbox) -> Result<(), Failure> {
        let Some(current) = &mut self.current else {
            // Bytes that no request asked for must not become the next response.
            self.open &= bytes.is_empty();
            return Ok(());
        };
        if current.received == 0 && !bytes.is_empty() {
            inbox.first_byte(current.slot);
        }
        let wanted = self.plan.wanted;
        let left = usize::try_from(wanted - current.received).unwrap_or(usize::MAX);
        let response = &bytes[..left.min(bytes.len())];
        inbox.body(current.slot, response);
        current.received += response.len() as u64;
        if current.received == wanted {
            inbox.done(current.slot, None, wanted);
            // The rest of an unsent request would be taken for the next request.
            self.open &= self.sent == self.total && response.len() == bytes.len();
            self.total = self.sent;
            self.current = None;
        }
        Ok(())
    }

    fn end(&mut self, _: bool, _: &mut Inbox) -> Result<(), Failure> {
        self.open = false;
        let Some(Current { received, .. }) = self.current else { return Ok(()) };
        let wanted = self.plan.wanted;
        let message = format!("the server closed the connection after {received} of {wanted} bytes of response");
        Err(Failure::new(ErrorKind::Truncated, message))
    }

    fn output(&self) -> &[u8] {
        if self.sent == self.total { &[] } else { self.plan.request.from(self.sent) }
    }

    fn sent(&mut self, count: usize) {
        self.sent += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirelab_contract::pattern;

    use super::*;
    use crate::testing::{cases, client_spec, in_pieces, pieces, plain};

    fn plan(body: u64, wanted: u64) -> Rc<Plan> {
        let mut spec = client_spec("tcp");
        spec.request.body_size = body;
        spec.request.path = format!("/bytes/{wanted}");
        Rc::new(RawStream::plan(&spec).unwrap())
    }

    /// The output of the machine for a socket that takes `most` bytes at a time.
    fn output(machine: &mut RawStream, most: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while !machine.output().is_empty() {
            let piece = machine.output()[..most.min(machine.output().len())].to_vec();
            machine.sent(piece.len());
            all.extend(piece);
        }
        all
    }

    #[test]
    fn a_response_of_no_bytes_is_refused() {
        let mut spec = client_spec("tcp");
        spec.request.path = "/bytes/0".to_owned();
        let planned = RawStream::plan(&spec);
        assert!(matches!(planned, Err(Refusal::Unsupported(why)) if why.contains("at least 1 byte")));
    }

    #[test]
    fn a_connection_with_bytes_that_no_request_asked_for_takes_no_further_request() {
        for early in [false, true] {
            let (mut machine, mut inbox) = (RawStream::new(&plan(0, 10)), Inbox::default());
            if !early {
                machine.start(3, 0);
                output(&mut machine, 100);
                machine.receive(&[0; 10], &mut inbox).unwrap();
                assert!(machine.is_open());
            }
            machine.receive(&[0], &mut inbox).unwrap();
            assert!(!machine.is_open());
        }
    }

    #[test]
    fn a_response_before_the_end_of_its_request_is_the_last_of_the_connection() {
        let (mut machine, mut inbox) = (RawStream::new(&plan(1 << 20, 10)), Inbox::default());
        machine.start(3, 0);
        machine.sent(1000);
        machine.receive(&[0; 10], &mut inbox).unwrap();
        assert_eq!((machine.is_open(), machine.output()), (false, &[][..]));
        assert_eq!(inbox.events.into_iter().map(plain).next_back(), Some(("done", 3, None, 10, None)));
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn each_request_has_its_header_and_its_body_and_its_part_of_the_stream(
            requests in 1_u32..6,
            body in prop_oneof![0_u64..100, Just(100_000)],
            wanted in 1_u64..200,
            most in 1_usize..5_000,
            pieces in pieces(),
        ) {
            let mut machine = RawStream::new(&plan(body, wanted));
            for slot in 0..requests {
                machine.start(slot, 0);
                let header = Header { wanted, body, delay_us: 0 }.encode();
                let expected = [&header[..], &pattern::body(body as usize)].concat();
                prop_assert!(output(&mut machine, most) == expected);
                let mut inbox = Inbox::default();
                let response = vec![0; wanted as usize];
                let mut rest = &response[..];
                for size in pieces.iter().cycle() {
                    let (now, later) = rest.split_at(rest.len().min(*size));
                    machine.receive(now, &mut inbox).unwrap();
                    rest = later;
                    if rest.is_empty() {
                        break;
                    }
                }
                let events: Vec<_> = inbox.events.into_iter().map(plain).collect();
                prop_assert_eq!(events, vec![("first byte", slot, None, 0, None), ("done", slot, None, wanted, None)]);
                prop_assert!(machine.is_open());
            }
        }

        #[test]
        fn a_stream_that_ends_in_any_piece_gives_the_same_events_and_failure(
            size in 1_usize..60,
            pieces in pieces(),
        ) {
            let bytes = vec![7; size];
            let run = |sizes: &[usize]| {
                let mut machine = RawStream::new(&plan(0, 30));
                machine.start(1, 0);
                output(&mut machine, 100);
                in_pieces(&mut machine, &bytes, sizes)
            };
            let (events, failure, was_open) = run(&pieces);
            prop_assert_eq!((events, failure.clone(), was_open), run(&[size]));
            prop_assert_eq!(failure.map(|failure| failure.0), (size < 30).then_some(ErrorKind::Truncated));
            prop_assert_eq!(was_open, size <= 30);
        }
    }
}
