//! Splits an endpoint's standard output into lines, bounded in length and in number.
//!
//! wirelab keeps at most one line in memory, and stops reading when an endpoint floods its output.

use wirelab_model::event::Event;

use crate::EventError;

/// Maximum length of a line, in bytes.
pub const LONGEST_LINE: usize = 64 * 1024;

/// Maximum number of lines per process.
pub const MOST_LINES: u32 = 10_000;

/// Cuts a stream of bytes into lines.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Bytes at the start of the buffer that were already returned.
    used: usize,
    count: u32,
    ended: bool,
}

impl Lines {
    /// Appends bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.used);
        self.used = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Marks the end of the output: the remaining bytes are a line, even without line feed.
    pub const fn end(&mut self) {
        self.ended = true;
    }

    /// The next event, or [`EventError::Nonsense`]. `None`: more bytes are needed.
    ///
    /// Blank lines are skipped, but count as lines.
    pub fn next_event(&mut self) -> Option<Result<Event, EventError>> {
        loop {
            let rest = &self.buffer[self.used..];
            let line = match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) if end <= LONGEST_LINE => &rest[..end],
                _ if rest.len() > LONGEST_LINE => {
                    let nonsense = format!("a line of more than {LONGEST_LINE} bytes: {}", shortened(rest));
                    return Some(Err(EventError::Nonsense(nonsense)));
                }
                _ if self.ended && !rest.is_empty() => rest,
                _ => return None,
            };
            self.count += 1;
            if self.count > MOST_LINES {
                self.count = MOST_LINES;
                let nonsense = format!("more than {MOST_LINES} lines, the last one being: {}", shortened(line));
                return Some(Err(EventError::Nonsense(nonsense)));
            }
            let event = parse(line);
            self.used = (self.used + line.len() + 1).min(self.buffer.len());
            if event.is_some() {
                return event;
            }
        }
    }
}

fn parse(line: &[u8]) -> Option<Result<Event, EventError>> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let nonsense = |error| EventError::Nonsense(format!("{} ({error})", shortened(line)));
    Some(serde_json::from_slice(line).map_err(nonsense))
}

/// The first 160 bytes of an untrusted text, escaped and in backticks.
pub fn shortened(bytes: &[u8]) -> String {
    const SHOWN: usize = 160;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    let cut = if bytes.len() > SHOWN { "..." } else { "" };
    format!("`{}{cut}`", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_parsed_across_read_boundaries() {
        let mut lines = Lines::default();
        lines.push(b"{\"event\":\"wa");
        assert_eq!(lines.next_event(), None);
        lines.push(b"rm\"}\n\n{\"event\":\"end\",\"window_ns\":7}\n{\"event\":\"warm\"}");
        assert_eq!(lines.next_event(), Some(Ok(Event::Warm { until_steady: None })));
        assert_eq!(lines.next_event(), Some(Ok(Event::End { window_ns: 7 })));
        assert_eq!(lines.next_event(), None, "the last line has no end yet");
        lines.end();
        assert_eq!(lines.next_event(), Some(Ok(Event::Warm { until_steady: None })));
        assert_eq!(lines.next_event(), None);
    }

    #[test]
    fn invalid_events_are_shown_shortened_and_without_control_characters() {
        let mut lines = Lines::default();
        lines.push(format!("\x1b[31m{}\n", "x".repeat(5000)).as_bytes());
        let Some(Err(EventError::Nonsense(reason))) = lines.next_event() else { panic!() };
        assert!(reason.starts_with("`\\u{1b}[31mxxx") && reason.len() < 300, "{reason}");
    }

    #[test]
    fn an_overlong_line_is_an_error() {
        let mut lines = Lines::default();
        for _ in 0..=LONGEST_LINE / 1000 {
            lines.push(&[b'a'; 1000]);
        }
        let Some(Err(EventError::Nonsense(reason))) = lines.next_event() else { panic!() };
        assert!(reason.contains("more than 65536 bytes"), "{reason}");
    }

    #[test]
    fn too_many_lines_are_an_error_even_if_valid_or_blank() {
        for line in ["{\"event\":\"warm\"}\n", "\n"] {
            let mut lines = Lines::default();
            lines.push(line.repeat(MOST_LINES as usize + 1).as_bytes());
            let flood = std::iter::from_fn(|| lines.next_event()).find_map(Result::err);
            let Some(EventError::Nonsense(flood)) = flood else { panic!("{flood:?}") };
            assert!(flood.contains("more than 10000 lines"), "{flood}");
            assert!(lines.next_event().unwrap().is_err(), "a flood stays a flood");
        }
    }
}
