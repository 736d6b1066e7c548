//! A folder that does not outlive wirelab: what a program needs for one session, such as the profile of a browser.

use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::LabError;
use crate::guard::Guard;

/// How often to try again while processes that were just killed still write into it.
const ATTEMPTS: u32 = 200;

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Tells the folders of one wirelab apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A new folder below the one for temporary files, readable by its owner only. It is removed when this is dropped, and by the
/// guard where wirelab is killed.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    guard: Arc<Guard>,
}

impl Folder {
    /// Makes it.
    ///
    /// # Errors
    /// If the guard has ended, or the folder cannot be made.
    pub fn create(guard: &Arc<Guard>) -> Result<Self, LabError> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("{}{number}", name_begins(guard.mark())));
        let wrong =
            |why: &str| LabError(format!("cannot make the folder {}: {why}; $TMPDIR names another", path.display()));
        let text = path.to_str().filter(|text| text.starts_with('/') && !text.contains('\n'));
        let text = text.ok_or_else(|| wrong("its path is not absolute, or not plain text"))?;
        // Before it is there: a kill between the two leaves nothing.
        guard.folder(text, true)?;
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { path, guard: Arc::clone(guard) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now stays on the guard's list.
        if remove(&self.path)
            && let Some(text) = self.path.to_str()
        {
            let _ = self.guard.folder(text, false);
        }
    }
}

/// How the names of the folders of a wirelab with this mark begin.
pub(crate) fn name_begins(mark: &str) -> String {
    format!("wirelab-{mark}-")
}

/// Removes a folder whose users have ended, or are about to. False: it is still there.
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
