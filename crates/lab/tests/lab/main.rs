//! Processes and endpoints, in programs that need no guard.

mod endpoints;
mod locks;
mod process;
