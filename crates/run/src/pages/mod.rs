//! The pages that browsers load: documents, style sheets, scripts and pictures of exactly the sizes that the plan's corpus says, so
//! that every byte of a page is known before it is loaded.

mod picture;
mod text;

use std::fs;
use std::path::Path;

use wirelab_model::page::PageName;
use wirelab_plan::corpus::{DOCUMENT, FileKind, files};

use crate::error::RunError;
use crate::pages::picture::Pictures;

/// The path of a page's document on its server.
#[must_use]
pub fn path(page: PageName) -> String {
    format!("/{page}/{DOCUMENT}")
}

/// Writes the files of a page below the document root, unless they are there.
///
/// # Errors
/// If they cannot be written.
pub fn write(root: &Path, page: PageName) -> Result<(), RunError> {
    let folder = root.join(page.token());
    if folder.exists() {
        return Ok(());
    }
    fs::create_dir(&folder).map_err(RunError::io("cannot make the folder", &folder))?;
    let files = files(page);
    let mut pictures = Pictures::default();
    for (number, file) in files.iter().enumerate() {
        let content = match file.kind {
            FileKind::Document => text::document(page, &files[1..], file.size),
            FileKind::Style => text::style(number, file.size),
            FileKind::Script => text::script(number, file.size),
            FileKind::Image => pictures.of(file.size),
        };
        let path = folder.join(&file.name);
        fs::write(&path, content).map_err(RunError::io("cannot write the page's file", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_size_and_every_link_leads_to_one() {
        let root = tempfile::tempdir().unwrap();
        for page in [PageName::Small20, PageName::Medium10, PageName::Today] {
            write(root.path(), page).unwrap();
            let folder = root.path().join(page.token());
            let document = fs::read_to_string(folder.join(DOCUMENT)).unwrap();
            for file in files(page) {
                assert_eq!(fs::metadata(folder.join(&file.name)).unwrap().len(), file.size, "{page} {}", file.name);
                let links = document.matches(&format!("\"{}\"", file.name)).count();
                assert_eq!(links, usize::from(file.kind != FileKind::Document), "{page} {}", file.name);
            }
            // Every other page has the same files.
            write(root.path(), page).unwrap();
        }
    }
}
