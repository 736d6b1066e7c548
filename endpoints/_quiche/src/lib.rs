//! Code that the endpoints on quiche share, below any event loop.

mod facts;
mod failure;
mod fields;
mod tls;

pub use facts::{reading, record};
pub use failure::of_connection;
pub use fields::{number, request, response, text};
pub use tls::{client_context, context, no_tls, open_key_log, server_context};

/// Requests that a peer may have in flight on one connection, the same as of the built-in endpoint.
pub const STREAMS: u64 = 256;

/// Streams of one direction that a peer may open: HTTP/3 needs three, and some peers open a further one now and then.
pub const STREAMS_OF_ONE_DIRECTION: u64 = 100;

/// The size of datagrams until the handshake is done, whatever is set: the smallest of QUIC (RFC 9000, section 14).
pub const SMALLEST: u16 = 1200;
