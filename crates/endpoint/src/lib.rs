//! The load engine that drives clients, what every server offers, and the endpoints that are built into wirelab.
//!
//! `client/engine.rs` sends requests by a schedule and knows no protocol; one file per protocol implements the two traits
//! of `client/transport.rs`. `server/site.rs` decides what to answer; one file per protocol carries it. `contract.rs`
//! speaks the endpoint contract on standard input and output, `load.rs` drives the same engine in-process.
//!
//! A program outside this workspace that measures another library does so with [`program`]. It turns the feature `builtin`
//! off, and with it the libraries of the built-in endpoints; `h3` and `rustls` keep what the
//! crates of these names need.

#[cfg(feature = "builtin")]
mod allocator;
#[cfg(feature = "builtin")]
mod builtin;
pub mod client;
mod contract;
#[cfg(feature = "builtin")]
mod describe;
mod exporter;
mod file_limit;
#[cfg(feature = "builtin")]
mod grpc;
#[cfg(feature = "builtin")]
mod http2;
#[cfg(feature = "builtin")]
pub mod load;
mod lock_file;
#[cfg(feature = "builtin")]
pub mod look;
mod payload;
pub mod program;
#[cfg(feature = "builtin")]
mod quic_config;
mod quic_contract;
#[cfg(feature = "builtin")]
mod quic_log;
#[cfg(feature = "builtin")]
mod quic_meter;
#[cfg(feature = "builtin")]
mod quic_session;
#[cfg(feature = "builtin")]
mod quic_socket;
#[cfg(feature = "builtin")]
mod quic_stream;
#[cfg(all(test, feature = "builtin"))]
mod quic_tests;
#[cfg(feature = "builtin")]
mod quic_tokens;
mod raw;
mod raw_stream;
mod refusal;
mod server;
#[cfg(feature = "builtin")]
mod socket;
#[cfg(feature = "rustls")]
pub mod tls;
mod transport_accounts;
mod transport_reading;
#[cfg(feature = "builtin")]
mod udp_message;
pub mod udp_socket;
mod wait;

#[cfg(feature = "builtin")]
pub use builtin::{request, request_on, serve, serve_on};
#[cfg(feature = "builtin")]
pub use describe::{NAME, describe};
pub use refusal::{Failure, Refusal};
