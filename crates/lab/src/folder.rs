//! A temporary folder that does not outlive wirelab, for example a browser profile.

use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::LabError;
use crate::guard::Guard;

/// Attempts to remove the folder: killed processes may still write into it.
const ATTEMPTS: u32 = 200;

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Numbers the folders of one wirelab process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A new folder in the directory for temporary files, readable by its owner only. Drop removes it; if wirelab is
/// killed, the guard does.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    guard: Arc<Guard>,
}

impl Folder {
    /// Creates the folder.
    ///
    /// # Errors
    /// If the guard has ended, or the folder cannot be created.
    pub fn create(guard: &Arc<Guard>) -> Result<Self, LabError> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("{}{number}", name_begins(guard.mark())));
        let wrong = |why: &str| {
            LabError::file(format!("cannot make the folder {}", path.display()))
                .because(why)
                .remedy("$TMPDIR names another")
        };
        let text = path.to_str().filter(|text| text.starts_with('/') && !text.contains('\n'));
        let text = text.ok_or_else(|| wrong("its path is not absolute, or not plain text"))?;
        // Register the folder before it exists, so that a kill in between leaves nothing behind.
        guard.folder(text, true)?;
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { path, guard: Arc::clone(guard) })
    }

    /// Absolute path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed now stays on the guard's list.
        if remove(&self.path)
            && let Some(text) = self.path.to_str()
        {
            let _ = self.guard.folder(text, false);
        }
    }
}

/// Name prefix of the folders of the wirelab process with this mark.
pub(crate) fn name_begins(mark: &str) -> String {
    format!("wirelab-{mark}-")
}

/// Removes a folder whose users have ended or are ending. Returns false if the folder still exists.
pub(crate) fn remove(path: &Path) -> bool {
    for _ in 0..ATTEMPTS {
        match std::fs::remove_dir_all(path) {
            Ok(()) => return true,
            Err(error) if error.kind() == ErrorKind::NotFound && !path.exists() => return true,
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    false
}
