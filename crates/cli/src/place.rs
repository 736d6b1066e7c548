//! Paths: this program, and its run folders.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// The path of this program, which also starts itself as endpoint and guard.
pub fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Failure::failed(format!("cannot find the path of wirelab itself: {error}")))
}

/// The newest run folder below `parent`.
pub fn newest(parent: &Path) -> Result<PathBuf> {
    let runs = std::fs::read_dir(parent).map_err(|error| {
        Failure::input(format!(
            "no runs below {}: {error}. Name a run folder, or start with `wirelab run quick`",
            parent.display()
        ))
    })?;
    let created =
        |path: &PathBuf| std::fs::metadata(path.join("manifest.json")).and_then(|facts| facts.modified()).ok();
    runs.filter_map(|entry| Some(entry.ok()?.path()))
        .filter_map(|path| Some((created(&path)?, path)))
        .max()
        .map(|(_, path)| path)
        .ok_or_else(|| Failure::input(format!("no run below {}; start with `wirelab run quick`", parent.display())))
}
