//! The endpoint for tokio-quiche: its HTTP/3, and raw QUIC as an application on its connections.

mod answer;
mod client;
mod exchange;
mod frames;
mod hooks;
mod line;
mod raw;
mod server;
mod settings;
mod streams;
mod watched;

use std::process::ExitCode;

use wirelab_contract::protocol::Protocol;
use wirelab_endpoint::program::{Multiplexed, Program, Raw, version};

use crate::client::{Dialer, Http, OfStreams};
use crate::exchange::Requests;

/// The libraries do not say their versions; the lock file does.
const LOCK: &str = include_str!("../Cargo.lock");

fn main() -> ExitCode {
    let versions = ["tokio-quiche", "quiche", "boring"].map(|library| version(LOCK, library)).join(", ");
    Program::new("rust-tokio-quiche", "tokio-quiche", versions)
        .server(Protocol::H3, server::bind_h3)
        .server(Protocol::Quic, server::bind_quic)
        .client::<Multiplexed<Dialer<Http>, Requests>>(Protocol::H3)
        .client::<Multiplexed<Dialer<OfStreams>, Raw>>(Protocol::Quic)
        .main()
}
