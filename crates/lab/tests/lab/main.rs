//! Processes and endpoints, in tests that need no guard.

mod endpoints;
mod locks;
mod process;
