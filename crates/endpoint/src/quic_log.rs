//! qlog files, one per QUIC connection: JSON text sequences (RFC 7464) as quinn writes them.

use std::fs::{self, File};
use std::io::{self, LineWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quinn::{QlogConfig, QlogStream};
use wirelab_contract::error_kind::ErrorKind;

use crate::refusal::{Failure, Refusal};

/// A folder with a file `ROLE-NNNNNN.sqlog` per connection, numbered from 0 in the order of opening, including
/// connections of the check request and the warm-up.
#[derive(Debug, Clone)]
pub struct Qlog {
    folder: PathBuf,
    role: &'static str,
    next: Arc<AtomicU32>,
}

impl Qlog {
    /// Writes files to `folder`, and creates it if necessary.
    pub fn new(folder: &Path, role: &'static str) -> Result<Self, Refusal> {
        fs::create_dir_all(folder).map_err(|error| {
            Refusal::failed(format!("creating the folder for qlog files {}: {error}", folder.display()))
        })?;
        Ok(Self { folder: folder.to_owned(), role, next: Arc::default() })
    }

    /// Opens the file of a new connection.
    pub fn stream(&self) -> Result<QlogStream, Failure> {
        let (name, file) = self.create().map_err(|error| self.failure(&error.to_string()))?;
        let mut config = QlogConfig::default();
        // Line-buffered, so that a killed process, or one that ends during draining, leaves no partial line.
        config.writer(Box::new(LineWriter::new(file))).title(Some(name));
        config.into_stream().ok_or_else(|| self.failure("the first line cannot be written"))
    }

    /// The threads of a client share the numbers: an existing number belongs to another thread.
    fn create(&self) -> io::Result<(String, File)> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number:06}", self.role);
            match File::create_new(self.folder.join(format!("{name}.sqlog"))) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {}
                result => return Ok((name, result?)),
            }
        }
    }

    fn failure(&self, why: &str) -> Failure {
        Failure::new(ErrorKind::Other, format!("creating a qlog file in {}: {why}", self.folder.display()))
    }
}
