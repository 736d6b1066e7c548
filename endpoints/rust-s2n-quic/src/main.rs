//! The endpoint for s2n-quic: HTTP/3 by the crate `h3` over its adapter, and raw QUIC.

mod client;
mod events;
mod server;
mod settings;
mod stream;
mod tls;

use std::process::ExitCode;

use wirelab_contract::protocol::Protocol;
use wirelab_endpoint::program::{ByH3, Multiplexed, Program, Raw, version};

use crate::client::Dialer;

/// The libraries do not say their versions; the lock file does.
const LOCK: &str = include_str!("../Cargo.lock");

fn main() -> ExitCode {
    let libraries = ["s2n-quic", "tachyon-quic", "h3", "rustls"];
    let versions = libraries.map(|library| version(LOCK, library)).join(", ");
    Program::new("rust-s2n-quic", "s2n-quic", versions)
        .server(Protocol::H3, server::bind_h3)
        .server(Protocol::Quic, server::bind_quic)
        .client::<Multiplexed<Dialer, ByH3<Dialer>>>(Protocol::H3)
        .client::<Multiplexed<Dialer, Raw>>(Protocol::Quic)
        .main()
}
