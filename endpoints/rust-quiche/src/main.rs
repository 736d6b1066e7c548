//! The endpoint for quiche: its HTTP/3 and raw QUIC, on an event loop of our own, because quiche does no input and
//! output.

mod answer;
mod client;
mod exchange;
mod http;
mod link;
mod outbox;
mod peer;
mod raw;
mod server;
mod settings;
mod shared;
mod socket;
mod speaker;
mod timers;
mod wire;
mod work;

use std::process::ExitCode;

use wirelab_contract::protocol::Protocol;
use wirelab_endpoint::program::{Multiplexed, Program, version};

use crate::client::{Dialer, Requests};
use crate::http::Http;
use crate::raw::Raw;

/// The libraries do not say their versions; the lock file does.
const LOCK: &str = include_str!("../Cargo.lock");

fn main() -> ExitCode {
    let versions = ["quiche", "boring"].map(|library| version(LOCK, library)).join(", ");
    Program::new("rust-quiche", "quiche", versions)
        .server(Protocol::H3, server::bind)
        .server(Protocol::Quic, server::bind)
        .client::<Multiplexed<Dialer<Http>, Requests>>(Protocol::H3)
        .client::<Multiplexed<Dialer<Raw>, Requests>>(Protocol::Quic)
        .main()
}
