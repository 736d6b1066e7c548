//! The part of HTTP/1.1 that a request without a body needs (RFC 9112).

use std::io;

use super::{BODY, Encoding, Stream};

/// Bytes read after the previous request.
#[derive(Default)]
pub struct Http1 {
    buffer: Vec<u8>,
}

impl Encoding for Http1 {
    fn read_request(&mut self, stream: &mut dyn Stream) -> io::Result<bool> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                self.buffer.drain(..end + 4);
                return Ok(true);
            }
            let mut chunk = [0; 2048];
            match stream.read(&mut chunk)? {
                0 => return Ok(false),
                count => self.buffer.extend_from_slice(&chunk[..count]),
            }
        }
    }

    fn respond(&mut self, stream: &mut dyn Stream, status: u16, body: &[u8]) -> io::Result<()> {
        let mut message = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {BODY}\r\n\r\n").into_bytes();
        message.extend_from_slice(body);
        stream.write_all(&message)?;
        stream.flush()
    }
}
