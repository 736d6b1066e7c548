//! The client's side of HTTP/3 (RFC 9114) above the streams of QUIC, without input or output.

mod fields;
mod frame;

pub use fields::Decoder;
