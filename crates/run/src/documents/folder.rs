//! Pages from folders: a folder with `index.html`, served unchanged.

use std::fs;
use std::path::Path;

use wirelab_model::page_path::PagePath;
use wirelab_pages::corpus::DOCUMENT;

use crate::error::RunError;

/// Rejects a folder that is not a page.
///
/// # Errors
/// If the folder or its document is missing.
pub fn check(folder: PagePath) -> Result<(), RunError> {
    let path = folder.path();
    let refused = |why: &str| RunError::Refused {
        why: format!(
            "the page `{}`: {why}. A page is a folder with `{DOCUMENT}` and what it links to",
            folder.as_str()
        ),
    };
    if !path.is_dir() {
        return Err(refused("the folder does not exist"));
    }
    if path.join(DOCUMENT).is_file() { Ok(()) } else { Err(refused(&format!("it has no `{DOCUMENT}`"))) }
}

/// Copies a folder, so that every trial uses the same page even if the folder changes. Targets of symbolic links are
/// copied if they lie below the folder.
///
/// # Errors
/// If the folder cannot be read or the copy cannot be written.
pub fn copy(folder: PagePath, to: &Path) -> Result<(), RunError> {
    let from = folder.path().canonicalize().map_err(RunError::io("cannot find the page", folder.path()))?;
    copy_below(&from, &from, to)
}

fn copy_below(root: &Path, from: &Path, to: &Path) -> Result<(), RunError> {
    fs::create_dir(to).map_err(RunError::io("cannot make the folder", to))?;
    for entry in fs::read_dir(from).map_err(RunError::io("cannot list the folder", from))? {
        let path = entry.map_err(RunError::io("cannot list the folder", from))?.path();
        let Some(name) = path.file_name() else { continue };
        // Skip broken links.
        let Ok(real) = path.canonicalize() else { continue };
        if !real.starts_with(root) {
            continue;
        }
        if real.is_file() {
            fs::copy(&real, to.join(name)).map_err(RunError::io("cannot copy the page's file", &path))?;
        } else if real == path && real.is_dir() {
            copy_below(root, &path, &to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_with_the_targets_of_links_inside_it() {
        let place = tempfile::tempdir().unwrap();
        let (site, copied) = (place.path().join("site"), place.path().join("copied"));
        fs::create_dir_all(site.join("a/b")).unwrap();
        fs::write(place.path().join("secret"), "s").unwrap();
        fs::write(site.join("a/b/one.css"), "1").unwrap();
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, site.join(name)).unwrap();
        link(&site.join("a/b/one.css"), "two.css");
        link(&place.path().join("secret"), "three.css");
        link(&site, "round");
        let folder = PagePath::of(site.to_str().unwrap()).unwrap();
        assert!(check(folder).unwrap_err().to_string().contains("it has no `index.html`"));
        fs::write(site.join("index.html"), "<p>").unwrap();
        check(folder).unwrap();
        copy(folder, &copied).unwrap();
        assert_eq!(fs::read_to_string(copied.join("a/b/one.css")).unwrap(), "1");
        assert_eq!(fs::read_to_string(copied.join("two.css")).unwrap(), "1");
        assert!(!copied.join("three.css").exists() && !copied.join("round").exists());
        let gone = PagePath::of("./nowhere/at all").unwrap();
        assert!(check(gone).unwrap_err().to_string().contains("does not exist"));
    }
}
