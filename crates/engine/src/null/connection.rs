//! A connection of the server: its socket, TLS if there is any, and its machine.

use std::io::{self, BufRead, ErrorKind as IoKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use super::ServerMachine;
use crate::accounts::{Account, Accounts};
use crate::poller::Readiness;
use crate::refusal::Failure;

pub(super) struct Connection<M> {
    /// The first field, because fields drop in order: it reads the socket, which must be open.
    _account: Account,
    socket: TcpStream,
    session: Option<Box<ServerConnection>>,
    machine: M,
    /// Whether the peer sends nothing more.
    ended: bool,
}

/// The end of a connection, for any reason. The client sees it, and counts what it lost.
struct Broken;

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<Failure> for Broken {
    fn from(_: Failure) -> Self {
        Self
    }
}

impl<M: ServerMachine> Connection<M> {
    pub fn new(
        socket: TcpStream,
        tls: Option<&Arc<ServerConfig>>,
        machine: M,
        accounts: &Accounts,
    ) -> Result<Self, rustls::Error> {
        let session = tls.map(|config| ServerConnection::new(Arc::clone(config)).map(Box::new)).transpose()?;
        Ok(Self { _account: accounts.of_socket(&socket), socket, session, machine, ended: false })
    }

    pub const fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads, answers and writes as far as the kernel allows. Returns whether the connection goes on.
    pub fn proceed(&mut self, ready: Readiness, scratch: &mut [u8]) -> bool {
        let received = if ready.readable && !self.ended { self.read(ready, scratch) } else { Ok(()) };
        // What was asked before an error is answered.
        let flushed = self.flush();
        let is_over = (self.ended || self.machine.is_closing()) && self.machine.output().is_empty();
        if is_over && let Some(session) = &mut self.session {
            session.send_close_notify();
            let _ = session.write_tls(&mut &self.socket);
        }
        received.is_ok() && flushed.is_ok() && !is_over
    }

    fn read(&mut self, ready: Readiness, scratch: &mut [u8]) -> Result<(), Broken> {
        while !self.ended {
            match (&self.socket).read(scratch) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.take(&scratch[..count])?;
                    // The end of the stream needs another read; see `poller`.
                    if count < scratch.len() && !ready.ended {
                        break;
                    }
                }
                Err(error) if error.kind() == IoKind::WouldBlock => break,
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Broken> {
        let Some(session) = &mut self.session else { return Ok(self.machine.receive(bytes)?) };
        while !bytes.is_empty() {
            session.read_tls(&mut bytes)?;
            if session.process_new_packets().is_err() {
                // The alert tells the client why.
                let _ = session.write_tls(&mut &self.socket);
                return Err(Broken);
            }
            if let Some(mut early) = session.early_data() {
                let mut data = Vec::new();
                early.read_to_end(&mut data)?;
                self.machine.receive(&data)?;
            }
            loop {
                let mut reader = session.reader();
                // Bytes in rustls's buffer, without a copy; an empty slice means a goodbye, an error that there are
                // none.
                let count = match reader.fill_buf() {
                    Ok([]) => {
                        self.ended = true;
                        return Ok(());
                    }
                    Ok(decrypted) => {
                        self.machine.receive(decrypted)?;
                        decrypted.len()
                    }
                    Err(_) => break,
                };
                reader.consume(count);
            }
        }
        Ok(())
    }

    /// Writes the machine's output, as far as the kernel takes it.
    fn flush(&mut self) -> Result<(), Broken> {
        loop {
            if let Some(session) = &mut self.session {
                while session.wants_write() {
                    match session.write_tls(&mut &self.socket) {
                        Ok(_) => {}
                        Err(error) if error.kind() == IoKind::WouldBlock => return Ok(()),
                        Err(error) if error.kind() == IoKind::Interrupted => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            let output = self.machine.output();
            if output.is_empty() {
                return Ok(());
            }
            let written = match &mut self.session {
                Some(session) => session.writer().write(output),
                None => (&self.socket).write(output),
            };
            match written {
                // The buffer of TLS is full until the handshake ends.
                Ok(0) => return Ok(()),
                Ok(count) => self.machine.sent(count)?,
                Err(error) if error.kind() == IoKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
