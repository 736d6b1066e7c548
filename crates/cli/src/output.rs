//! Printing to standard output, which the reader may close.

use std::io::{self, IsTerminal, Write};

use wirelab_model::visible::{visible, visible_with_colours};

use crate::failure::{Failure, Result};

/// Prints text for people, without characters that control the terminal. A closed pipe (`wirelab ... | head`) is not
/// an error.
pub fn print(text: &str) -> Result {
    offer(text).map(drop)
}

/// Prints a document for programs as it is. A terminal gets it as [`print`] prints text.
pub fn print_document(text: &str) -> Result {
    offer_document(text).map(drop)
}

/// Prints as [`print`] does. Returns false if the reader has closed the pipe.
pub fn offer(text: &str) -> Result<bool> {
    write(&if colour() { visible_with_colours(text) } else { visible(text) })
}

/// Prints as [`print_document`] does. Returns false if the reader has closed the pipe.
pub fn offer_document(text: &str) -> Result<bool> {
    if io::stdout().is_terminal() { offer(text) } else { write(text) }
}

fn write(text: &str) -> Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(format!("cannot write to standard output: {error}"))),
    }
}

/// Prints a value as indented JSON.
pub fn print_json(value: &impl serde::Serialize) -> Result {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::failed(format!("cannot write the result as JSON: {error}")))?;
    print_document(&format!("{text}\n"))
}

/// Whether to colour standard output: only on a terminal, and not if `NO_COLOR` is set (no-color.org).
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The width of the terminal in columns; 100 without a terminal.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    columns.or_else(terminal).unwrap_or(100).clamp(40, 160)
}
