//! JSON messages over a WebSocket, as both the Chrome DevTools Protocol and WebDriver BiDi use them.
//!
//! A command has a number, and its answer the same number; all other messages are events. Events that arrive while an
//! answer is awaited are kept in order.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Error, Message, WebSocket};

/// How often a wait checks `stop`.
const LOOK: Duration = Duration::from_millis(100);

/// Time-out of the WebSocket's handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A connection to a browser.
#[derive(Debug)]
pub struct Wire {
    socket: WebSocket<TcpStream>,
    stop: Arc<AtomicBool>,
    number: u64,
    events: VecDeque<Value>,
}

/// Why no message was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireError {
    /// The deadline passed.
    Deadline,
    /// The user interrupted wirelab.
    Stopped,
    /// The browser refused the command, for this reason.
    Refused(String),
    /// The connection was lost.
    Lost(String),
}

impl Wire {
    /// Connects to a browser. `stop` ends all waiting.
    pub fn connect(host: &str, port: u16, path: &str, stop: Arc<AtomicBool>) -> Result<Self, WireError> {
        let lost = |error: &dyn std::fmt::Display| WireError::Lost(format!("connecting to {host}:{port}: {error}"));
        let stream = TcpStream::connect((host, port)).map_err(|error| lost(&error))?;
        let ready = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(HANDSHAKE)));
        ready.and_then(|()| stream.set_write_timeout(Some(HANDSHAKE))).map_err(|error| lost(&error))?;
        let (socket, _) =
            tungstenite::client(format!("ws://{host}:{port}{path}"), stream).map_err(|error| lost(&error))?;
        Ok(Self { socket, stop, number: 0, events: VecDeque::new() })
    }

    /// Sends a command without waiting for its answer; returns its number.
    pub fn post(&mut self, mut command: Value) -> Result<u64, WireError> {
        self.number += 1;
        command["id"] = json!(self.number);
        let sent = self.socket.send(Message::text(command.to_string()));
        sent.map_err(|error| WireError::Lost(error.to_string()))?;
        Ok(self.number)
    }

    /// Sends a command and waits for its result.
    pub fn call(&mut self, command: Value, deadline: Instant) -> Result<Value, WireError> {
        let number = self.post(command)?;
        loop {
            let mut message = self.read(deadline)?;
            if message["id"] == number {
                return result(&mut message);
            }
            self.keep(message);
        }
    }

    /// The next event.
    pub fn event(&mut self, deadline: Instant) -> Result<Value, WireError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let message = self.read(deadline)?;
            self.keep(message);
        }
    }

    /// Discards the events received so far.
    pub fn forget(&mut self) {
        self.events.clear();
    }

    /// Keeps an event; drops late answers to commands that timed out.
    fn keep(&mut self, message: Value) {
        if message["method"].is_string() {
            self.events.push_back(message);
        }
    }

    fn read(&mut self, deadline: Instant) -> Result<Value, WireError> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(WireError::Stopped);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(WireError::Deadline);
            }
            let lost = |error: &dyn std::fmt::Display| WireError::Lost(error.to_string());
            self.socket.get_ref().set_read_timeout(Some(left.min(LOOK))).map_err(|error| lost(&error))?;
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    return serde_json::from_str(&text)
                        .map_err(|error| WireError::Lost(format!("a message that is not JSON: {error}")));
                }
                Ok(Message::Close(_)) => return Err(lost(&"the browser closed the connection")),
                Ok(_) => {}
                // The socket's buffer keeps an incomplete message.
                Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(lost(&error)),
            }
        }
    }
}

/// The result of an answer, or the browser's reason for a refusal: CDP has an object `error`, BiDi a code and a
/// message.
fn result(answer: &mut Value) -> Result<Value, WireError> {
    let error = &answer["error"];
    if error.is_null() {
        return Ok(answer["result"].take());
    }
    let words = error["message"].as_str().or_else(|| answer["message"].as_str()).or_else(|| error.as_str());
    Err(WireError::Refused(words.unwrap_or("no reason given").to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_protocols_refusals_are_understood() {
        let refused = |mut answer| result(&mut answer).unwrap_err();
        let cdp = json!({ "id": 1, "error": { "code": -32000, "message": "No target" } });
        assert_eq!(refused(cdp), WireError::Refused("No target".to_owned()));
        let bidi = json!({ "type": "error", "id": 1, "error": "no such frame", "message": "Context 7 not found" });
        assert_eq!(refused(bidi), WireError::Refused("Context 7 not found".to_owned()));
        assert_eq!(result(&mut json!({ "id": 1, "result": { "a": 1 } })), Ok(json!({ "a": 1 })));
    }
}
