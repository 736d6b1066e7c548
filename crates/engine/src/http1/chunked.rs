//! Bodies in chunks (RFC 9112, section 7.1).

use wirelab_contract::error_kind::ErrorKind;

use crate::refusal::Failure;

/// Largest chunk extension, and largest trailer section, in bytes.
const LARGEST: u32 = 64 * 1024;

/// The decoder of one body.
#[derive(Debug, Default)]
pub struct Chunks {
    state: State,
    /// Size of the current chunk, or bytes that are left of it.
    size: u64,
    /// Digits of the size, or bytes of extension or trailers so far.
    count: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    /// Spaces and extensions after the size.
    Extension,
    /// The line feed after the size.
    SizeEnd,
    Data,
    /// The carriage return after the data.
    DataReturn,
    /// The line feed after the data.
    DataEnd,
    /// The beginning of a trailer line, or of the last line.
    Line,
    /// A trailer field.
    Trailer,
    /// The line feed after the last line.
    LastEnd,
    Ended,
}

impl Chunks {
    /// Whether the body is complete.
    pub const fn ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Decodes bytes up to the end of the body, and returns their number.
    pub fn read(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, Failure> {
        let mut at = 0;
        while at < bytes.len() && !self.ended() {
            if self.state == State::Data {
                let count = usize::try_from(self.size).unwrap_or(usize::MAX).min(bytes.len() - at);
                data(&bytes[at..at + count]);
                at += count;
                self.size -= count as u64;
                if self.size == 0 {
                    self.state = State::DataReturn;
                }
                continue;
            }
            self.state = self.framing(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    /// The state after a byte that is no data.
    fn framing(&mut self, byte: u8) -> Result<State, Failure> {
        Ok(match (self.state, byte) {
            (State::Size, _) if byte.is_ascii_hexdigit() => {
                self.count += 1;
                if self.count > 15 {
                    return Err(broken("a chunk has an impossible size"));
                }
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                self.size = self.size << 4 | u64::from(digit);
                State::Size
            }
            (State::Size, b'\r') if self.count > 0 => State::SizeEnd,
            (State::Size, b';' | b' ' | b'\t') if self.count > 0 => {
                self.count = 0;
                State::Extension
            }
            (State::Extension, b'\r') => State::SizeEnd,
            (State::Extension, byte) if byte != b'\n' => self.more(State::Extension)?,
            (State::SizeEnd, b'\n') => {
                self.count = 0;
                if self.size == 0 { State::Line } else { State::Data }
            }
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Size,
            (State::Line, b'\r') => State::LastEnd,
            (State::Line, byte) if byte != b'\n' => self.more(State::Trailer)?,
            (State::Trailer, b'\n') => State::Line,
            (State::Trailer, _) => self.more(State::Trailer)?,
            (State::LastEnd, b'\n') => State::Ended,
            _ => return Err(broken("the framing of a chunk is not valid")),
        })
    }

    fn more(&mut self, state: State) -> Result<State, Failure> {
        self.count += 1;
        if self.count > LARGEST { Err(broken("a chunk has too many extensions or trailers")) } else { Ok(state) }
    }
}

fn broken(message: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, message)
}
