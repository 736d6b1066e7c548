//! Documents, style sheets and scripts of an exact size: short content, filled up with a comment.

use std::fmt::Write;

use crate::corpus::{FileKind, PageFile};
use wirelab_model::page::PageName;

/// Text of the comments.
const FILLER: &str = "Nothing to be read here: this text makes the file as large as it has to be. ";

/// The document of a page. It has an inline icon, because browsers would otherwise request one. Images have a size
/// attribute, as on well-made pages. `link` returns the URL of a file.
pub fn document(page: PageName, others: &[PageFile], link: impl Fn(&PageFile) -> String, size: u64) -> Vec<u8> {
    let mut head = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{page}</title><link rel=\"icon\" href=\"data:,\">\n"
    );
    let mut body = format!("<h1>{page}</h1>\n");
    for file in others {
        let place = link(file);
        let _ = match file.kind {
            FileKind::Style => writeln!(head, "<link rel=\"stylesheet\" href=\"{place}\">"),
            FileKind::Script => writeln!(head, "<script src=\"{place}\" defer></script>"),
            // The style sheet contains the URL; browsers load a font only if text uses it.
            FileKind::Font => writeln!(body, "<p style=\"font-family: {}\">{page}</p>", family(&file.name)),
            FileKind::Image | FileKind::Document => {
                writeln!(body, "<img src=\"{place}\" width=\"96\" height=\"96\" alt=\"\">")
            }
        };
    }
    filled(&format!("{head}</head>\n<body>{body}"), ("<!-- ", " -->"), "</body></html>\n", size)
}

/// A style sheet with font faces.
pub fn style(number: usize, fonts: &[&str], size: u64) -> Vec<u8> {
    let mut rules = format!("body {{ --sheet-{number}: {number}px }}\n");
    for name in fonts {
        let family = family(name);
        let _ = writeln!(rules, "@font-face {{ font-family: {family}; src: url(\"{name}\") format(\"woff2\") }}");
    }
    filled(&rules, ("/* ", " */"), "\n", size)
}

/// Family of a font, derived from its file name.
fn family(file: &str) -> String {
    format!("font-{}", file.trim_end_matches(".woff2"))
}

/// A script. It sets a data attribute, which proves that it ran.
pub fn script(number: usize, size: u64) -> Vec<u8> {
    filled(&format!("document.documentElement.dataset.script{number} = 'ran';\n"), ("/* ", " */"), "\n", size)
}

/// `begin`, a comment and `end`, with a total size. If `begin` and `end` exceed it, they are not cut: an oversized
/// file is detected, a cut one is not.
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
    fn texts_have_their_size_and_a_valid_end() {
        let script = String::from_utf8(script(3, 1024)).unwrap();
        assert_eq!(script.len(), 1024);
        assert!(script.starts_with("document.") && script.ends_with(" */\n"), "{script}");
        let style = String::from_utf8(style(3, &["000.woff2"], 5000)).unwrap();
        assert_eq!(style.len(), 5000);
        assert!(style.contains("font-family: font-000; src: url(\"000.woff2\")"), "{style}");
        let image = PageFile { name: "000.jpg".to_owned(), kind: FileKind::Image, size: 10 };
        let link = |file: &PageFile| format!("https://a.test/{}", file.name);
        let document = String::from_utf8(document(PageName::Small10, &[image], link, 4000)).unwrap();
        assert_eq!(document.len(), 4000);
        assert!(document.contains("<img src=\"https://a.test/000.jpg\"") && document.ends_with(" --></body></html>\n"));
    }
}
