//! Servers that misbehave on purpose, in the suite's process, to test the errors that a client reports.
//!
//! Each server answers a number of connections correctly, so that the check request succeeds, and then misbehaves. One
//! file per protocol encodes and decodes; this file handles connections.

mod grpc;
mod http1;
mod http2;
mod raw;
mod tls;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;
use wirelab_model::protocol::Protocol;

use crate::material::Material;
use crate::pair::LOCALHOST;
use crate::set_up_error::SetUpError;

/// Size of a correct response in bytes. The response is the pattern whatever the request asks for, except in gRPC.
pub const BODY: usize = 1_000;

/// Number of body bytes sent before the fault.
const BEFORE: usize = 10;

/// Time limit of a silent connection, longer than any client of the suite waits.
const LONGEST: Duration = crate::STEP_LIMIT;

/// The fault of a hostile server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Announces the whole body, sends ten bytes of it, and closes.
    Truncate,
    /// Announces the whole body, sends ten bytes of it, and resets the connection.
    Reset,
    /// Accepts the connection and never sends a byte.
    Silent,
    /// Sends bytes that violate the protocol.
    Nonsense,
    /// Answers with status 503 and the correct body.
    Status,
    /// Omits ALPN in the handshake.
    NoAlpn,
}

/// A stream in clear text or within TLS.
trait Stream: Read + Write + Send {
    /// Closes the stream as cleanly as the protocol allows.
    fn close(&mut self) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn close(&mut self) -> io::Result<()> {
        self.shutdown(std::net::Shutdown::Write)
    }
}

/// The encoding of a protocol on the server's side.
trait Encoding: Send {
    /// Reads one request. Returns `false` if the client has closed.
    fn read_request(&mut self, stream: &mut dyn Stream) -> io::Result<bool>;

    /// Writes a response with this status that announces `BODY` bytes and has this body. Ends the response only if the
    /// body is complete.
    fn respond(&mut self, stream: &mut dyn Stream, status: u16, body: &[u8]) -> io::Result<()>;
}

/// A running hostile server. Dropping it stops the server; its clients must have ended before.
pub struct Hostile {
    /// The port that it listens on.
    pub port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    /// Starts a server that answers `good` connections correctly and misbehaves on all later ones.
    pub fn start(protocol: Protocol, fault: Fault, good: u32, material: &Material) -> Result<Self, SetUpError> {
        const ATTEMPT: &str = "starting a hostile server";
        let listener =
            TcpListener::bind(SocketAddr::new(LOCALHOST, 0)).map_err(|error| SetUpError::new(ATTEMPT, error))?;
        let port = listener.local_addr().map_err(|error| SetUpError::new(ATTEMPT, error))?.port();
        let tls = match protocol.alpn() {
            Some(alpn) => Some(
                tls::config(material, (fault != Fault::NoAlpn).then_some(alpn))
                    .map_err(|error| SetUpError::new(ATTEMPT, error))?,
            ),
            None => None,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                if stopped.load(Ordering::Acquire) {
                    break;
                }
                let (Ok(stream), tls) = (stream, tls.clone()) else { continue };
                let fault = (number as u64 >= u64::from(good)).then_some(fault);
                // Only the client's reaction matters, so errors on this side are ignored.
                connections.push(std::thread::spawn(move || drop(serve_connection(protocol, fault, stream, tls))));
            }
            for thread in connections {
                let _ = thread.join();
            }
        });
        Ok(Self { port, stop, thread: Some(thread) })
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the thread, which waits for a connection.
        let _ = TcpStream::connect(SocketAddr::new(LOCALHOST, self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether the suite has a hostile server of a protocol.
pub const fn has_server_of(protocol: Protocol) -> bool {
    !protocol.uses_udp()
}

fn serve_connection(
    protocol: Protocol,
    fault: Option<Fault>,
    tcp: TcpStream,
    tls: Option<tls::Config>,
) -> io::Result<()> {
    tcp.set_read_timeout(Some(LONGEST))?;
    tcp.set_nodelay(true)?;
    let socket = tcp.try_clone()?;
    if fault == Some(Fault::Silent) {
        return wait_for_end(&socket);
    }
    if fault == Some(Fault::Nonsense) {
        // Waits for data from the client, which may drop unsolicited bytes.
        let _ = (&socket).read(&mut [0; 1024])?;
        (&socket).write_all(b"\x07nonsense, not a response\r\n\r\n")?;
        socket.shutdown(std::net::Shutdown::Write)?;
        return wait_for_end(&socket);
    }
    let mut stream: Box<dyn Stream> = match tls {
        Some(config) => Box::new(tls::accept(config, tcp)?),
        None => Box::new(tcp),
    };
    let mut encoding: Box<dyn Encoding> = match protocol {
        Protocol::H1c | Protocol::H1 => Box::new(http1::Http1::default()),
        Protocol::H2c | Protocol::H2 => Box::new(http2::Http2::default()),
        Protocol::Grpcc | Protocol::Grpc => Box::new(grpc::Grpc::default()),
        _ => Box::new(raw::Raw),
    };
    let body = wirelab_model::pattern::body(BODY);
    while encoding.read_request(&mut *stream)? {
        match fault {
            Some(Fault::Truncate) => {
                encoding.respond(&mut *stream, 200, &body[..BEFORE])?;
                stream.close()?;
                return wait_for_end(&socket);
            }
            Some(Fault::Reset) => {
                encoding.respond(&mut *stream, 200, &body[..BEFORE])?;
                // With this option the last handle sends RST when it closes at the end of this function.
                return SockRef::from(&socket).set_linger(Some(Duration::ZERO));
            }
            Some(Fault::Status) => encoding.respond(&mut *stream, 503, &body)?,
            None | Some(Fault::NoAlpn | Fault::Silent | Fault::Nonsense) => {
                encoding.respond(&mut *stream, 200, &body)?
            }
        }
    }
    Ok(())
}

/// Discards input until the client closes, so that closing here cannot reset the connection.
fn wait_for_end(mut socket: &TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while socket.read(&mut buffer)? > 0 {}
    Ok(())
}
