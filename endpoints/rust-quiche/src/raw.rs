//! Raw requests of a client, each on a stream of its own.

use std::time::Instant;

use quiche::Connection;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::{ATTEMPT, Answer, ClientSpec, Failure, Header, Refusal, piece_slice};

use crate::exchange::Exchanges;
use crate::speaker::{PIECE, Speaker};

/// Raw requests.
pub struct Raw {
    next: u64,
}

pub struct RawRequest {
    /// The header of the raw protocol.
    header: [u8; 24],
    /// Bytes of body.
    body: u64,
    /// Bytes of answer that are asked for.
    wanted: u64,
}

/// Bytes of that header.
const HEADER: u64 = 24;

impl Speaker for Raw {
    type Request = RawRequest;
    const ATTEMPT: &'static str = ATTEMPT;
    const DONE: u64 = 0;

    fn order(spec: &ClientSpec) -> Result<RawRequest, Refusal> {
        let header = Header::of(spec);
        Ok(RawRequest { header: header.encode(), body: header.body, wanted: header.wanted })
    }

    fn begin(_: &mut Connection) -> Result<Self, Failure> {
        Ok(Self { next: 0 })
    }

    fn open(&mut self, connection: &mut Connection, _: &RawRequest) -> Result<Option<u64>, Failure> {
        if connection.peer_streams_left_bidi() == 0 {
            return Ok(None);
        }
        let stream = self.next;
        // Bidirectional streams of clients (RFC 9000, section 2.1).
        self.next += 4;
        Ok(Some(stream))
    }

    fn length(request: &RawRequest) -> u64 {
        HEADER + request.body
    }

    fn piece(request: &RawRequest, offset: u64) -> &[u8] {
        match offset.checked_sub(HEADER) {
            Some(offset) => piece_slice(offset, request.body - offset),
            None => &request.header[offset as usize..],
        }
    }

    fn send(
        &mut self,
        connection: &mut Connection,
        stream: u64,
        piece: &[u8],
        is_last: bool,
    ) -> Result<usize, Failure> {
        match connection.stream_send(stream, piece, is_last) {
            Ok(length) => Ok(length),
            Err(quiche::Error::Done | quiche::Error::StreamLimit) => Ok(0),
            Err(error) => Err(of_stream(Self::ATTEMPT, error)),
        }
    }

    fn judge(request: &RawRequest, answer: Answer) -> Result<Answer, Failure> {
        let (is, wanted) = (answer.bytes_in, request.wanted);
        let fail =
            |kind, what: &str| Err(Failure::new(kind, format!("the answer has {is} bytes, {what} than {wanted}")));
        match is.cmp(&wanted) {
            std::cmp::Ordering::Less => fail(ErrorKind::Truncated, "less"),
            std::cmp::Ordering::Equal => Ok(answer),
            std::cmp::Ordering::Greater => fail(ErrorKind::Digest, "more"),
        }
    }

    fn receive(&mut self, connection: &mut Connection, exchanges: &mut Exchanges, scratch: &mut Vec<u8>) {
        scratch.resize(PIECE, 0);
        for stream in connection.readable() {
            let now = Instant::now();
            loop {
                match connection.stream_recv(stream, scratch) {
                    Ok((length, is_last)) => {
                        let Some(exchange) = exchanges.get(stream) else { continue };
                        exchange.body(now, &scratch[..length]);
                        if is_last {
                            exchange.end(Self::ATTEMPT, now);
                        }
                    }
                    Err(quiche::Error::Done) => break,
                    Err(error) => {
                        if let Some(exchange) = exchanges.get(stream) {
                            exchange.fail(of_stream(Self::ATTEMPT, error));
                        }
                        break;
                    }
                }
                if connection.stream_finished(stream) {
                    break;
                }
            }
        }
    }
}

fn of_stream(attempt: &str, error: quiche::Error) -> Failure {
    let kind = match error {
        quiche::Error::StreamReset(_) | quiche::Error::StreamStopped(_) => ErrorKind::Reset,
        _ => ErrorKind::Other,
    };
    Failure::new(kind, format!("{attempt}: {error:?}"))
}
