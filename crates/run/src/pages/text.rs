//! Documents, style sheets and scripts of an exact size. What they say is short; the rest is a comment.

use std::fmt::Write;

use wirelab_model::page::PageName;
use wirelab_plan::corpus::{FileKind, PageFile};

/// What comments are filled with.
const FILLER: &str = "Nothing to be read here: this text makes the file as large as it has to be. ";

/// The document of a page. Without an icon of its own a browser would ask for one, which is no part of the page. Pictures have a
/// size before they have come, as those of well-made pages.
pub fn document(page: PageName, others: &[PageFile], size: u64) -> Vec<u8> {
    let mut head = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{page}</title><link rel=\"icon\" href=\"data:,\">\n"
    );
    let mut body = format!("<h1>{page}</h1>\n");
    for file in others {
        let name = &file.name;
        let _ = match file.kind {
            FileKind::Style => writeln!(head, "<link rel=\"stylesheet\" href=\"{name}\">"),
            FileKind::Script => writeln!(head, "<script src=\"{name}\" defer></script>"),
            FileKind::Image | FileKind::Document => {
                writeln!(body, "<img src=\"{name}\" width=\"96\" height=\"96\" alt=\"\">")
            }
        };
    }
    filled(&format!("{head}</head>\n<body>{body}"), ("<!-- ", " -->"), "</body></html>\n", size)
}

/// A style sheet.
pub fn style(number: usize, size: u64) -> Vec<u8> {
    filled(&format!("body {{ --sheet-{number}: {number}px }}\n"), ("/* ", " */"), "\n", size)
}

/// A script. It leaves a trace, so that it can be seen to have run.
pub fn script(number: usize, size: u64) -> Vec<u8> {
    filled(&format!("document.documentElement.dataset.script{number} = 'ran';\n"), ("/* ", " */"), "\n", size)
}

/// `begin`, a comment, and `end`, all together of a size. What does not fit stays: a file that is too large is seen, and one that
/// was cut is not.
fn filled(begin: &str, (open, close): (&str, &str), end: &str, size: u64) -> Vec<u8> {
    let others = begin.len() + open.len() + close.len() + end.len();
    let room = usize::try_from(size).unwrap_or(usize::MAX).saturating_sub(others);
    let filler: String = FILLER.chars().cycle().take(room).collect();
    [begin, open, &filler, close, end].concat().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_size_and_end_as_they_should() {
        let script = String::from_utf8(script(3, 1024)).unwrap();
        assert_eq!(script.len(), 1024);
        assert!(script.starts_with("document.") && script.ends_with(" */\n"), "{script}");
        assert_eq!(style(3, 5000).len(), 5000);
        let image = PageFile { name: "000.jpg".to_owned(), kind: FileKind::Image, size: 10 };
        let document = String::from_utf8(document(PageName::Small10, &[image], 4000)).unwrap();
        assert_eq!(document.len(), 4000);
        assert!(document.contains("<img src=\"000.jpg\"") && document.ends_with(" --></body></html>\n"));
    }
}
