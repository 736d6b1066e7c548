//! Early hints of a page: resources that it needs before it can be rendered.

use crate::corpus::{FileKind, PageFile, files};
use wirelab_model::page::PageName;

/// Number of images to hint at if the page has no other resources: some of those visible without scrolling.
const IMAGES: usize = 6;

/// Values of the header field `link` for a page, in the order of links in its document.
#[must_use]
pub fn hints(page: PageName) -> Vec<String> {
    let files = files(page);
    let link = |file: &PageFile| {
        let what = match file.kind {
            FileKind::Style => "style",
            FileKind::Script => "script",
            // Browsers fetch fonts without credentials, and use a preloaded font only if it was fetched the same way.
            FileKind::Font => "font; crossorigin",
            FileKind::Image => "image",
            FileKind::Document => return None,
        };
        Some(format!("</{page}/{}>; rel=preload; as={what}", file.name))
    };
    let is_needed = |file: &&PageFile| matches!(file.kind, FileKind::Style | FileKind::Script | FileKind::Font);
    let needed: Vec<_> = files.iter().filter(is_needed).filter_map(link).collect();
    match needed.is_empty() {
        true => files.iter().filter_map(link).take(IMAGES).collect(),
        false => needed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_the_render_blocking_files_or_else_the_first_images() {
        let today = hints(PageName::Today);
        assert_eq!(today.len(), 8 + 24 + 4);
        assert_eq!(today[0], "</today/000.css>; rel=preload; as=style");
        assert!(today.iter().all(|link| !link.contains("image")));
        let images = hints(PageName::Small10);
        assert_eq!(images.len(), IMAGES);
        assert_eq!(images[5], "</small-10/005.jpg>; rel=preload; as=image");
    }
}
