//! Byte positions in a study file. Parses the file a second time; only error paths need it.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One step on the path from the root of a study to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// The part of an entry that an error points at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Part {
    Key,
    #[default]
    Value,
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<&String> for Step {
    fn from(key: &String) -> Self {
        Self::Key(key.clone())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// Makes a path from its steps: `steps!["factors", name, 2]`.
macro_rules! steps {
    ($($step:expr),* $(,)?) => { [$($crate::locate::Step::from($step)),*] };
}
pub(crate) use steps;

/// Text of a path: `factors.payload[2]`
pub(crate) fn dotted(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.extend([".", key]),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// Byte range of `path` in `text`, or of its nearest ancestor that the file has.
pub(crate) fn span(text: &str, path: &[Step], part: Part) -> Range<usize> {
    DeTable::parse(text).map_or(0..0, |root| span_in(root.get_ref(), path, part))
}

/// The same in a tree.
pub(crate) fn span_in(root: &DeTable<'_>, path: &[Step], part: Part) -> Range<usize> {
    let mut found = 0..0;
    let mut here = Here::Table(root);
    for (depth, step) in path.iter().enumerate() {
        let last = depth + 1 == path.len();
        let (key, value) = match (here, step) {
            (Here::Table(table), Step::Key(name)) => match table.iter().find(|(key, _)| key.get_ref() == name) {
                Some((key, value)) => (Some(key.span()), value),
                None => break,
            },
            (Here::Value(DeValue::Array(array)), Step::Index(index)) => match array.get(*index) {
                Some(value) => (None, value),
                None => break,
            },
            _ => break,
        };
        // A table has a span of its own only if it is written inline, so the key is the better position.
        let is_table = matches!(value.get_ref(), DeValue::Table(_));
        found = match key {
            Some(key) if !last || part == Part::Key || is_table => key,
            _ => value.span(),
        };
        here = Here::of(value);
    }
    found
}

/// The innermost entry whose key or value is at a byte position; `None` outside of all entries.
pub(crate) fn place_at(root: &DeTable<'_>, position: usize) -> Option<(Vec<Step>, Part)> {
    root.iter().find_map(|(key, value)| {
        let own = Step::from(key.get_ref().as_ref());
        if key.span().contains(&position) {
            return Some((vec![own], Part::Key));
        }
        within(value, position).map(|(path, part)| ([vec![own], path].concat(), part))
    })
}

/// The innermost entry of a value at a position, with the path below the value.
fn within(value: &Spanned<DeValue<'_>>, position: usize) -> Option<(Vec<Step>, Part)> {
    let inner = match value.get_ref() {
        DeValue::Table(table) => place_at(table, position),
        DeValue::Array(array) => array.iter().enumerate().find_map(|(index, element)| {
            within(element, position).map(|(path, part)| ([vec![Step::Index(index)], path].concat(), part))
        }),
        _ => None,
    };
    inner.or_else(|| value.span().contains(&position).then(|| (Vec::new(), Part::Value)))
}

#[derive(Clone, Copy)]
enum Here<'a, 'i> {
    Table(&'a DeTable<'i>),
    Value(&'a DeValue<'i>),
}

impl<'a, 'i> Here<'a, 'i> {
    fn of(value: &'a Spanned<DeValue<'i>>) -> Self {
        match value.get_ref() {
            DeValue::Table(table) => Self::Table(table),
            value => Self::Value(value),
        }
    }
}

/// A position in a file, with an excerpt of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    file: String,
    /// Line number, from 1.
    pub(crate) line: usize,
    /// Column in characters, from 1.
    pub(crate) column: usize,
    /// Excerpt of the line.
    source: String,
    /// Characters of `source` before the position.
    indent: usize,
    /// Characters of the marked range on this line.
    width: usize,
}

/// Maximum characters in an excerpt: a study file may be one line of a megabyte.
const SHOWN: usize = 100;
/// Characters before the position in an excerpt of a longer line.
const BEFORE: usize = 40;

impl Place {
    pub(crate) fn of(text: &str, file: &str, span: Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let before = text[line_start..start].chars().count();
        let skipped =
            if text[line_start..line_end].chars().count() > SHOWN { before.saturating_sub(BEFORE) } else { 0 };
        let shown = text[line_start..line_end].trim_end_matches('\r').chars().skip(skipped).take(SHOWN);
        let source: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
        let indent = before - skipped;
        let room = source.chars().count().saturating_sub(indent);
        let width = text[start..end.min(line_end).max(start)].chars().take(SHOWN).count().min(room).max(1);
        let line = text[..start].bytes().filter(|byte| *byte == b'\n').count() + 1;
        Self { file: file.to_owned(), line, column: before + 1, source, indent, width }
    }

    /// The excerpt with a caret below the position.
    pub(crate) fn excerpt(&self) -> String {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let (source, indent, carets) = (&self.source, " ".repeat(self.indent), "^".repeat(self.width));
        format!("{gutter} |\n{number} | {source}\n{gutter} | {indent}{carets}")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"x\"\n[factors]\nprotocol = [\"h1\", \"hü2\"]\nkind.new = { workers = 1 }\n[[exclude]]\nkind = \"a\"\n";

    #[test]
    fn a_path_leads_to_the_text_of_key_or_value() {
        let at = |path: &[Step], part| &TEXT[span(TEXT, path, part)];
        assert_eq!(at(&steps!["name"], Part::Value), "\"x\"");
        assert_eq!(at(&steps!["factors", "protocol", 1], Part::Value), "\"hü2\"");
        assert_eq!(at(&steps!["factors", "kind", "new", "workers"], Part::Key), "workers");
        assert_eq!(at(&steps!["exclude", 0, "kind"], Part::Value), "\"a\"");
    }

    #[test]
    fn missing_keys_are_located_at_their_nearest_ancestor() {
        assert_eq!(&TEXT[span(TEXT, &steps!["factors", "nothing", 3], Part::Value)], "factors");
    }

    #[test]
    fn columns_count_characters_and_long_lines_are_cut() {
        let place = Place::of("ä = 1\nöö = x", "f.toml", 14..15);
        assert_eq!(
            (place.to_string().as_str(), place.excerpt().as_str()),
            ("f.toml:2:6", "  |\n2 | öö = x\n  |      ^")
        );
        let long = format!("{}X{}", "a".repeat(5000), "b".repeat(5000));
        assert!(Place::of(&long, "f", 5000..5001).excerpt().lines().all(|line| line.len() < 120));
    }
}
