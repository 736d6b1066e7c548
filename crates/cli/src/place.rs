//! Paths: this program, and its run folders.

use std::path::{Path, PathBuf};

use wirelab_model::nearest::nearest;

use crate::failure::{Failure, Result};

/// The path of this program, which also starts itself as endpoint and guard.
pub fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Failure::failed(format!("cannot find the path of wirelab itself: {error}")))
}

/// The folder of the named run; the newest one below `parent` if none is named.
pub fn run_folder(named: Option<&Path>, parent: &Path) -> Result<PathBuf> {
    let Some(folder) = named else { return newest(parent) };
    if folder.exists() {
        return Ok(folder.to_owned());
    }
    let siblings = folder.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(parent);
    let entries = std::fs::read_dir(siblings).into_iter().flatten().flatten();
    let names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let wanted = folder.file_name().unwrap_or_default().to_string_lossy();
    let hint = match nearest(&wanted, names.iter().map(String::as_str)) {
        Some(name) => format!("; did you mean {}?", siblings.join(name).display()),
        None => String::new(),
    };
    Err(Failure::input(format!("no run folder {}{hint}", folder.display())))
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
