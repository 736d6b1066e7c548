//! Generated pages of one host: a folder with their files.

use std::fs;
use std::path::Path;

use wirelab_model::page::PageName;
use wirelab_pages::contents;
use wirelab_pages::corpus::files;

use crate::error::RunError;

/// Writes the files of a generated page below the document root, unless they exist.
///
/// # Errors
/// If the files cannot be written.
pub fn write(root: &Path, page: PageName) -> Result<(), RunError> {
    let folder = root.join(page.token());
    if folder.exists() {
        return Ok(());
    }
    fs::create_dir(&folder).map_err(RunError::io("cannot make the folder", &folder))?;
    let files = files(page);
    for (file, content) in files.iter().zip(contents(page, &files, |file| file.name.clone())) {
        let path = folder.join(&file.name);
        fs::write(&path, content).map_err(RunError::io("cannot write the page's file", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_page_are_written_once() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), PageName::Small20).unwrap();
        let folder = root.path().join(PageName::Small20.token());
        for file in files(PageName::Small20) {
            assert_eq!(fs::metadata(folder.join(&file.name)).unwrap().len(), file.size, "{}", file.name);
        }
        fs::write(folder.join("mark"), "").unwrap();
        write(root.path(), PageName::Small20).unwrap();
        assert!(folder.join("mark").exists());
    }
}
