//! Pages for browsers: documents, style sheets, scripts, fonts and pictures of exactly the sizes in the plan's
//! corpus, so that the size of every page is known in advance.

pub mod archive;
pub mod folder;
mod font;
mod hints;
pub mod hosts;
mod picture;
mod text;

use std::fs;
use std::path::Path;

use wirelab_model::page::PageName;
use wirelab_model::plan::{Cell, Plan, Work};
use wirelab_observe::film::ABOUT as FILM;
use wirelab_plan::corpus::{DOCUMENT, FileKind, PageFile, files};

use crate::error::RunError;
pub use crate::pages::hints::hints;
use crate::pages::picture::Pictures;

/// Path of a page's document on its server.
#[must_use]
pub fn path(page: PageName) -> String {
    match page {
        PageName::Folder(_) => format!("/{DOCUMENT}"),
        // Only the archive contains the path.
        PageName::Archive(_) => "/".to_owned(),
        made => format!("/{made}/{DOCUMENT}"),
    }
}

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

/// Contents of a page's files, in order; `link` returns the URL of a file as in the document.
fn contents(page: PageName, files: &[PageFile], link: impl Fn(&PageFile) -> String) -> impl Iterator<Item = Vec<u8>> {
    let mut pictures = Pictures::default();
    files.iter().enumerate().map(move |(number, file)| match file.kind {
        FileKind::Document => text::document(page, &files[1..], &link, file.size),
        FileKind::Style => text::style(number, &fonts_of(file, files), file.size),
        FileKind::Script => text::script(number, file.size),
        FileKind::Font => font::font(number, file.size),
        FileKind::Image => pictures.of(file.size),
    })
}

/// Fonts that a style sheet references: all of them for the first sheet, none for the others.
fn fonts_of<'a>(sheet: &PageFile, files: &'a [PageFile]) -> Vec<&'a str> {
    let first = files.iter().find(|file| file.kind == FileKind::Style);
    let fonts = files.iter().filter(|file| file.kind == FileKind::Font && first == Some(sheet));
    fonts.map(|file| file.name.as_str()).collect()
}

/// Rejects the observer `film` for cells without a page: such a trial would have no values.
///
/// # Errors
/// If a filmed cell has no page; the message names the first one.
pub fn only_pages_are_filmed(plan: &Plan, observers: &[String]) -> Result<(), RunError> {
    let is_filmed = |cell: &&Cell| observers.iter().chain(&cell.job.more_observers).any(|name| name == FILM.name);
    match plan.cells.iter().filter(is_filmed).find(|cell| !matches!(cell.job.work, Work::Page(_))) {
        None => Ok(()),
        Some(cell) => Err(RunError::Refused {
            why: format!(
                "the observer `{}` films pages in browsers, but the cell `{}` loads none; remove it, or set `page`",
                FILM.name,
                cell.label()
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::plan::LoadedPage;
    use wirelab_model::units::Size;

    use super::*;
    use crate::fixture::cell;

    #[test]
    fn only_cells_with_a_page_can_be_filmed() {
        let (mut page, single) = (cell(), cell());
        page.job.work = Work::Page(LoadedPage::plain(PageName::Small10, Size(0)));
        let plan = |cells| Plan {
            cells,
            comparisons: Vec::new(),
            seed: 1,
            min_blocks: 1,
            max_blocks: 1,
            budget: None,
            precision: 0.05,
        };
        let film = ["cpu".to_owned(), "film".to_owned()];
        assert!(only_pages_are_filmed(&plan(vec![page.clone()]), &film).is_ok());
        assert!(only_pages_are_filmed(&plan(vec![single.clone()]), &film[..1]).is_ok());
        let refused =
            |plan: &Plan, observers: &[String]| only_pages_are_filmed(plan, observers).unwrap_err().to_string();
        assert!(refused(&plan(vec![page, single.clone()]), &film).contains("loads none"));
        let mut more = single;
        more.job.more_observers = vec!["film".to_owned()];
        assert!(refused(&plan(vec![more]), &[]).contains("set `page`"));
    }

    #[test]
    fn every_file_has_its_size_and_every_link_leads_to_one() {
        let root = tempfile::tempdir().unwrap();
        for page in [PageName::Small20, PageName::Medium10, PageName::Today] {
            write(root.path(), page).unwrap();
            let folder = root.path().join(page.token());
            let document = fs::read_to_string(folder.join(DOCUMENT)).unwrap();
            let sheet = fs::read_to_string(folder.join("000.css")).unwrap_or_default();
            for file in files(page) {
                assert_eq!(fs::metadata(folder.join(&file.name)).unwrap().len(), file.size, "{page} {}", file.name);
                let text = if file.kind == FileKind::Font { &sheet } else { &document };
                let links = text.matches(&format!("\"{}\"", file.name)).count();
                assert_eq!(links, usize::from(file.kind != FileKind::Document), "{page} {}", file.name);
            }
            // Every other page has the same files.
            write(root.path(), page).unwrap();
        }
    }
}
