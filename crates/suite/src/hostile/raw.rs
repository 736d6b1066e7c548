//! The framing of the raw transports `tcp` and `tls`.

use std::io;

use super::{Encoding, Stream};

/// Stateless: every request is a header and a body.
pub struct Raw;

impl Encoding for Raw {
    fn read_request(&mut self, stream: &mut dyn Stream) -> io::Result<bool> {
        let mut header = [0; 24];
        if let Err(error) = stream.read_exact(&mut header) {
            return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(false) } else { Err(error) };
        }
        let size = header[8..16].iter().fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
        io::copy(&mut io::Read::take(stream, size), &mut io::sink())?;
        Ok(true)
    }

    fn respond(&mut self, stream: &mut dyn Stream, _: u16, body: &[u8]) -> io::Result<()> {
        stream.write_all(body)?;
        stream.flush()
    }
}
