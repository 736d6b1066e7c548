//! The part of HTTP/2 that a request without a body needs (RFC 9113, RFC 7541).

use std::io;

use super::{BODY, Encoding, Stream};

const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

pub const END_STREAM: u8 = 1;
const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// State of the connection.
#[derive(Default)]
pub struct Http2 {
    greeted: bool,
    stream: u32,
}

impl Encoding for Http2 {
    fn read_request(&mut self, stream: &mut dyn Stream) -> io::Result<bool> {
        if !self.greeted {
            stream.read_exact(&mut [0; PREFACE])?;
            write_frame(stream, SETTINGS, 0, 0, &[])?;
            self.greeted = true;
        }
        loop {
            let mut header = [0; 9];
            if let Err(error) = stream.read_exact(&mut header) {
                return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(false) } else { Err(error) };
            }
            let length = usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2]);
            let mut payload = vec![0; length];
            stream.read_exact(&mut payload)?;
            match (header[3], header[4]) {
                (SETTINGS, flags) if flags & ACK == 0 => write_frame(stream, SETTINGS, ACK, 0, &[])?,
                (PING, flags) if flags & ACK == 0 => write_frame(stream, PING, ACK, 0, &payload)?,
                (HEADERS, _) => {
                    self.stream = u32::from_be_bytes([header[5] & 0x7f, header[6], header[7], header[8]]);
                    return Ok(true);
                }
                _ => {}
            }
        }
    }

    fn respond(&mut self, stream: &mut dyn Stream, status: u16, body: &[u8]) -> io::Result<()> {
        // Literal fields without indexing; their names are entries 8 (:status) and 28 (content-length) of the static
        // table.
        let mut block = vec![0x08, 3];
        block.extend_from_slice(status.to_string().as_bytes());
        let length = BODY.to_string();
        block.extend_from_slice(&[0x0f, 0x0d, length.len() as u8]);
        block.extend_from_slice(length.as_bytes());
        self.write(stream, HEADERS, END_HEADERS, &block)?;
        self.write(stream, DATA, if body.len() == BODY { END_STREAM } else { 0 }, body)
    }
}

impl Http2 {
    /// Writes a frame on the request's stream.
    pub fn write(&self, stream: &mut dyn Stream, kind: u8, flags: u8, payload: &[u8]) -> io::Result<()> {
        write_frame(stream, kind, flags, self.stream, payload)
    }
}

fn write_frame(stream: &mut dyn Stream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> io::Result<()> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&id.to_be_bytes());
    frame.extend_from_slice(payload);
    stream.write_all(&frame)?;
    stream.flush()
}
