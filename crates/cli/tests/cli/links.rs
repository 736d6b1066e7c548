//! Every link in a page of the repository leads to a file and a heading that exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Folders that are not part of the repository.
const BUILT: [&str; 4] = ["target", "node_modules", "wirelab-runs", "__pycache__"];

/// A page: its links, and the anchors of its headings.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: Vec<String>,
}

fn read(text: &str) -> Page {
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let before = page.anchors.iter().filter(|other| **other == anchor).count();
                page.anchors.push(if before == 0 { anchor } else { format!("{anchor}-{before}") });
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    page
}

/// The anchor of a heading in GitHub and mdBook.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn pages(folder: &Path, found: &mut BTreeMap<PathBuf, Page>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') || BUILT.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            pages(&path, found);
        } else if name.ends_with(".md") {
            let page = read(&fs::read_to_string(&path).unwrap());
            found.insert(path, page);
        }
    }
}

/// A path without `..`, for comparison.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn every_link_leads_somewhere() {
    let root = plain(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let mut all = BTreeMap::new();
    pages(&root, &mut all);
    assert!(all.contains_key(&root.join("README.md")), "the pages of the repository are found");
    let mut broken = Vec::new();
    for (path, page) in &all {
        for link in page.links.iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { plain(&path.parent().unwrap().join(file)) };
            let leads = match all.get(&target) {
                _ if !target.starts_with(&root) => false,
                Some(page) => anchor.is_empty() || page.anchors.iter().any(|other| other == anchor),
                None => anchor.is_empty() && target.exists(),
            };
            if !leads {
                broken.push(format!("{}: {link}", path.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn a_heading_has_the_anchor_that_browsers_see() {
    let page = read("# The `tcp` observer: cost\n\n## Same\n\n## Same\n\n[a](b.md#c) ![d](e.svg)\n");
    assert_eq!(page.anchors, ["the-tcp-observer-cost", "same", "same-1"]);
    assert_eq!(page.links, ["b.md#c", "e.svg"]);
}

#[test]
fn the_web_site_has_every_page_of_the_manual_and_of_the_contract() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    for folder in ["docs", "docs/tutorial", "docs/reference", "contract"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = match folder.strip_prefix("docs") {
                Some("") => name.clone(),
                Some(below) => format!("{}/{name}", &below[1..]),
                None => format!("../{folder}/{name}"),
            };
            let is_listed = summary.contains(&format!("]({path})"));
            assert!(is_listed || !name.ends_with(".md") || name == "SUMMARY.md", "docs/SUMMARY.md lacks {path}");
        }
    }
}
