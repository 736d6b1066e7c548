//! Why requests of a user cannot be sent.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::{MessageError, SchemaError};

/// Why the requests cannot be sent. No message has the value of a placeholder, which may be a secret.
#[derive(Debug)]
pub enum RequestError {
    /// A placeholder has no value.
    Unknown {
        name: String,
        /// Names of the data.
        known: Vec<String>,
        /// The known name that is nearest to it.
        nearest: Option<String>,
    },
    /// An environment variable is not set.
    Variable { name: String },
    /// A file cannot be read.
    Unreadable {
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file has no text.
    NotText { path: PathBuf },
    /// The data cannot be used.
    Data {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The mistake there.
        why: String,
    },
    /// No placeholder uses the data.
    Unused {
        /// The file.
        path: PathBuf,
        /// Names of the data.
        known: Vec<String>,
    },
    /// A key belongs to the other kind of request: HTTP, or a call of gRPC.
    WrongKind {
        /// Its name as written in a study.
        key: &'static str,
        /// Whether the requests are calls of gRPC.
        is_grpc: bool,
    },
    /// The descriptors of a service do not describe the method.
    Schema {
        /// Their file; absent: the server itself has reported them.
        path: Option<PathBuf>,
        /// What is wrong.
        error: SchemaError,
    },
    /// No descriptors are known, and no server can be asked.
    NoDescriptors {
        /// The path of the method.
        method: String,
    },
    /// The server did not report its descriptors.
    Reflection(Box<dyn Error + Send + Sync>),
    /// JSON is no message of the method.
    Message {
        /// The row of the data, from 1, if the request has data.
        row: Option<usize>,
        /// What is wrong.
        error: MessageError,
    },
    /// A number of messages is expected of a method that answers with one.
    NoStream {
        /// The path of the method.
        method: String,
    },
    /// All requests together are too large.
    TooLarge {
        /// Their size in bytes.
        bytes: u64,
        /// The largest size.
        most: u64,
    },
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known, nearest } => {
                write!(f, "`{{{{{name}}}}}` has no value: ")?;
                match known.as_slice() {
                    [] => f.write_str("the request has no `data`")?,
                    known => write!(f, "the data has {}", known.join(", "))?,
                }
                if let Some(nearest) = nearest {
                    write!(f, "; did you mean `{{{{{nearest}}}}}`?")?;
                }
                write!(
                    f,
                    " An environment variable is `{{{{env.NAME}}}}`; to send the braces, write `\\{{{{{name}}}}}`"
                )
            }
            Self::Variable { name } => {
                write!(f, "the environment variable `{name}` of `{{{{env.{name}}}}}` is not set; export it first")
            }
            Self::Unreadable { path, source } => write!(f, "cannot read `{}`: {source}", path.display()),
            Self::NotText { path } => {
                write!(f, "`{}` is not UTF-8 text, so it has no values for placeholders", path.display())
            }
            Self::Data { path, line, why } => write!(
                f,
                "{}:{line}: {why}; expected CSV with names in the first row, or one JSON object per line",
                path.display()
            ),
            Self::Unused { path, known } => write!(
                f,
                "no placeholder uses the data of `{}`, which has {}; write for example `{{{{{}}}}}`, or remove the data",
                path.display(),
                known.join(", "),
                known.first().map_or("NAME", String::as_str)
            ),
            Self::WrongKind { key, is_grpc: true } => {
                write!(f, "`{key}` is about HTTP, but the requests are calls of gRPC; remove it")
            }
            Self::WrongKind { key, is_grpc: false } => {
                write!(
                    f,
                    "`{key}` is about gRPC, but the requests are none of its calls; remove it, or set the protocol"
                )
            }
            Self::Schema { path: Some(path), error } => write!(f, "`{}`: {error}", path.display()),
            Self::Schema { path: None, error } => write!(f, "the descriptors that the server reports: {error}"),
            Self::NoDescriptors { method } => write!(
                f,
                "the types of `{method}` are unknown; `protoset` names the file with the descriptors of its service"
            ),
            Self::Reflection(error) => error.fmt(f),
            Self::Message { row: Some(row), error } => write!(f, "with row {row} of the data, {error}"),
            Self::Message { row: None, error } => error.fmt(f),
            Self::NoStream { method } => {
                write!(f, "`expect.messages` is set, but `{method}` answers with one message; remove it")
            }
            Self::TooLarge { bytes, most } => {
                write!(f, "the requests with all rows of data have {bytes} bytes, at most {most}; use fewer rows")
            }
        }
    }
}

impl Error for RequestError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}
