//! `wirelab tag`: the user's words for runs.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use wirelab_run::store::folder::Folder;
use wirelab_run::{RunError, tags};

use crate::args::TagArgs;
use crate::failure::{Failure, Result};
use crate::output::{print, print_json};
use crate::place::run_folder;

/// Changes the tags of a run and prints them; without a run, lists the runs that have tags.
pub fn tag(args: &TagArgs) -> Result {
    let Some(run) = &args.run else { return show(&tagged(&args.out)?, args.json) };
    let folder = run_folder(Some(run), &args.out)?;
    Folder::at(&folder).read_manifest().map_err(Failure::input)?;
    let changed = match (args.tags.as_slice(), args.remove) {
        ([], _) => tags::read(&folder),
        (tags, true) => tags::remove(&folder, tags),
        (tags, false) => tags::add(&folder, tags),
    };
    let tags = changed.map_err(|error| match error {
        RunError::Refused { .. } => Failure::input(error),
        _ => Failure::failed(error),
    })?;
    show(&[(folder, tags)], args.json)
}

/// The runs below a folder that have tags, by name.
fn tagged(parent: &Path) -> Result<Vec<(PathBuf, BTreeSet<String>)>> {
    let entries = std::fs::read_dir(parent)
        .map_err(|error| Failure::input(format!("no runs below {}: {error}. Name a run folder", parent.display())))?;
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path.join("manifest.json").is_file());
    folders.sort();
    let read = |path: PathBuf| tags::read(&path).map(|tags| (path, tags)).map_err(Failure::failed);
    let all: Result<Vec<_>> = folders.into_iter().map(read).collect();
    Ok(all?.into_iter().filter(|(_, tags)| !tags.is_empty()).collect())
}

fn show(runs: &[(PathBuf, BTreeSet<String>)], as_json: bool) -> Result {
    if as_json {
        let rows = runs.iter().map(|(run, tags)| json!({ "run": run.display().to_string(), "tags": tags }));
        return print_json(&rows.collect::<Vec<_>>());
    }
    let mut text = String::new();
    for (run, tags) in runs {
        let tags: Vec<_> = tags.iter().map(String::as_str).collect();
        let tags = if tags.is_empty() { "no tags".to_owned() } else { tags.join(" ") };
        let _ = writeln!(text, "{}: {tags}", run.display());
    }
    print(&text)
}
