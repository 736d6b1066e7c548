//! The endpoints that are built into wirelab, and the load engine that drives their clients.
//!
//! `client/engine.rs` sends requests by a schedule and knows no protocol; one file per protocol implements the two traits
//! of `client/transport.rs`. `server/site.rs` decides what to answer; one file per protocol carries it. `contract.rs`
//! speaks the endpoint contract on standard input and output, `load.rs` drives the same engine in-process.

pub mod client;
mod contract;
mod describe;
mod http2;
pub mod load;
pub mod look;
mod payload;
mod quic_config;
mod quic_log;
mod quic_session;
mod quic_socket;
#[cfg(test)]
mod quic_tests;
mod quic_tokens;
mod raw;
mod refusal;
mod server;
mod socket;
mod tls;
mod transport_accounts;
mod transport_reading;
mod udp_message;
mod udp_socket;
mod wait;

pub use contract::{request, request_on, serve, serve_on};
pub use describe::{NAME, describe};
pub use refusal::{Failure, Refusal};
