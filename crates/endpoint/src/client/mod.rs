//! The client: what to send comes from the spec, when from a schedule, how from a transport.

mod check;
mod control;
mod deadline;
mod dial;
pub(crate) mod engine;
mod failure;
mod h3;
mod http;
mod http1;
mod http2;
mod lanes;
mod pool;
mod quic;
mod record;
mod schedule;
mod stream;
mod tcp;
mod threads;
pub mod transport;
mod udp;
mod validate;

pub(crate) use control::{Control, Ended, Message, Watch};
pub use record::Results;
