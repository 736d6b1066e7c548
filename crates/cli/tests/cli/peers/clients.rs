//! Scripted clients: each `[[client]]` of `tests/peers/clients-*.toml` sends a request in an unusual or a wrong way,
//! with what the built-in server must make of it. `tests/peers/README.md` documents the format.
//!
//! A connection that must survive gets a correct request afterwards. One that must end is read to its end, and the
//! server must then answer on another one. So no outcome depends on time.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde::Deserialize;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::servers::{Builtin, Place, serve};

use super::http2::{self, Frame};
use super::script::{Lines, PACE, Piece, parsed, pieces};

/// The longest wait of a client for an answer, far above the need of a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the server must not read.
const STALL: Duration = Duration::from_secs(1);

/// Largest amount that a client repeats, in bytes.
const MOST: usize = 64 << 20;

/// Memory that the server may need for one of the clients, in KiB.
const MEMORY: u64 = 16 << 10;

/// The stream of the correct request at the end.
const LAST_STREAM: u32 = (1 << 31) - 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    protocol: Protocol,
    client: Vec<Client>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    name: String,
    rule: String,
    send: Lines,
    #[serde(default)]
    endless: Option<Lines>,
    #[serde(default)]
    pieces: Option<usize>,
    /// Whether it closes its side after what it sends.
    #[serde(default)]
    hangs_up: bool,
    /// Whether its frames follow the preface and settings of HTTP/2.
    #[serde(default)]
    bare: bool,
    expect: Outcome,
}

/// The required behaviour of the server. Two outcomes with the same answers differ in the end of the connection.
#[derive(Deserialize, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
struct Outcome {
    /// The statuses of its responses, in order.
    answers: Vec<u16>,
    /// The error codes of streams that it reset.
    resets: Vec<u32>,
    /// The error code of its GOAWAY.
    goaway: Option<u32>,
    /// Whether it closes the connection.
    ends: bool,
    /// Whether it stops reading while the client reads nothing.
    stalls: bool,
}

/// The names of the clients of a file.
pub(super) fn names(file: &str) -> Vec<String> {
    parsed::<File>(file).client.into_iter().map(|client| client.name).collect()
}

/// Lets all clients of a file meet the built-in server.
#[track_caller]
fn meet(file: &str) {
    let File { protocol, client: clients } = parsed(file);
    let place = Place::new();
    let server = Builtin::start(&place, serve(protocol));
    let mut wrong = Vec::new();
    for client in &clients {
        let before = server.memory();
        match client.outcome(protocol, server.port) {
            Ok(found) if found == client.expect => {}
            Ok(found) => wrong.push(format!("{}: {found:?}, not {:?} ({})", client.name, client.expect, client.rule)),
            Err(error) => wrong.push(format!("{}: {error} ({})", client.name, client.rule)),
        }
        let after = server.memory();
        if after > before + MEMORY {
            wrong.push(format!("{}: the server's memory grew from {before} to {after} KiB", client.name));
        }
    }
    server.stop();
    assert!(wrong.is_empty(), "{} of {} clients of {file}:\n{}", wrong.len(), clients.len(), wrong.join("\n"));
}

impl Client {
    fn outcome(&self, protocol: Protocol, port: u16) -> Result<Outcome> {
        let mut tcp = connect(port)?;
        if self.expect.stalls {
            tcp.set_write_timeout(Some(STALL))?;
        }
        let mut found = Outcome::default();
        let mut reader = Reader { tcp: tcp.try_clone()?, is_http2: protocol.multiplexes(), is_head: self.is_head() };
        // The server may end the connection while the client still sends.
        let sent = self.send(protocol, &mut tcp);
        if self.hangs_up {
            let _ = tcp.shutdown(Shutdown::Write);
        }
        if self.expect.stalls {
            found.stalls = matches!(&sent, Err(error) if error.kind() == ErrorKind::WouldBlock);
            return works(protocol, port).map(|()| found);
        }
        let survives = !self.expect.ends;
        if survives {
            sent?;
            tcp.write_all(&last(protocol))?;
        }
        let mut answers = Vec::new();
        while let Some(said) = reader.next()? {
            match said {
                Said::Status(stream, status) => answers.push((stream, status)),
                Said::Reset(code) => found.resets.push(code),
                Said::Goaway(code) => found.goaway = Some(code),
            }
            // Streams are answered in any order.
            let answered = |stream| stream == LAST_STREAM || !protocol.multiplexes();
            let is_complete = answers.len() > self.expect.answers.len() && answers.iter().any(|one| answered(one.0));
            if survives && is_complete && found.resets.len() >= self.expect.resets.len() {
                answers.sort_by_key(|one| one.0);
                let last = answers.pop();
                found.answers = answers.into_iter().map(|one| one.1).collect();
                return match last {
                    Some((_, 200)) => Ok(found),
                    _ => Err(Error::other(format!("{found:?}, and {last:?} for a correct request"))),
                };
            }
        }
        found.answers = answers.into_iter().map(|one| one.1).collect();
        found.ends = true;
        // Whether a request was answered before the connection broke depends on time.
        if found.goaway.is_some_and(|code| code != 0) {
            found.answers.clear();
        }
        works(protocol, port).map(|()| found)
    }

    fn is_head(&self) -> bool {
        match &self.send {
            Lines::Text(text) => text.starts_with("HEAD "),
            Lines::Frames(frames) => frames.iter().any(|frame| frame.contains(":method: HEAD")),
        }
    }

    fn send(&self, protocol: Protocol, tcp: &mut TcpStream) -> Result<()> {
        let bytes =
            |pieces: &[Piece], stream| -> Vec<u8> { pieces.iter().flat_map(|piece| piece.bytes(stream)).collect() };
        if !self.bare {
            tcp.write_all(&preface(protocol))?;
        }
        for piece in bytes(&pieces(protocol, Some(self.send.clone())), 1).chunks(self.pieces.unwrap_or(usize::MAX)) {
            tcp.write_all(piece)?;
            if self.pieces.is_some() {
                std::thread::sleep(PACE);
            }
        }
        let endless = pieces(protocol, self.endless.clone());
        if endless.is_empty() {
            return Ok(());
        }
        let mut sent = 0;
        // Each time on the next stream.
        for stream in (1..).step_by(2) {
            let bytes = bytes(&endless, stream);
            tcp.write_all(&bytes)?;
            sent += bytes.len();
            if sent > MOST {
                break;
            }
        }
        Err(Error::other(format!("the server read {MOST} bytes of what has no end")))
    }
}

/// Asks the server on another connection.
fn works(protocol: Protocol, port: u16) -> Result<()> {
    let mut tcp = connect(port)?;
    tcp.write_all(&[&preface(protocol)[..], &last(protocol)].concat())?;
    let mut reader = Reader { tcp, is_http2: protocol.multiplexes(), is_head: false };
    match reader.next()? {
        Some(Said::Status(_, 200)) => Ok(()),
        said => Err(Error::other(format!("{said:?} on another connection"))),
    }
}

fn connect(port: u16) -> Result<TcpStream> {
    let tcp = TcpStream::connect(("127.0.0.1", port))?;
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    tcp.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(tcp)
}

/// The first bytes of a client of HTTP/2.
fn preface(protocol: Protocol) -> Vec<u8> {
    match protocol.multiplexes() {
        true => [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &Frame::read("SETTINGS").bytes(0)].concat(),
        false => Vec::new(),
    }
}

/// A correct request.
fn last(protocol: Protocol) -> Vec<u8> {
    match protocol.multiplexes() {
        true => {
            let fields = "| :method: GET | :scheme: http | :authority: localhost | :path: /bytes/5";
            Frame::read(&format!("HEADERS end_headers end_stream {fields}")).bytes(LAST_STREAM)
        }
        false => b"GET /bytes/5 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(),
    }
}

/// A message of a server.
#[derive(Debug)]
enum Said {
    /// The status of a response, and its stream.
    Status(u32, u16),
    Reset(u32),
    Goaway(u32),
}

/// Reads what a server says.
struct Reader {
    tcp: TcpStream,
    is_http2: bool,
    /// Whether the first response has no body.
    is_head: bool,
}

impl Reader {
    /// `None`: the server closed the connection.
    fn next(&mut self) -> Result<Option<Said>> {
        let said = if self.is_http2 { self.frame() } else { self.response() };
        match said {
            Ok(said) => Ok(Some(said)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => {
                Err(Error::other("the server neither answers nor closes"))
            }
            // In the midst of a response as well: a server may reset what it does not want to read.
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn response(&mut self) -> Result<Said> {
        let head = self.until(b"\r\n\r\n")?.to_lowercase();
        let status = head[9..12].parse().map_err(Error::other)?;
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
        let is_head = std::mem::take(&mut self.is_head);
        let has_body = !is_head && !matches!(status, 100..200 | 204 | 304);
        match field("content-length:") {
            None if is_head => return Err(Error::other("a response to HEAD without a length")),
            _ if !has_body => {}
            Some(length) => self.skip(length.parse().map_err(Error::other)?)?,
            None if field("transfer-encoding:").is_some() => drop(self.until(b"0\r\n\r\n")?),
            None => {}
        }
        Ok(Said::Status(0, status))
    }

    fn frame(&mut self) -> Result<Said> {
        loop {
            let mut head = [0; 9];
            self.tcp.read_exact(&mut head)?;
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            self.tcp.read_exact(&mut payload)?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
            match http2::TYPES[usize::from(head[3])] {
                "HEADERS" => {
                    if let Some(status) = payload.iter().find_map(|byte| http2::status(*byte)) {
                        return Ok(Said::Status(stream, status));
                    }
                    // Otherwise they are trailers.
                }
                "RST_STREAM" => return Ok(Said::Reset(number(0))),
                "GOAWAY" => return Ok(Said::Goaway(number(4))),
                "DATA" if self.is_head && stream < LAST_STREAM => return Err(Error::other("a body for HEAD")),
                _ => {}
            }
        }
    }

    /// Reads up to an end, and returns it as text.
    fn until(&mut self, end: &[u8]) -> Result<String> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end) {
            let mut byte = [0];
            self.tcp.read_exact(&mut byte)?;
            bytes.extend(byte);
        }
        String::from_utf8(bytes).map_err(Error::other)
    }

    fn skip(&mut self, count: u64) -> Result<()> {
        let read = std::io::copy(&mut (&mut self.tcp).take(count), &mut std::io::sink())?;
        if read == count { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }
}

#[test]
fn the_server_of_http1_answers_unusual_requests_and_refuses_wrong_ones() {
    meet("clients-http1.toml");
}

#[test]
fn the_server_of_http2_answers_unusual_requests_and_refuses_wrong_ones() {
    meet("clients-http2.toml");
}
