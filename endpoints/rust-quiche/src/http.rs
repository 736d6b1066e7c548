//! HTTP/3 of a client, by quiche's own module.

use std::time::Instant;

use quiche::h3::{Event, Header};
use quiche::{Connection, h3};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::{ClientSpec, Failure, Recipe, Refusal, piece_slice};
use wirelab_quiche::{number, request};

use crate::exchange::Exchanges;
use crate::speaker::{PIECE, Speaker};

/// HTTP/3.
pub struct Http(h3::Connection);

/// A request by HTTP/3.
pub struct HttpRequest {
    /// Pseudo-header fields first.
    fields: Vec<Header>,
    /// Bytes of body.
    body: u64,
}

impl Speaker for Http {
    type Request = HttpRequest;
    const ATTEMPT: &'static str = "sending a request by HTTP/3";
    const DONE: u64 = 0x100;

    fn order(spec: &ClientSpec) -> Result<HttpRequest, Refusal> {
        let recipe = Recipe::new(spec)?;
        Ok(HttpRequest { fields: request(&recipe), body: recipe.body_size() })
    }

    fn begin(connection: &mut Connection) -> Result<Self, Failure> {
        let opened = h3::Config::new().and_then(|config| h3::Connection::with_transport(connection, &config));
        opened.map(Self).map_err(|error| of_http(Self::ATTEMPT, error))
    }

    fn open(&mut self, connection: &mut Connection, request: &HttpRequest) -> Result<Option<u64>, Failure> {
        match self.0.send_request(connection, &request.fields, request.body == 0) {
            Ok(stream) => Ok(Some(stream)),
            Err(h3::Error::StreamBlocked | h3::Error::Done | h3::Error::TransportError(quiche::Error::StreamLimit)) => {
                Ok(None)
            }
            Err(error) => Err(of_http(Self::ATTEMPT, error)),
        }
    }

    fn length(request: &HttpRequest) -> u64 {
        request.body
    }

    fn piece(request: &HttpRequest, offset: u64) -> &[u8] {
        piece_slice(offset, request.body - offset)
    }

    fn send(
        &mut self,
        connection: &mut Connection,
        stream: u64,
        piece: &[u8],
        is_last: bool,
    ) -> Result<usize, Failure> {
        match self.0.send_body(connection, stream, piece, is_last) {
            Ok(length) => Ok(length),
            Err(h3::Error::Done | h3::Error::StreamBlocked) => Ok(0),
            // The server has answered without reading all of the request (RFC 9114, section 4.1).
            Err(h3::Error::TransportError(quiche::Error::StreamStopped(Self::DONE))) => Ok(piece.len()),
            Err(error) => Err(of_http(Self::ATTEMPT, error)),
        }
    }

    fn receive(&mut self, connection: &mut Connection, exchanges: &mut Exchanges, scratch: &mut Vec<u8>) {
        scratch.resize(PIECE, 0);
        loop {
            let (stream, event) = match self.0.poll(connection) {
                Ok(event) => event,
                Err(h3::Error::Done) => return,
                // quiche closes the connection with it, which is what the requests then fail with.
                Err(error) => return exchanges.fail_all(&of_http(Self::ATTEMPT, error)),
            };
            let now = Instant::now();
            match event {
                Event::Headers { list, .. } => {
                    if let Some(exchange) = exchanges.get(stream) {
                        exchange.head(now, number(&list, b":status"), number(&list, b"content-length"));
                    }
                }
                Event::Data => {
                    while let Ok(length) = self.0.recv_body(connection, stream, scratch) {
                        if let Some(exchange) = exchanges.get(stream) {
                            exchange.body(now, &scratch[..length]);
                        }
                    }
                }
                Event::Finished => {
                    if let Some(exchange) = exchanges.get(stream) {
                        exchange.end(Self::ATTEMPT, now);
                    }
                }
                Event::Reset(code) => {
                    if let Some(exchange) = exchanges.get(stream) {
                        let message = format!("{}: the server reset the stream with {code:#x}", Self::ATTEMPT);
                        exchange.fail(Failure::new(ErrorKind::Reset, message));
                    }
                }
                Event::PriorityUpdate | Event::GoAway => {}
            }
        }
    }
}

fn of_http(attempt: &str, error: h3::Error) -> Failure {
    let kind = match error {
        h3::Error::TransportError(quiche::Error::StreamReset(_) | quiche::Error::StreamStopped(_)) => ErrorKind::Reset,
        h3::Error::TransportError(_) | h3::Error::InternalError => ErrorKind::Other,
        _ => ErrorKind::Protocol,
    };
    Failure::new(kind, format!("{attempt}: {error:?}"))
}
