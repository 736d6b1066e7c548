//! The documents below the document root, which the server reads into memory before `ready`.
//!
//! Requests do not touch the file system, so the measurement is of the protocol, not of a page cache. Only paths found
//! below the root are known, so no path leads out of it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use bytes::Bytes;

use crate::refusal::Refusal;

/// Maximum total size in memory, in bytes.
pub const LARGEST_TOTAL: u64 = 1 << 30;

/// The content of every file below a root, by path from the root with a leading slash.
#[derive(Debug)]
pub struct Documents {
    files: HashMap<String, Bytes>,
}

impl Documents {
    /// Reads every regular file below `root`. Follows links only if they stay below it.
    pub fn load(root: &Path) -> Result<Self, Refusal> {
        let attempt = |path: &Path, error: std::io::Error| {
            Refusal::failed(format!("reading the document root, {}: {error}", path.display()))
        };
        let root = root.canonicalize().map_err(|error| attempt(root, error))?;
        let mut documents = Self { files: HashMap::new() };
        let mut total = 0;
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(|error| attempt(&folder, error))? {
                let path = entry.map_err(|error| attempt(&folder, error))?.path();
                let Ok(real) = path.canonicalize() else { continue };
                if !real.starts_with(&root) {
                    continue;
                }
                let kind = fs::metadata(&real).map_err(|error| attempt(&path, error))?;
                if kind.is_dir() && real == path {
                    folders.push(path);
                } else if kind.is_file() {
                    total += kind.len();
                    if total > LARGEST_TOTAL {
                        return Err(Refusal::unsupported(format!(
                            "the document root {} holds more than {LARGEST_TOTAL} bytes, the limit of this server",
                            root.display()
                        )));
                    }
                    let content = fs::read(&path).map_err(|error| attempt(&path, error))?;
                    let Ok(name) = path.strip_prefix(&root) else { continue };
                    let Some(name) = name.to_str() else { continue };
                    documents.files.insert(format!("/{name}"), Bytes::from(content));
                }
            }
        }
        Ok(documents)
    }

    /// The document at `path`, which begins with a slash.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Bytes> {
        self.files.get(path).cloned()
    }
}
