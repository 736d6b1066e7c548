//! The client: what to send comes from the spec, when from a schedule, how from a transport.

mod bench;
mod check;
pub(crate) mod control;
mod deadline;
pub(crate) mod dial;
pub(crate) mod engine;
#[cfg(test)]
mod engine_tests;
mod failure;
pub(crate) mod h3;
mod http;
mod http1;
mod http2;
mod lanes;
mod pool;
pub(crate) mod quic;
mod record;
mod schedule;
mod servers;
mod stream;
mod tcp;
mod threads;
pub mod transport;
pub(crate) mod udp;
mod validate;

pub(crate) use control::{Control, Ended, Watch};
pub(crate) use failure::http as http_failure;
pub(crate) use http::Recipe;
pub(crate) use http2::LocalExecutor;
pub use record::Results;
pub(crate) use stream::{Dialed, Dialer};
pub(crate) use threads::Message;
