//! The load engine of clients, the common parts of servers, and the endpoints built into wirelab.
//!
//! `client/engine.rs` sends requests by a schedule, independent of the protocol; one file per protocol implements the
//! two traits of `client/transport.rs`. `server/site.rs` decides the answers; one file per protocol sends them.
//! `contract.rs` implements the endpoint contract on standard input and output, `load.rs` runs the same engine
//! in-process.
//!
//! A program outside this workspace uses [`program`] to measure another library. It disables the feature `builtin`, and
//! with it the libraries of the built-in endpoints; `h3` and `rustls` keep the dependencies of those crates.

#[cfg(feature = "builtin")]
mod allocator;
#[cfg(feature = "builtin")]
mod builtin;
#[cfg(feature = "builtin")]
pub mod call;
pub mod client;
mod contract;
#[cfg(feature = "builtin")]
mod describe;
#[cfg(feature = "builtin")]
pub mod engine;
mod exporter;
#[cfg(feature = "builtin")]
mod grpc;
#[cfg(feature = "builtin")]
pub mod load;
mod lock_file;
#[cfg(feature = "builtin")]
pub mod look;
#[cfg(feature = "builtin")]
mod metered;
#[cfg(feature = "builtin")]
pub mod own_client;
mod own_program;
mod own_server;
pub mod program;
#[cfg(feature = "builtin")]
mod quic_batches;
#[cfg(feature = "builtin")]
mod quic_config;
mod quic_contract;
#[cfg(feature = "builtin")]
mod quic_log;
#[cfg(feature = "builtin")]
mod quic_meter;
#[cfg(feature = "builtin")]
pub mod quic_padding;
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
mod raw_stream;
#[cfg(feature = "builtin")]
pub mod reflection;
mod server;
mod stderr;
#[cfg(feature = "builtin")]
mod udp_message;
pub mod udp_socket;
mod wait;

#[cfg(feature = "builtin")]
pub use builtin::{request, request_on, serve, serve_on};
#[cfg(feature = "builtin")]
pub use describe::{NAME, describe};
#[cfg(feature = "builtin")]
pub use own_client::OwnClient;
pub use own_server::{describe_own_server, run_own_server};
pub use refusal::{Failure, Refusal};
#[cfg(feature = "builtin")]
pub use udp_message::{Coverage as UdpCoverage, Header as UdpHeader};

#[cfg(feature = "builtin")]
use wirelab_engine::tls;
use wirelab_engine::{accounts as transport_accounts, file_limit, payload, raw, reading as transport_reading, refusal};
#[cfg(feature = "builtin")]
use wirelab_engine::{http2::windows as http2, socket};

/// Whether the endpoints are compiled with optimisation. Without it, measurements describe the compiler's settings.
pub const OPTIMISED: bool = wirelab_engine::OPTIMISED && matches!(env!("WIRELAB_OPT_LEVEL").as_bytes(), b"2" | b"3");
