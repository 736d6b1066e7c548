//! The endpoint for MsQuic: raw QUIC, and HTTP/3 by the crate `h3` over MsQuic's streams.
//!
//! MsQuic is a C library with threads of its own. The crate `msquic` carries its source and builds it; what is C in its
//! interface is in `connection.rs`, `listener.rs` and `stream.rs`, and nowhere else.

mod certificate;
mod client;
mod connection;
mod failure;
mod h3_adapter;
mod key_log;
mod library;
mod listener;
mod raw;
mod server;
mod settings;
mod sockets;
mod statistics;
mod stream;

use std::process::ExitCode;

use wirelab_contract::protocol::Protocol;
use wirelab_endpoint::program::{ByH3, Multiplexed, Program, Raw, version};

use crate::client::Dialer;

/// The libraries do not say their versions; the lock file does.
const LOCK: &str = include_str!("../Cargo.lock");

fn main() -> ExitCode {
    let versions = ["msquic", "h3"].map(|library| version(LOCK, library)).join(", ");
    let status = Program::new("c-msquic", "MsQuic", versions)
        .language("C")
        .server(Protocol::H3, server::bind_h3)
        .server(Protocol::Quic, server::bind_quic)
        .client::<Multiplexed<Dialer, ByH3<Dialer>>>(Protocol::H3)
        .client::<Multiplexed<Dialer, Raw>>(Protocol::Quic)
        .main();
    library::close();
    status
}
