//! The client: the spec defines the request, the schedule its time, the transport its encoding.

mod check;
pub(crate) mod control;
mod deadline;
#[cfg(feature = "builtin")]
pub(crate) mod dial;
#[cfg(feature = "builtin")]
mod early;
pub(crate) mod engine;
#[cfg(feature = "builtin")]
pub(crate) mod engine_quic;
#[cfg(test)]
mod engine_tests;
#[cfg(feature = "builtin")]
pub(crate) mod engine_thread;
pub(crate) mod engine_udp;
#[cfg(feature = "builtin")]
mod failure;
#[cfg(feature = "builtin")]
pub(crate) mod grpc;
#[cfg(feature = "builtin")]
mod grpc_wire;
#[cfg(feature = "builtin")]
pub(crate) mod h3;
#[cfg(feature = "h3")]
pub mod h3_channel;
#[cfg(feature = "h3")]
pub mod h3_requests;
pub(crate) mod http;
#[cfg(feature = "builtin")]
pub(crate) mod http1;
#[cfg(feature = "builtin")]
pub(crate) mod http2;
#[cfg(feature = "builtin")]
pub(crate) mod http2_channel;
#[cfg(feature = "builtin")]
mod http_body;
mod lanes;
pub mod multiplexed;
mod pool;
#[cfg(feature = "builtin")]
pub(crate) mod quic;
pub mod raw_requests;
#[cfg(feature = "builtin")]
mod stream;
#[cfg(feature = "builtin")]
pub(crate) mod tcp;
mod thread_state;
mod threads;
pub mod tickets;
pub mod transport;
#[cfg(feature = "builtin")]
pub(crate) mod udp;
mod validate;

pub(crate) use control::{Control, Ended};
pub use record::Results;
pub(crate) use threads::{Driver, Message};
#[cfg(feature = "builtin")]
pub(crate) use {
    control::Watch,
    failure::http as http_failure,
    http::Recipe,
    http_body::OutgoingBody,
    http2_channel::LocalExecutor,
    stream::{Dialed, Dialer},
};

pub use wirelab_engine::servers;
use wirelab_engine::{record, schedule};
