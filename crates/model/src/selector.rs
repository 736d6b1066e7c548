//! Selection of cells by their levels.

use std::fmt;
use std::str::FromStr;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Cell;
use crate::units::{Frequency, Size, Span};

/// Levels by factor; matches every cell that has all of them. A list as value matches any of its elements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Selector(pub IndexMap<String, serde_json::Value>);

impl Selector {
    /// Selects cells with any of these levels of a factor.
    #[must_use]
    pub fn of(factor: &str, levels: &[String]) -> Self {
        let any = levels.iter().map(|level| serde_json::Value::from(level.as_str()));
        Self(IndexMap::from([(factor.to_owned(), any.collect())]))
    }

    /// Whether it names no factor, and so matches every cell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the levels that it names for a factor, as written.
    #[must_use]
    pub fn levels(&self, factor: &str) -> Vec<String> {
        match self.0.get(factor) {
            Some(serde_json::Value::Array(any)) => any.iter().map(word).collect(),
            one => one.into_iter().map(word).collect(),
        }
    }

    /// Returns a copy restricted to these levels of a factor, unless it already names that factor.
    #[must_use]
    pub fn and(&self, factor: &str, levels: &[String]) -> Self {
        if self.0.contains_key(factor) {
            return self.clone();
        }
        let mut all = Self::of(factor, levels);
        all.0.extend(self.0.clone());
        all
    }

    /// Whether the cell has a matching level for every named factor. Quantities match by size: `1024 B` is `1 KiB`.
    #[must_use]
    pub fn matches(&self, cell: &Cell) -> bool {
        self.matches_levels(&cell.levels)
    }

    /// Like [`Self::matches`], for the levels of a cell by factor.
    #[must_use]
    pub fn matches_levels(&self, levels: &IndexMap<String, String>) -> bool {
        self.0.iter().all(|(factor, wanted)| {
            levels.get(factor).is_some_and(|level| match wanted {
                serde_json::Value::Array(any) => any.iter().any(|one| is_level(one, level)),
                one => is_level(one, level),
            })
        })
    }
}

fn is_level(wanted: &serde_json::Value, level: &str) -> bool {
    fn same<T: FromStr + PartialEq>(a: &str, b: &str) -> bool {
        matches!((a.parse::<T>(), b.parse::<T>()), (Ok(a), Ok(b)) if a == b)
    }
    let word = word(wanted);
    word == level || same::<Size>(&word, level) || same::<Span>(&word, level) || same::<Frequency>(&word, level)
}

/// Writes a value as a level: a string without quotation marks.
fn word(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Writes it like a cell's label: `protocol=h2 payload=1 KiB`, with `|` between alternatives.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (factor, wanted)) in self.0.iter().enumerate() {
            let any = match wanted {
                serde_json::Value::Array(any) => any.iter().map(word).collect::<Vec<_>>().join("|"),
                one => word(one),
            };
            write!(f, "{}{factor}={any}", if place == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_selector_matches_by_word_by_size_and_by_any_of_a_list() {
        let level = |wanted: Value, level: &str| {
            let levels = IndexMap::from([("factor".to_owned(), level.to_owned())]);
            Selector(IndexMap::from([("factor".to_owned(), wanted)])).matches_levels(&levels)
        };
        assert!(level(json!("h2"), "h2") && !level(json!("h2"), "h2c"));
        assert!(level(json!("1024 B"), "1 KiB") && !level(json!("1 KB"), "1 KiB"));
        assert!(level(json!(10), "10") && level(json!(true), "true") && !level(json!(1), "10"));
        assert!(level(json!(["1 KiB", "4 KiB"]), "4 KiB") && !level(json!([]), "4 KiB"));
    }

    #[test]
    fn a_selector_is_written_as_a_label_is() {
        let selector: Selector = serde_json::from_value(json!({ "protocol": "h2", "workers": [1, 10] })).unwrap();
        assert_eq!(selector.to_string(), "protocol=h2 workers=1|10");
    }

    #[test]
    fn a_selector_takes_a_level_of_a_factor_that_it_does_not_name() {
        let selector: Selector = serde_json::from_value(json!({ "workers": 1 })).unwrap();
        assert_eq!(selector.and("protocol", &["h2".to_owned()]).to_string(), "protocol=h2 workers=1");
        assert_eq!(selector.and("workers", &["10".to_owned()]), selector);
        assert!(Selector::default().is_empty() && !selector.is_empty());
        assert_eq!((selector.levels("workers"), selector.levels("protocol")), (vec!["1".to_owned()], Vec::new()));
        let two = ["h1".to_owned(), "h2".to_owned()];
        assert_eq!(Selector::of("protocol", &two).levels("protocol"), two);
    }
}
