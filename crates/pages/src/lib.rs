//! Pages for browsers: generated ones of known sizes, and pages from archives. A generated page has documents, style
//! sheets, scripts, fonts and pictures of exactly the sizes in the [`corpus`].
//!
//! The crate is pure: it returns contents, and `run` writes them for the servers.

pub mod answers;
mod archive;
pub mod corpus;
mod font;
mod hints;
mod picture;
mod text;

use wirelab_model::page::PageName;

pub use crate::archive::{Archive, ArchiveError, Omission};
use crate::corpus::{DOCUMENT, FileKind, PageFile};
pub use crate::hints::hints;
use crate::picture::Pictures;

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

/// Contents of a generated page's files, in order; `link` returns the URL of a file as in the document.
pub fn contents(
    page: PageName,
    files: &[PageFile],
    link: impl Fn(&PageFile) -> String,
) -> impl Iterator<Item = Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::files;

    #[test]
    fn every_file_has_its_size_and_every_link_leads_to_one() {
        for page in [PageName::Small20, PageName::Medium10, PageName::Today] {
            let files = files(page);
            let contents: Vec<_> = contents(page, &files, |file| file.name.clone()).collect();
            let text = |name: &str| {
                let at = files.iter().position(|file| file.name == name);
                at.map_or(String::new(), |at| String::from_utf8(contents[at].clone()).unwrap())
            };
            let (document, sheet) = (text(DOCUMENT), text("000.css"));
            for (file, content) in files.iter().zip(&contents) {
                assert_eq!(content.len() as u64, file.size, "{page} {}", file.name);
                let text = if file.kind == FileKind::Font { &sheet } else { &document };
                let links = text.matches(&format!("\"{}\"", file.name)).count();
                assert_eq!(links, usize::from(file.kind != FileKind::Document), "{page} {}", file.name);
            }
        }
    }
}
