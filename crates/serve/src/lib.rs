//! The local web page: the runs of a folder with their reports, live progress, comparisons and histories.
//!
//! This crate knows browsers and pages. It knows no run folder: a [`Library`] answers what the pages show, and a
//! [`Workshop`] makes the changes that they ask for. Without a workshop the pages only read. Each request needs the
//! token of the printed address, and each change comes from a page of this server.

mod access;
mod library;
mod live;
mod pages;
mod reports;
mod server;
mod workshop;
mod writing;

pub use library::{Claim, Entry, Format, Library, LibraryError, Progress, State, StudyClaims};
pub use server::Server;
pub use workshop::{Checked, Draft, Mistake, Order, Saved, Source, Sources, Started, Workshop};
