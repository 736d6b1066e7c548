//! All mistakes of a study file at once.
//!
//! Every check stops at its first mistake. To find the next one, the mistake is repaired in the tree of the file: by
//! the word that was probably meant, or else by the removal of the entry. The tree keeps the positions of the file. A
//! mistake that may follow from a removal is not reported, because the author did not make it.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue, Deserializer};
use wirelab_model::study::Study;

use crate::check;
use crate::error::StudyError;
use crate::locate::{Part, Step, place_at, span_in};
use crate::words;

/// More mistakes at once help no author.
const MOST: usize = 25;

/// Stands for a value whose meaning is unknown.
const FILLER: &str = "missing";

/// Parts of a study that are not about levels of factors: their mistakes do not follow from a removed level.
const WITHOUT_LEVELS: [&str; 9] =
    ["factors", "workload", "request", "name", "blocks", "lab", "observers", "planted", "references"];

/// A further check of a study, beyond those of [`crate::parse`].
pub(crate) type Further<'a> = &'a dyn Fn(&Study) -> Result<(), StudyError>;

/// The study, if the file has no mistake.
///
/// # Errors
/// One error with all mistakes in the order of the file, each with file, line and column.
pub(crate) fn read(text: &str, file: &str, further: Further<'_>) -> Result<Study, StudyError> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let errors = errors.iter().take(MOST).map(|error| crate::parse::from_toml(error, text, file));
        return Err(StudyError::all(errors.collect()));
    }
    let mut tree = Tree { root, removed: Vec::new(), replaced: Vec::new() };
    let mut found = Vec::new();
    // A mistake takes a few repairs at most.
    for _ in 0..4 * MOST {
        let mistake = match tree.study(further) {
            Ok(study) if found.is_empty() => return Ok(study),
            Ok(_) => break,
            Err(mistake) => mistake,
        };
        if tree.replaced.contains(&mistake.path) {
            // The other value does not fit here.
            if !tree.remove(&mistake.path) {
                break;
            }
            continue;
        }
        if tree.may_follow(&mistake.path) {
            break;
        }
        let place = span_in(tree.root.get_ref(), &mistake.path, mistake.part);
        let span = mistake.span.clone().unwrap_or(place);
        let is_repaired = tree.repair(&mistake);
        found.push(mistake.error.at_span(text, file, span));
        if !is_repaired || found.len() == MOST {
            break;
        }
    }
    // The first mistake follows from nothing, so it is always found.
    Err(StudyError::all(found))
}

/// The element of a list, such as a claim, that has this path: a claim without its wrong test has no test.
fn element(path: &[Step]) -> Option<&[Step]> {
    matches!(path.get(1), Some(Step::Index(_))).then(|| &path[..2])
}

/// A mistake in the tree.
struct Mistake {
    error: StudyError,
    path: Vec<Step>,
    part: Part,
    /// The position, if the reader of TOML gives it.
    span: Option<Range<usize>>,
    /// Whether the entry at the path is missing.
    is_missing: bool,
}

/// The tree of a file, with repairs.
struct Tree<'i> {
    root: Spanned<DeTable<'i>>,
    /// Paths of entries that were removed.
    removed: Vec<Vec<Step>>,
    /// Paths of values that were replaced.
    replaced: Vec<Vec<Step>>,
}

impl Tree<'_> {
    /// Reads and checks the study.
    fn study(&self, further: Further<'_>) -> Result<Study, Box<Mistake>> {
        let root = self.root.get_ref();
        let study = Study::deserialize(Deserializer::from(self.root.clone())).map_err(|error| {
            let (message, meant) = words::explain(error.message());
            let span = error.span();
            let missing = words::missing_key(error.message());
            let (path, part) = match (missing, &span) {
                (Some(key), Some(span)) => ([table_with(root, span), vec![Step::from(key)]].concat(), Part::Value),
                (Some(key), None) => (vec![Step::from(key)], Part::Value),
                (None, span) => span.as_ref().and_then(|span| place_at(root, span.start)).unwrap_or_default(),
            };
            Mistake { error: StudyError::new(message).meant(meant), path, part, span, is_missing: missing.is_some() }
        })?;
        check::written(&study).and_then(|()| further(&study)).map_err(|error| {
            let (path, part) = error.path();
            Mistake { path, part, error, span: None, is_missing: false }
        })?;
        Ok(study)
    }

    /// Whether a mistake at this path may follow from a removal.
    fn may_follow(&self, path: &[Step]) -> bool {
        let is = |step: Option<&Step>, name: &str| matches!(step, Some(Step::Key(key)) if key == name);
        let is_about_levels = !WITHOUT_LEVELS.iter().any(|name| is(path.first(), name));
        self.removed.iter().any(|removed| {
            removed.starts_with(path)
                || path.starts_with(removed)
                || element(path).is_some_and(|element| removed.starts_with(element))
                || (is_about_levels && is(removed.first(), "factors"))
        })
    }

    /// Changes the tree so that the mistake is gone. Returns whether that is possible.
    fn repair(&mut self, mistake: &Mistake) -> bool {
        if mistake.is_missing {
            return self.add(&mistake.path);
        }
        match (mistake.error.suggestion(), mistake.part) {
            (Some(meant), Part::Key) if self.rename(&mistake.path, meant) => true,
            (meant, Part::Value) if self.replace(&mistake.path, meant.unwrap_or(FILLER)) => true,
            _ => self.remove(&mistake.path),
        }
    }

    /// Adds an entry that is missing.
    fn add(&mut self, path: &[Step]) -> bool {
        let Some((Step::Key(key), table)) = path.split_last() else { return false };
        let Some(entries) = table_at(&mut self.root, table) else { return false };
        entries.insert(owned(0..0, key), Spanned::new(0..0, DeValue::String(Cow::Borrowed(FILLER))));
        self.replaced.push(path.to_vec());
        true
    }

    /// Gives an entry another key, unless the table has it already.
    fn rename(&mut self, path: &[Step], key: &str) -> bool {
        let Some((Step::Key(name), table)) = path.split_last() else { return false };
        let Some(entries) = table_at(&mut self.root, table) else { return false };
        if entries.keys().any(|known| known.get_ref() == key) {
            return false;
        }
        let Some((known, value)) = take(entries, name) else { return false };
        entries.insert(owned(known.span(), key), value);
        true
    }

    /// Replaces a value by a text.
    fn replace(&mut self, path: &[Step], text: &str) -> bool {
        let Some(value) = value_at(&mut self.root, path) else { return false };
        *value.get_mut() = DeValue::String(Cow::Owned(text.to_owned()));
        self.replaced.push(path.to_vec());
        true
    }

    /// Removes the entry at a path, or its nearest ancestor in the file.
    fn remove(&mut self, path: &[Step]) -> bool {
        for length in (1..=path.len()).rev() {
            let (place, parent) = path[..length].split_last().expect("the length is at least 1");
            let is_gone = match place {
                Step::Key(name) => table_at(&mut self.root, parent).is_some_and(|table| take(table, name).is_some()),
                Step::Index(index) => match value_at(&mut self.root, parent).map(Spanned::get_mut) {
                    Some(DeValue::Array(array)) if *index < array.len() => {
                        let others = array.iter().enumerate().filter(|(place, _)| place != index);
                        *array = others.map(|(_, value)| value.clone()).collect::<DeArray<'_>>();
                        true
                    }
                    _ => false,
                },
            };
            if is_gone {
                self.removed.push(path[..length].to_vec());
                return true;
            }
        }
        false
    }
}

/// The path of the table with this position; empty for the root.
fn table_with(root: &DeTable<'_>, span: &Range<usize>) -> Vec<Step> {
    fn search(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<Vec<Step>> {
        match value.get_ref() {
            DeValue::Table(_) if value.span() == *span => Some(Vec::new()),
            DeValue::Table(table) => below(table, span),
            DeValue::Array(array) => array.iter().enumerate().find_map(|(index, element)| {
                search(element, span).map(|path| [vec![Step::Index(index)], path].concat())
            }),
            _ => None,
        }
    }
    fn below(table: &DeTable<'_>, span: &Range<usize>) -> Option<Vec<Step>> {
        table.iter().find_map(|(key, value)| {
            search(value, span).map(|path| [vec![Step::from(key.get_ref().as_ref())], path].concat())
        })
    }
    below(root, span).unwrap_or_default()
}

fn owned<'i>(span: Range<usize>, key: &str) -> Spanned<DeString<'i>> {
    Spanned::new(span, Cow::Owned(key.to_owned()))
}

/// Takes an entry out of a table.
fn take<'i>(table: &mut DeTable<'i>, name: &str) -> Option<(Spanned<DeString<'i>>, Spanned<DeValue<'i>>)> {
    let key = table.keys().find(|key| key.get_ref() == name)?.clone();
    table.remove_entry(&key)
}

fn table_at<'t, 'i>(root: &'t mut Spanned<DeTable<'i>>, path: &[Step]) -> Option<&'t mut DeTable<'i>> {
    if path.is_empty() {
        return Some(root.get_mut());
    }
    match value_at(root, path)?.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

fn value_at<'t, 'i>(root: &'t mut Spanned<DeTable<'i>>, path: &[Step]) -> Option<&'t mut Spanned<DeValue<'i>>> {
    let (Step::Key(first), rest) = path.split_first()? else { return None };
    let mut here = entry(root.get_mut(), first)?;
    for step in rest {
        here = match (here.get_mut(), step) {
            (DeValue::Table(table), Step::Key(name)) => entry(table, name)?,
            (DeValue::Array(array), Step::Index(index)) => array.get_mut(*index)?,
            _ => return None,
        };
    }
    Some(here)
}

fn entry<'t, 'i>(table: &'t mut DeTable<'i>, name: &str) -> Option<&'t mut Spanned<DeValue<'i>>> {
    table.iter_mut().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    /// The lines of the mistakes of a study.
    fn lines(text: &str) -> Vec<usize> {
        let shown = crate::parse(text, "my.toml").unwrap_err().to_string();
        let lines = shown.lines().filter_map(|line| line.strip_prefix("my.toml:")?.split(':').next());
        lines.map(|line| line.parse().unwrap()).collect()
    }

    const WRONG: &str = r#"name = "My Study"
title = "t"
question = 5
seeed = 1
[workload]
payload = "1 KiBB"
wrokers = 2
requests = 0
[factors]
protocol = ["h1", "http2"]
connections = []
[compare]
factor = "protocl"
baseline = "h1"
metrics = ["response_median", "response_median"]
margin = "200 %"
[blocks]
min = 0
max = "ten"
[[exclude]]
protocol = "h9"
[[request]]
method = "get"
path = "items"
"#;

    #[test]
    fn all_mistakes_are_found_in_the_order_of_the_file() {
        let found = lines(WRONG);
        assert_eq!(found, [1, 3, 4, 6, 7, 8, 10, 11, 18, 19, 23, 24]);
    }

    #[test]
    fn mistakes_behind_others_are_found_once_those_are_corrected() {
        // An empty factor has no levels, so that mistakes about levels may follow from it.
        let corrected = WRONG.replace("connections = []\n", "").replace("max = \"ten\"", "max = 20");
        assert_eq!(lines(&corrected), [1, 3, 4, 6, 7, 8, 10, 12, 14, 15, 17, 20, 22, 23]);
    }

    #[test]
    fn a_missing_key_hides_no_other_mistake() {
        let text = "name = \"x\"\n[workload]\npaylod = \"1 KiB\"\n[factors]\nprotocol = [\"h1\"]\n[compare]\nfactor = \"protocol\"\n";
        let shown = crate::parse(text, "my.toml").unwrap_err().to_string();
        for words in
            ["`title` is missing", "`question` is missing", "`baseline` is missing", "`payload`?", "4 mistakes"]
        {
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }

    #[test]
    fn a_mistake_that_follows_from_another_is_not_reported() {
        // Without its only factor the study has no protocol, no compared factor and no baseline.
        let text = "name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n[factors]\nqqqq = [\"h1\"]\n[compare]\nfactor = \"qqqq\"\nbaseline = \"h1\"\n";
        assert_eq!(lines(text), [5]);
    }

    #[test]
    fn all_errors_of_syntax_are_reported() {
        assert_eq!(lines("name = \ntitle = \"t\"\nquestion = [\"q\"\n[factors\n").first(), Some(&1));
        assert!(lines("name = \ntitle = 'x\nquestion = 1 2\n").len() > 1);
    }
}
