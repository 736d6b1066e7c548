//! Work on other hosts: an agent there, and its client here.
//!
//! A lab gives access to a host by [`Remote`], which starts a command of the agent and returns its byte stream. This
//! crate knows neither the transport, such as the exec of a pod or a session of ssh, nor the kind of host.
//!
//! `wirelab agent` is the agent ([`there::main`]). Here, [`RemoteProcess`] is an endpoint that the agent runs,
//! [`Watcher`] an agent that observes endpoints, and [`Call`] a short command.

mod call;
mod files;
mod path;
mod process;
mod remote;
pub mod there;
mod watcher;

pub use call::{Call, output};
pub use files::Sent;
pub use path::measure_path;
pub use process::RemoteProcess;
pub use remote::{Complaints, Ended, Loss, Piece, Remote, State, Stream};
pub use there::{
    Facts, HOLDER, Held, Kind, NAMING_PORT, NO_PEERS, Peers, ROOT, ROUTING_TIMEOUT, SIGN_OF_LIFE, SUBCOMMAND,
};
pub use watcher::{ANSWERING, Watcher};

#[cfg(test)]
mod tests;
