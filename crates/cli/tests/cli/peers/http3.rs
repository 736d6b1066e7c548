//! Servers of HTTP/3 (RFC 9114): scripts write frames on the streams of a QUIC library.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{Error, Result};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    Connection, Endpoint, EndpointConfig, Incoming, RecvStream, SendStream, ServerConfig, TokioRuntime, VarInt,
};
use tokio::sync::Mutex;
use wirelab_testkit::servers::Place;

use super::script::{PACE, Peer, Piece, part, prefixed, unescape, variable};

/// The frame types by name.
const TYPES: [(&str, u64); 7] = [
    ("DATA", 0),
    ("HEADERS", 1),
    ("CANCEL_PUSH", 3),
    ("SETTINGS", 4),
    ("PUSH_PROMISE", 5),
    ("GOAWAY", 7),
    ("MAX_PUSH_ID", 13),
];

/// The types of unidirectional streams by name.
const STREAMS: [(&str, u64); 4] = [("control", 0), ("push", 1), ("encoder", 2), ("decoder", 3)];

/// Where a step happens.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// The stream of the request.
    Request,
    /// A unidirectional stream of the server, by its type and a number.
    Own(u64, u8),
}

/// A step of a script.
#[derive(Clone)]
pub(super) enum Step {
    /// Writes bytes.
    Write(Target, Vec<u8>),
    /// Ends a stream in order.
    Finish(Target),
    /// Ends a stream with an error.
    Reset(Target, VarInt),
    /// Ends the connection with an error.
    Close(VarInt),
}

impl Step {
    /// Reads a line, as documented in `tests/peers/README.md`.
    pub(super) fn read(line: &str) -> Self {
        let mut parts = line.split(" | ");
        let mut words = parts.next().unwrap().split_whitespace();
        let name = words.next().unwrap();
        let (mut target, mut length, mut number, mut bare) = (Target::Request, None, None, false);
        for word in words {
            match (word.strip_prefix('@'), word.strip_prefix("length=")) {
                (Some(stream), _) => target = self::target(stream),
                (_, Some(value)) => length = Some(value.parse().unwrap()),
                _ if word == "bare" => bare = true,
                _ => number = Some(word.parse().unwrap_or_else(|_| panic!("`{word}` in `{line}`"))),
            }
        }
        let error = || VarInt::from_u32(number.unwrap());
        match name {
            "FIN" => return Self::Finish(target),
            "RESET" => return Self::Reset(target, error()),
            "CLOSE" => return Self::Close(error()),
            "BYTES" => return Self::Write(target, parts.flat_map(unescape).collect()),
            _ => {}
        }
        let known = TYPES.iter().find(|known| known.0 == name);
        let kind =
            known.map_or_else(|| name.parse().unwrap_or_else(|_| panic!("`{name}` is no frame")), |known| known.1);
        // No entry of the dynamic table is needed (RFC 9204, section 4.5.1).
        let mut payload = if name == "HEADERS" && !bare { vec![0, 0] } else { Vec::new() };
        payload.extend(parts.flat_map(|text| part(text, field)));
        let length = length.unwrap_or(payload.len() as u64);
        Self::Write(target, [variable(kind), variable(length), payload].concat())
    }
}

/// A stream such as `control`, `33` (its type) or `control:2` (the second one).
fn target(name: &str) -> Target {
    let (name, number) = name.split_once(':').map_or((name, 1), |(name, number)| (name, number.parse().unwrap()));
    let known = STREAMS.iter().find(|known| known.0 == name);
    Target::Own(known.map_or_else(|| name.parse().unwrap(), |known| known.1), number)
}

/// A literal field with a literal name (RFC 9204, section 4.5.6).
fn field(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&prefixed(0x20, 3, name.len())[..], name, &prefixed(0, 7, value.len()), value].concat()
}

/// Starts a server that answers its first `good` connections well; returns its port.
pub(super) fn start(peer: &Peer, place: &Place, good: usize) -> u16 {
    let crypto = QuicServerConfig::try_from(Arc::unwrap_or_clone(place.tls("good", &["h3"]))).unwrap();
    let config = ServerConfig::with_crypto(Arc::new(crypto));
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let peer = Arc::new(peer.clone());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let runtime = Arc::new(TokioRuntime);
            let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, runtime).unwrap();
            let mut number = 0;
            while let Some(incoming) = endpoint.accept().await {
                let (peer, by_script) = (Arc::clone(&peer), number >= good);
                number += 1;
                // A conversation ends with an error when the client is gone.
                tokio::spawn(async move { talk(&peer, by_script, incoming).await.is_ok() });
            }
        });
    });
    port
}

/// The server's own streams of a connection.
type Own = Arc<Mutex<HashMap<Target, SendStream>>>;

async fn talk(peer: &Arc<Peer>, by_script: bool, incoming: Incoming) -> Result<()> {
    let connection = incoming.await?;
    let own = Own::default();
    let well = [Step::read("SETTINGS @control")];
    let opening = if by_script { steps(&peer.opening) } else { well.iter().collect() };
    for step in opening {
        take(peer, step, &connection, &own, None).await?;
    }
    loop {
        let (send, receive) = connection.accept_bi().await?;
        let (peer, connection, own) = (Arc::clone(peer), connection.clone(), Arc::clone(&own));
        tokio::spawn(async move { answer(&peer, by_script, &connection, &own, send, receive).await.is_ok() });
    }
}

/// The steps of a script.
fn steps(pieces: &[Piece]) -> Vec<&Step> {
    let mut steps = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Step(step) => steps.push(step),
            _ => panic!("a script of HTTP/3 consists of steps"),
        }
    }
    steps
}

async fn answer(
    peer: &Peer,
    by_script: bool,
    connection: &Connection,
    own: &Own,
    mut send: SendStream,
    mut receive: RecvStream,
) -> Result<()> {
    receive.read_to_end(1 << 20).await.map_err(Error::other)?;
    if !by_script {
        for step in ["HEADERS | :status: 200", "FIN"] {
            take(peer, &Step::read(step), connection, own, Some(&mut send)).await?;
        }
        return Ok(());
    }
    for step in steps(&peer.answer) {
        take(peer, step, connection, own, Some(&mut send)).await?;
    }
    while !peer.endless.is_empty() {
        for step in steps(&peer.endless) {
            take(peer, step, connection, own, Some(&mut send)).await?;
        }
    }
    // Dropping the stream would end it.
    connection.closed().await;
    Ok(())
}

async fn take(
    peer: &Peer,
    step: &Step,
    connection: &Connection,
    own: &Own,
    request: Option<&mut SendStream>,
) -> Result<()> {
    let target = match step {
        Step::Close(code) => {
            connection.close(*code, b"scripted");
            return Ok(());
        }
        Step::Write(target, _) | Step::Finish(target) | Step::Reset(target, _) => *target,
    };
    let mut streams = own.lock().await;
    let stream = match target {
        Target::Request => request.ok_or_else(|| Error::other("there is no request yet"))?,
        Target::Own(kind, _) => match streams.entry(target) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let stream = place.insert(connection.open_uni().await?);
                stream.write_all(&variable(kind)).await?;
                stream
            }
        },
    };
    match step {
        Step::Write(_, bytes) => {
            for piece in bytes.chunks(peer.pieces) {
                stream.write_all(piece).await?;
                if peer.pieces != usize::MAX {
                    tokio::time::sleep(PACE).await;
                }
            }
        }
        Step::Finish(_) => stream.finish().map_err(Error::other)?,
        Step::Reset(_, code) => stream.reset(*code).map_err(Error::other)?,
        Step::Close(_) => {}
    }
    Ok(())
}
