//! The local web page: the runs of a folder with their reports, live progress, comparisons and histories.
//!
//! This crate knows browsers and pages. It knows no run folder: a [`Library`] answers what the pages show. The pages
//! only read; each request needs the token of the printed address.

mod access;
mod library;
mod live;
mod pages;
mod reports;
mod server;

pub use library::{Entry, Format, Library, LibraryError, Progress, State};
pub use server::Server;
