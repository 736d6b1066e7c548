//! The part of gRPC that a response needs, on the frames of `http2.rs`.

use std::io;

use wirelab_model::heron;
use wirelab_model::protocol::Protocol;

use super::http2::{DATA, END_HEADERS, END_STREAM, HEADERS, Http2};
use super::{BODY, Encoding, Stream};

/// State of the connection.
#[derive(Default)]
pub struct Grpc(Http2);

impl Encoding for Grpc {
    fn read_request(&mut self, stream: &mut dyn Stream) -> io::Result<bool> {
        self.0.read_request(stream)
    }

    fn respond(&mut self, stream: &mut dyn Stream, status: u16, body: &[u8]) -> io::Result<()> {
        // A literal field without indexing; its name is entry 8 (:status) of the static table.
        let mut block = vec![0x08, 3];
        block.extend_from_slice(status.to_string().as_bytes());
        if status != 200 {
            // Like a proxy without its server: a gRPC server itself always sends 200.
            field(&mut block, "content-type", "text/plain");
            return self.0.write(stream, HEADERS, END_HEADERS | END_STREAM, &block);
        }
        field(&mut block, "content-type", "application/grpc");
        self.0.write(stream, HEADERS, END_HEADERS, &block)?;
        let answer = heron::answer(Protocol::Grpc, heron::NUMBER);
        let mut message = vec![0];
        message.extend_from_slice(&(answer.len() as u32).to_be_bytes());
        message.extend_from_slice(&answer);
        if body.len() < BODY {
            message.truncate(message.len() - 3);
            return self.0.write(stream, DATA, 0, &message);
        }
        self.0.write(stream, DATA, 0, &message)?;
        let mut trailers = Vec::new();
        field(&mut trailers, "grpc-status", "0");
        self.0.write(stream, HEADERS, END_HEADERS | END_STREAM, &trailers)
    }
}

/// A literal field without indexing, with a literal name.
fn field(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        block.push(text.len() as u8);
        block.extend_from_slice(text.as_bytes());
    }
}
