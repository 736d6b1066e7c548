//! The load engine: sends requests at the limit of the machine and records each of them.
//!
//! It is the instrument beside the endpoints that are measured: as little of the machine as possible per request, so
//! that a result describes the protocol and the other side. Nothing here allocates per request.
//!
//! | module | what it does |
//! |---|---|
//! | `machine` | the interface of a protocol as a state machine: bytes in, events and bytes out, no input or output |
//! | `http1`, `http2` | that machine for HTTP/1.1 and HTTP/2 |
//! | `raw` | the header of raw requests, and that machine for raw requests over TCP or TLS |
//! | `http3` | that machine for the streams of HTTP/3 |
//! | `link` | the interface of a connection with its socket, which the load drives |
//! | `stream` | a link over TCP, with or without TLS, for every machine of bytes |
//! | `tunnel` | the protocols between client and proxy, without input or output |
//! | `unix` | Unix sockets of servers |
//! | `poller` | the reactor: epoll, and one alarm |
//! | `null` | the null server, which answers at once, and the server's side of the machines |
//! | `load` | requests of one thread by a schedule, with time-outs and records |
//!
//! Every client shares `schedule`, `arrivals`, `record`, `requests`, `expected`, `progress`, `steady`, `intervals`,
//! `servers`, `socket`, `tls`, `accounts`, `reading`, `payload`, `raw`, `grpc`, `refusal` and `file_limit`. So do the
//! built-in endpoints.

pub mod accounts;
pub mod arrivals;
pub mod expected;
#[cfg(feature = "rustls")]
pub mod failure;
pub mod file_limit;
pub mod grpc;
#[cfg(feature = "load")]
pub mod http1;
#[cfg(feature = "load")]
pub mod http2;
#[cfg(feature = "load")]
pub mod http3;
pub mod intervals;
#[cfg(feature = "load")]
pub mod link;
#[cfg(feature = "load")]
pub mod load;
#[cfg(feature = "load")]
pub mod machine;
#[cfg(feature = "load")]
pub mod null;
pub mod payload;
#[cfg(feature = "load")]
pub mod poller;
pub mod progress;
pub mod raw;
pub mod reading;
pub mod record;
pub mod refusal;
pub mod requests;
pub mod results;
pub mod rounds;
pub mod schedule;
pub mod servers;
pub mod socket;
pub mod steady;
#[cfg(feature = "load")]
pub mod stream;
#[cfg(all(test, feature = "load"))]
mod testing;
#[cfg(feature = "rustls")]
pub mod tls;
#[cfg(feature = "load")]
pub mod tunnel;
#[cfg(feature = "load")]
pub mod unix;

/// Whether this crate is compiled with optimisation. Without it, measurements describe the compiler's settings.
pub const OPTIMISED: bool = matches!(env!("WIRELAB_OPT_LEVEL").as_bytes(), b"2" | b"3");
