//! A connection as the work on its streams sees it.

use quiche::{Connection, h3};

/// A connection, and HTTP/3 on it where that is spoken.
pub struct Wire<'a> {
    pub connection: &'a mut Connection,
    /// HTTP/3.
    pub http: Option<&'a mut h3::Connection>,
    /// The buffer for reads.
    pub scratch: &'a mut [u8],
}

impl Wire<'_> {
    /// Sends a piece, and how much of it; none: nothing can be sent now. A stream that fails is the client's to report.
    pub fn send(&mut self, stream: u64, piece: &[u8], is_last: bool) -> Result<Option<usize>, ()> {
        match &mut self.http {
            Some(http) => match http.send_body(self.connection, stream, piece, is_last) {
                Ok(length) => Ok(Some(length)),
                Err(h3::Error::Done | h3::Error::StreamBlocked) => Ok(None),
                Err(_) => Err(()),
            },
            None => match self.connection.stream_send(stream, piece, is_last) {
                Ok(length) => Ok(Some(length)),
                Err(quiche::Error::Done) => Ok(None),
                Err(_) => Err(()),
            },
        }
    }
}
