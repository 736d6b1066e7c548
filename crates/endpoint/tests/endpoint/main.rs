//! The built-in endpoints from outside: whole trials on loopback, in the threads of this program.
//!
//! One program for all of these tests, because the engine is generic over transports: each further program would compile it anew.

mod aging;
mod exposition;
mod faults;
mod heron;
mod pages;
mod quic_trials;
mod support;
mod transport;
mod trials;
