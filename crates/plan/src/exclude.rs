//! Combinations of levels that a study excludes or adjusts. Selectors are matched as in `Selector::matches`. They are
//! resolved to level numbers once, because a large matrix has ten thousand cells for each of a thousand exclusions.

use std::collections::HashSet;

use serde_json::Value;
use wirelab_model::selector::Selector;
use wirelab_model::study::Study;
use wirelab_model::units::{Frequency, Size, Span};

use crate::factor::{level_name, level_names};

/// The factors in a selector, by number, each with one flag per level: whether the selector accepts it.
type Resolved = Vec<(usize, Vec<bool>)>;

/// Selectors in terms of factor and level numbers. `None`: the selector matches nothing.
pub(crate) struct Selection(Vec<Option<Resolved>>);

impl Selection {
    pub(crate) fn of<'a>(study: &Study, selectors: impl IntoIterator<Item = &'a Selector>) -> Self {
        let meanings: Vec<Vec<String>> = study
            .factors
            .values()
            .map(|factor| level_names(factor).iter().map(|name| meaning(name)).collect())
            .collect();
        Self(selectors.into_iter().map(|selector| resolve(study, selector, &meanings)).collect())
    }

    /// Indices of the selectors that match these levels (level numbers in factor order).
    pub(crate) fn matching(&self, levels: &[usize]) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter_map(|(number, selector)| {
            let matches = selector.as_ref()?.iter().all(|(factor, matching)| matching[levels[*factor]]);
            matches.then_some(number)
        })
    }
}

/// Accepted levels by factor. `None` if the study lacks a factor of the selector, for example because another preset
/// defines it; such a selector matches nothing.
fn resolve(study: &Study, selector: &Selector, meanings: &[Vec<String>]) -> Option<Resolved> {
    let of_factor = |(factor, value): (&String, &Value)| {
        let number = study.factors.get_index_of(factor)?;
        let wanted: HashSet<String> = match value {
            Value::Array(any) => any.iter().map(|one| meaning(&level_name(one))).collect(),
            one => [meaning(&level_name(one))].into(),
        };
        Some((number, meanings[number].iter().map(|level| wanted.contains(level)).collect()))
    };
    selector.0.iter().map(of_factor).collect()
}

/// Canonical text of a level: equal for equal quantities such as `1 KiB` and `1024 B`.
fn meaning(level: &str) -> String {
    if let Ok(size) = level.parse::<Size>() {
        format!("{} B", size.bytes())
    } else if let Ok(span) = level.parse::<Span>() {
        format!("{} ns", span.nanos())
    } else if let Ok(rate) = level.parse::<Frequency>() {
        format!("{}/s", rate.0)
    } else {
        level.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_mean_the_same_exactly_where_a_selector_matches_them() {
        let words = [
            "1 KiB", "1024 B", "1KiB", "1", "1.0", "1000 us", "1 ms", "60/min", "1/s", "h1", "h1c", "true", "0 B",
            "0 ms",
        ];
        for wanted in words {
            for level in words {
                let selector = Selector([("f".to_owned(), Value::from(wanted))].into());
                let matches = selector.matches_levels(&[("f".to_owned(), level.to_owned())].into());
                assert_eq!(meaning(wanted) == meaning(level), matches, "{wanted} and {level}");
            }
        }
    }
}
