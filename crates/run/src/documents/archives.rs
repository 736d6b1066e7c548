//! The archives of a plan: read from their files.

use std::collections::hash_map::{self, HashMap};
use std::fs;

use wirelab_model::page::PageName;
use wirelab_model::page_path::PagePath;
use wirelab_model::plan::Plan;
use wirelab_model::warning::Warning;
use wirelab_pages::Archive;

use crate::error::RunError;

/// Fills in the hosts of the plan's archives, which planning cannot know. Returns warnings about them.
///
/// # Errors
/// If an archive cannot be replayed.
pub fn complete(plan: &mut Plan) -> Result<Vec<Warning>, RunError> {
    let mut known: HashMap<PagePath, Vec<String>> = HashMap::new();
    let mut warnings = Vec::new();
    for cell in &mut plan.cells {
        let Some(PageName::Archive(path)) = cell.job.page().map(|page| page.name) else { continue };
        let hosts = match known.entry(path) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(unknown) => {
                let archive = read(path)?;
                warnings.extend(archive.warning(path));
                unknown.insert(archive.hosts)
            }
        };
        cell.job = cell.job.clone().of_hosts(hosts.clone());
    }
    Ok(warnings)
}

/// Reads an archive.
///
/// # Errors
/// If the file cannot be read, is not an archive, or its page cannot be replayed.
pub fn read(path: PagePath) -> Result<Archive, RunError> {
    let refused = |why: String| RunError::Refused { why: format!("the page `{}`: {why}", path.as_str()) };
    let text = fs::read_to_string(path.path()).map_err(|error| refused(format!("cannot read the archive: {error}")))?;
    Archive::of(&text).map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_archive_is_named() {
        let nowhere = PagePath::of("./nowhere/saved.har").unwrap();
        let why = read(nowhere).unwrap_err().to_string();
        assert!(why.contains("`./nowhere/saved.har`: cannot read the archive"), "{why}");
    }
}
