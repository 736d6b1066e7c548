//! The built-in endpoints from outside: whole trials on loopback, in the threads of this program.
//!
//! One program for all these tests, because the engine is generic over transports, and each additional program would
//! compile it again.

mod aging;
mod exposition;
mod faults;
mod heron;
mod pages;
mod quic_trials;
mod support;
mod transport;
mod trials;
