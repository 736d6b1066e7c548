//! HTTP/3 for the load engine: quinn's protocol machine without its runtime, on the reactor of the engine.

mod exchange;
mod socket;
