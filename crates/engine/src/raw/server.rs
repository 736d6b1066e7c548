//! The server's side of raw requests, without input or output: over a stream of bytes, and on the streams of QUIC.

use std::sync::Arc;

use wirelab_contract::error_kind::ErrorKind;

use super::{HEADER, Header};
use crate::http2::windows::Windows;
use crate::null::{Content, Outbox, ServerMachine};
use crate::payload::Payload;
use crate::refusal::Failure;

/// A request as it arrives.
#[derive(Debug, Default)]
struct Arriving {
    header: [u8; HEADER],
    /// Bytes of the header that are there.
    size: usize,
    /// Bytes of the body that are there.
    body: u64,
}

impl Arriving {
    /// Takes bytes of the request, and returns how many.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let of_header = (HEADER - self.size).min(bytes.len());
        self.header[self.size..][..of_header].copy_from_slice(&bytes[..of_header]);
        self.size += of_header;
        let rest = (bytes.len() - of_header) as u64;
        let of_body = self.header().map_or(0, |header| (header.body - self.body).min(rest));
        self.body += of_body;
        of_header + of_body as usize
    }

    /// The header, once it is complete.
    fn header(&self) -> Option<Header> {
        (self.size == HEADER).then(|| Header::decode(&self.header))
    }

    /// The answer, once the request is complete.
    fn answer(&self) -> Result<Option<Payload>, Failure> {
        match self.header().filter(|header| header.body == self.body) {
            None => Ok(None),
            Some(header) if header.delay_us > 0 => {
                Err(broken("a request asks for a delay; the server answers at once"))
            }
            Some(header) => Ok(Some(Payload::Pattern(header.wanted))),
        }
    }
}

/// A connection of a server, where requests follow each other.
pub(crate) struct RawServer {
    content: Arc<dyn Content>,
    arriving: Arriving,
    /// Bytes behind a request whose answer is being sent.
    waiting: Vec<u8>,
    out: Outbox,
}

impl ServerMachine for RawServer {
    fn new(content: &Arc<dyn Content>, _: Windows) -> Self {
        let (arriving, waiting, out) = Default::default();
        Self { content: Arc::clone(content), arriving, waiting, out }
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if !self.waiting.is_empty() {
            self.waiting.extend_from_slice(bytes);
            return Ok(());
        }
        let used = self.take(bytes)?;
        self.waiting.extend_from_slice(&bytes[used..]);
        Ok(())
    }

    fn output(&self) -> &[u8] {
        self.out.output()
    }

    fn sent(&mut self, count: usize) -> Result<(), Failure> {
        self.out.sent(count);
        if !self.waiting.is_empty() && !self.out.has_body() {
            let waiting = std::mem::take(&mut self.waiting);
            let used = self.take(&waiting)?;
            self.waiting.extend_from_slice(&waiting[used..]);
        }
        Ok(())
    }

    fn is_closing(&self) -> bool {
        false
    }
}

impl RawServer {
    /// Answers requests, and returns the number of bytes that were used.
    fn take(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let mut at = 0;
        while at < bytes.len() && !self.out.has_body() {
            at += self.arriving.take(&bytes[at..]);
            if let Some(payload) = self.arriving.answer()? {
                self.out.body(&payload);
                self.arriving = Arriving::default();
                self.content.count();
            }
        }
        Ok(at)
    }
}

/// A request on a stream of its own, and its answer.
#[derive(Debug, Default)]
pub struct Exchange {
    arriving: Arriving,
    out: Outbox,
    ended: bool,
}

impl Exchange {
    /// Takes bytes of the request.
    ///
    /// # Errors
    ///
    /// [`Failure`] if it is longer than it says.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self.arriving.take(bytes) == bytes.len() {
            true => Ok(()),
            false => Err(broken("a request is longer than its header says")),
        }
    }

    /// Takes the end of the request, which its answer follows.
    ///
    /// # Errors
    ///
    /// [`Failure`] if it is incomplete, or asks for a delay.
    pub fn end(&mut self, content: &dyn Content) -> Result<(), Failure> {
        let payload = self.arriving.answer()?.ok_or_else(|| broken("a request ended before it was complete"))?;
        self.out.body(&payload);
        self.ended = true;
        content.count();
        Ok(())
    }

    /// Bytes to send; empty if there are none now.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.out.output()
    }

    /// Removes the first `count` bytes of the output, which were sent.
    pub fn sent(&mut self, count: usize) {
        self.out.sent(count);
    }

    /// Whether nothing follows the output.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.ended
    }
}

fn broken(message: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, message)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use proptest::prelude::*;
    use wirelab_contract::pattern;

    use super::*;
    use crate::null::testing::content;
    use crate::testing::{cases, pieces};

    fn request(wanted: u64, body: usize) -> Vec<u8> {
        let header = Header { wanted, body: body as u64, delay_us: 0 };
        [&header.encode()[..], &pattern::body(body)].concat()
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn every_request_of_a_stream_is_answered_in_any_pieces(
            sizes in prop::collection::vec((1_usize..40_000, 0_usize..300), 1..6),
            pieces in pieces(),
        ) {
            let content = content();
            let mut server = RawServer::new(&(Arc::clone(&content) as _), Windows::SMALLEST);
            let bytes: Vec<u8> = sizes.iter().flat_map(|(wanted, body)| request(*wanted as u64, *body)).collect();
            let (mut rest, mut pieces, mut sent) = (&bytes[..], pieces.iter().cycle(), Vec::new());
            while !rest.is_empty() || !server.output().is_empty() {
                let (now, later) = rest.split_at((*pieces.next().unwrap()).min(rest.len()));
                server.receive(now).unwrap();
                rest = later;
                let count = server.output().len().min(7000);
                sent.extend_from_slice(&server.output()[..count]);
                server.sent(count).unwrap();
            }
            let expected: Vec<u8> = sizes.iter().flat_map(|(wanted, _)| pattern::body(*wanted)).collect();
            prop_assert!(sent == expected);
            prop_assert_eq!(content.0.load(Ordering::Relaxed), sizes.len() as u64);
        }
    }

    #[test]
    fn a_request_on_a_stream_of_its_own_has_the_size_that_it_says() {
        let content = content();
        let answered = |bytes: &[u8]| {
            let mut exchange = Exchange::default();
            exchange.receive(bytes)?;
            exchange.end(&*content)?;
            Ok::<_, Failure>(exchange.output().to_vec())
        };
        assert_eq!(answered(&request(10, 5)).unwrap(), pattern::body(10));
        assert_eq!(answered(&request(0, 0)).unwrap(), b"");
        for (bytes, why) in [
            (request(1, 5)[..28].to_vec(), "before it was complete"),
            (vec![0; 3], "before it was complete"),
            ([&request(1, 5)[..], b"x"].concat(), "longer"),
            (Header { wanted: 1, body: 0, delay_us: 1 }.encode().to_vec(), "delay"),
        ] {
            assert!(answered(&bytes).unwrap_err().message.contains(why), "{why}");
        }
    }
}
