//! The documents below the document root, read into memory before the server says that it is ready.
//!
//! A request never touches the file system, so what is measured is the protocol and not a page cache; and since only
//! paths that were seen while walking the root are known, no path leads out of it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use bytes::Bytes;

use crate::refusal::Refusal;

/// The most that is kept in memory.
pub const LARGEST_TOTAL: u64 = 1 << 30;

/// The content of every file below a root, by path from the root with a leading slash.
#[derive(Debug)]
pub struct Documents {
    files: HashMap<String, Bytes>,
}

impl Documents {
    /// Reads every regular file below `root`. Links are followed only where they stay below it.
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
                            "the document root {} holds more than {LARGEST_TOTAL} bytes, the most that this server keeps in memory",
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
