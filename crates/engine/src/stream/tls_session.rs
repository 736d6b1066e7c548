//! The TLS session of one connection, by rustls.

use std::io::{self, Write};

use rustls::{ClientConnection, HandshakeKind};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;

use crate::machine::{Inbox, Machine};
use crate::refusal::Failure;
use crate::tls::{self, ClientSide};

/// A session of a client.
pub(super) struct Session {
    tls: ClientConnection,
    /// Whether early data could be sent.
    early: bool,
    /// Early data that the server has not accepted yet.
    undecided: Vec<u8>,
    handshake: Option<Handshake>,
}

impl Session {
    pub fn start(side: &ClientSide) -> Result<Self, rustls::Error> {
        let mut tls = ClientConnection::new(side.config.clone(), side.name.clone())?;
        let early = tls.early_data().is_some();
        Ok(Self { tls, early, undecided: Vec::new(), handshake: None })
    }

    /// Whether requests can be sent before the handshake is complete.
    pub const fn is_early(&self) -> bool {
        self.early
    }

    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Decrypts bytes, not necessarily all, and removes them from the beginning.
    pub fn take(&mut self, bytes: &mut &[u8]) -> io::Result<()> {
        self.tls.read_tls(bytes)?;
        self.tls.process_new_packets().map(|_| ()).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Hands decrypted bytes to the machine. Returns whether the server has said goodbye.
    pub fn deliver(&mut self, machine: &mut impl Machine, inbox: &mut Inbox) -> Result<bool, Failure> {
        loop {
            let mut reader = self.tls.reader();
            // Bytes in rustls's buffer, without a copy; an empty slice means a goodbye, an error that there are none.
            let count = match io::BufRead::fill_buf(&mut reader) {
                Ok([]) => return Ok(true),
                Ok(bytes) => {
                    machine.receive(bytes, inbox)?;
                    bytes.len()
                }
                Err(_) => return Ok(false),
            };
            io::BufRead::consume(&mut reader, count);
        }
    }

    /// Reads the outcome of a complete handshake: the protocol, and the fate of early data, which is sent again if the
    /// server rejected it.
    pub fn settle(&mut self, alpn: Option<&str>) -> Result<(), Failure> {
        let got = self.tls.alpn_protocol();
        if got != alpn.map(str::as_bytes) {
            let got = got.map_or("nothing".into(), String::from_utf8_lossy);
            let message = format!("the server negotiated {got} (ALPN) instead of {}", alpn.unwrap_or("nothing"));
            return Err(Failure::new(ErrorKind::Protocol, message));
        }
        let accepted = self.tls.is_early_data_accepted();
        self.handshake = match (self.tls.handshake_kind(), self.early) {
            (None, _) => None,
            (Some(_), true) if accepted => Some(Handshake::EarlyAccepted),
            (Some(_), true) => Some(Handshake::EarlyRejected),
            (Some(HandshakeKind::Resumed), false) => Some(Handshake::Resumed),
            (Some(_), false) => Some(Handshake::Full),
        };
        let sent = std::mem::take(&mut self.undecided);
        if !accepted {
            let mut rest = &sent[..];
            while !rest.is_empty() {
                let count = self.tls.writer().write(rest).map_err(|error| {
                    Failure::new(ErrorKind::Other, format!("sending rejected early data again: {error}"))
                })?;
                if count == 0 {
                    let message = "rejected early data is larger than the buffer of TLS";
                    return Err(Failure::new(ErrorKind::Other, message));
                }
                rest = &rest[count..];
            }
        }
        Ok(())
    }

    /// Whether the session itself has something to send.
    pub fn has_output(&self) -> bool {
        self.tls.wants_write()
    }

    /// Encrypts the output of the machine and writes it, as far as the kernel takes it.
    pub fn flush(&mut self, socket: &mut impl Write, machine: &mut impl Machine) -> io::Result<()> {
        loop {
            self.encrypt(machine)?;
            while self.tls.wants_write() {
                match self.tls.write_tls(socket) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            if machine.output().is_empty() || !self.can_send() {
                return Ok(());
            }
        }
    }

    /// Whether another byte of a machine can be encrypted now.
    fn can_send(&mut self) -> bool {
        match self.tls.is_handshaking() {
            true => self.tls.early_data().is_some_and(|early| early.bytes_left() > 0),
            false => true,
        }
    }

    fn encrypt(&mut self, machine: &mut impl Machine) -> io::Result<()> {
        loop {
            let output = machine.output();
            if output.is_empty() {
                return Ok(());
            }
            let count = if self.tls.is_handshaking() {
                let Some(mut early) = self.tls.early_data() else { return Ok(()) };
                let count = early.write(output)?;
                self.undecided.extend_from_slice(&output[..count]);
                count
            } else {
                self.tls.writer().write(output)?
            };
            // The buffer of TLS is full, or no more early data is allowed.
            if count == 0 {
                return Ok(());
            }
            machine.sent(count);
        }
    }

    /// Says goodbye, if the kernel takes it.
    pub fn close(&mut self, socket: &mut impl Write, machine: &mut impl Machine) {
        let _ = self.flush(socket, machine);
        self.tls.send_close_notify();
        let _ = self.flush(socket, machine);
    }

    /// Tells the server why its bytes were refused, if the kernel takes it.
    pub fn send_alert(&mut self, socket: &mut impl Write) {
        while self.tls.wants_write() && self.tls.write_tls(socket).is_ok() {}
    }

    /// The kind of handshake; `None` until it is complete.
    pub const fn handshake(&self) -> Option<Handshake> {
        self.handshake
    }

    pub fn has_ticket(&self) -> bool {
        self.tls.tls13_tickets_received() > 0
    }

    /// Negotiated parameters, under the names of `configured`.
    pub fn facts(&self) -> Configured {
        tls::facts(&self.tls)
    }
}
