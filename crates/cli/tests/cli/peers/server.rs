//! Runs a script as a server.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::servers::Place;

use super::script::{End, PACE, Peer, Piece};
use super::{http1, http2, http3};

/// A server on threads of the test, which end with the test's process.
pub(super) struct Server {
    pub(super) port: u16,
}

/// A protocol on the server's side, as far as scripts need it.
pub(super) trait Requests {
    /// Reads up to the end of a request, and returns its stream; an error if the client is gone.
    fn next(&mut self, wire: &mut dyn Wire) -> Result<u32>;

    /// The first bytes of a correct server.
    fn opening(&self) -> Vec<u8>;

    /// A correct response without a body.
    fn well(&self, stream: u32) -> Vec<u8>;

    /// Notes what the server has sent.
    fn sent(&mut self, _: &[Piece]) {}
}

/// A connection in clear text or within TLS.
pub(super) trait Wire: Read + Write {
    /// Says that nothing follows, as TLS has it.
    fn say_goodbye(&mut self) -> Result<()>;

    /// The transport.
    fn tcp(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn say_goodbye(&mut self) -> Result<()> {
        Ok(())
    }

    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Wire for StreamOwned<ServerConnection, TcpStream> {
    fn say_goodbye(&mut self) -> Result<()> {
        self.conn.send_close_notify();
        self.flush()
    }

    fn tcp(&self) -> &TcpStream {
        &self.sock
    }
}

impl Server {
    /// A server that answers its first `good` connections well, and all later ones as the script says.
    pub(super) fn start(peer: &Peer, place: &Place, good: usize) -> Self {
        if peer.protocol == Protocol::H3 {
            return Self { port: http3::start(peer, place, good) };
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let tls = |alpn: &[&str]| peer.protocol.is_secure().then(|| place.tls("good", alpn));
        let right = peer.protocol.alpn().unwrap_or_default();
        let well = tls(&[right]);
        let scripted = tls(&[peer.alpn.as_deref().unwrap_or(right)]);
        let peer = Arc::new(peer.clone());
        std::thread::spawn(move || {
            for (number, tcp) in listener.incoming().enumerate() {
                let Ok(tcp) = tcp else { return };
                let (by_script, peer) = (number >= good, Arc::clone(&peer));
                let tls = if by_script { scripted.clone() } else { well.clone() };
                // A conversation ends with an error when the client is gone.
                std::thread::spawn(move || drop(accept(&peer, by_script, tcp, tls)));
            }
        });
        Self { port }
    }
}

fn accept(peer: &Peer, by_script: bool, mut tcp: TcpStream, tls: Option<Arc<ServerConfig>>) -> Result<()> {
    tcp.set_nodelay(true)?;
    if by_script && !peer.instead_of_tls.is_empty() {
        send(peer, &peer.instead_of_tls, 0, &mut tcp)?;
        return end(peer, &mut tcp);
    }
    match tls {
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
            talk(peer, by_script, &mut StreamOwned::new(connection, tcp))
        }
        None => talk(peer, by_script, &mut tcp),
    }
}

fn talk(peer: &Peer, by_script: bool, wire: &mut dyn Wire) -> Result<()> {
    let mut requests: Box<dyn Requests> = match peer.protocol.multiplexes() {
        true => Box::new(http2::Requests::new(peer, by_script)),
        false => Box::new(http1::Requests),
    };
    if by_script {
        send(peer, &peer.opening, 0, wire)?;
        requests.sent(&peer.opening);
    } else {
        wire.write_all(&requests.opening())?;
    }
    loop {
        let id = requests.next(wire)?;
        if !by_script {
            wire.write_all(&requests.well(id))?;
            wire.flush()?;
            continue;
        }
        send(peer, &peer.answer, id, wire)?;
        requests.sent(&peer.answer);
        while !peer.endless.is_empty() {
            send(peer, &peer.endless, id, wire)?;
        }
        if peer.end != End::Keep {
            return end(peer, wire);
        }
    }
}

/// Ends a connection as the script says.
fn end(peer: &Peer, wire: &mut dyn Wire) -> Result<()> {
    match peer.end {
        End::Close => wire.say_goodbye()?,
        End::Reset => return SockRef::from(wire.tcp()).set_linger(Some(Duration::ZERO)),
        End::Keep | End::Cut => {}
    }
    let mut tcp = wire.tcp();
    if peer.end != End::Keep {
        tcp.shutdown(Shutdown::Write)?;
    }
    // Until the client closes, too.
    std::io::copy(&mut tcp, &mut std::io::sink()).map(drop)
}

pub(super) fn send(peer: &Peer, pieces: &[Piece], id: u32, wire: &mut dyn Wire) -> Result<()> {
    let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes(id)).collect();
    for piece in bytes.chunks(peer.pieces) {
        wire.write_all(piece)?;
        wire.flush()?;
        if peer.pieces != usize::MAX {
            std::thread::sleep(PACE);
        }
    }
    Ok(())
}

/// Reads exactly this number of bytes.
pub(super) fn read(wire: &mut dyn Wire, count: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    wire.read_exact(&mut bytes)?;
    Ok(bytes)
}
