//! Archives of runs: manifest, journal and tags, without samples, logs and captures. Every value, verdict and claim of
//! the report follows from manifest and journal.

use std::fs;
use std::path::Path;

use crate::error::RunError;
use crate::run::Run;
use crate::store::folder::{Folder, read_regular, write_whole};
use crate::store::packed::pack;

/// Writes the archive of a finished run into a new or empty folder, without the paths of this machine.
///
/// # Errors
/// If the run is not finished or damaged, or the folder has files or cannot be written.
pub fn archive(run: &Run, into: &Path) -> Result<Folder, RunError> {
    let refused = |why: String| Err(RunError::Refused { why });
    if run.stopped().is_none() {
        return refused("the run is not finished; `wirelab resume` continues it".to_owned());
    }
    if !run.integrity().warnings().is_empty() {
        return refused("the run is damaged; `wirelab report` names what is".to_owned());
    }
    fs::create_dir_all(into).map_err(RunError::io("cannot make the folder", into))?;
    let mut entries = fs::read_dir(into).map_err(RunError::io("cannot list the folder", into))?;
    if entries.next().is_some() {
        return refused(format!("`{}` has files; name a new folder", into.display()));
    }
    let (folder, journal) = (Folder::at(into), Folder::at(run.folder()).journal());
    let mut manifest = run.manifest().clone();
    for record in manifest.endpoints.values_mut() {
        record.endpoint.command.iter_mut().for_each(|word| *word = without_folder(word));
        record.endpoint.environment.values_mut().for_each(|value| *value = without_folder(value));
        record.endpoint.folder = None;
    }
    let lines = read_regular(&journal).map_err(RunError::io("cannot read the journal", &journal))?;
    let packed = pack(&lines).map_err(RunError::io("cannot pack the journal", &journal))?;
    write_whole(&folder.packed_journal(), &packed)?;
    let tags = Folder::at(run.folder()).tags();
    if tags.exists() {
        let text = read_regular(&tags).map_err(RunError::io("cannot read the tags", &tags))?;
        write_whole(&folder.tags(), &text)?;
    }
    folder.write_manifest(&manifest)?;
    Ok(folder)
}

/// The last part of an absolute path; other words stay as they are.
fn without_folder(word: &str) -> String {
    match Path::new(word).file_name() {
        Some(name) if Path::new(word).is_absolute() => name.to_string_lossy().into_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_paths_lose_their_folder() {
        let words = ["/opt/lab/wirelab", "endpoint", "bin/server", "--port", "/"];
        assert_eq!(words.map(without_folder), ["wirelab", "endpoint", "bin/server", "--port", "/"]);
    }
}
