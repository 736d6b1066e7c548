//! Studies in a lab that does not support some of their cells. Such cells are omitted, so that a study written for
//! one lab runs in another with the cells that both support.

use indexmap::IndexMap;
use serde_json::Value;
use wirelab_model::plan::{Cell, Job, Plan};
use wirelab_model::selector::Selector;
use wirelab_model::settings::Settings;
use wirelab_model::study::Study;
use wirelab_model::warning::Warning;

use crate::error::StudyError;
use crate::matrix::plan_in;

/// Plans a study for its lab, which has these defaults of settings. Returns the plan, the study without unsupported
/// cells, and a warning for each reason. `refuses` returns the reason why the lab cannot run a job, or `None`. If the
/// remaining cells allow no comparison with the baseline, every cell stays: the run must then be refused, not reduced.
///
/// # Errors
/// As [`plan_in`].
pub fn placed(
    mut study: Study,
    defaults: &Settings,
    refuses: &dyn Fn(&Job) -> Option<String>,
) -> Result<(Study, Plan, Vec<Warning>), StudyError> {
    let (whole, warnings) = plan_in(&study, defaults)?;
    let refused: Vec<_> = whole.cells.iter().map(|cell| refuses(&cell.job)).collect();
    let cells = || whole.cells.iter().zip(&refused);
    if refused.iter().all(Option::is_none) || !compares(&study, cells()) {
        return Ok((study, whole, warnings));
    }
    let mut reasons: IndexMap<&String, Vec<String>> = IndexMap::new();
    for (selector, why) in without_place(cells()) {
        reasons.entry(why).or_default().push(selector.to_string());
        study.exclude.push(selector);
    }
    let (smaller, warnings) = plan_in(&study, defaults)?;
    let lab = &study.lab;
    let left_out =
        reasons.into_iter().map(|(why, cells)| Warning::NoPlace { lab: lab.clone(), cells, why: why.clone() });
    let warnings = left_out.chain(warnings).collect();
    Ok((study, smaller, warnings))
}

/// Whether supported cells of the baseline and of another level remain.
fn compares<'a>(study: &Study, cells: impl Iterator<Item = (&'a Cell, &'a Option<String>)> + Clone) -> bool {
    let of_baseline = |cell: &Cell| cell.levels.get(&study.compare.factor) == Some(&study.compare.baseline);
    let mut left = cells.filter(|(_, why)| why.is_none()).map(|(cell, _)| of_baseline(cell));
    left.clone().any(|is| is) && left.any(|is| !is)
}

/// The levels without any supported cell, then the unsupported cells that have none of these levels; each with the
/// reason of its first cell.
fn without_place<'a>(
    cells: impl Iterator<Item = (&'a Cell, &'a Option<String>)> + Clone,
) -> Vec<(Selector, &'a String)> {
    let mut levels: IndexMap<(&str, &str), Option<&String>> = IndexMap::new();
    for (cell, why) in cells.clone() {
        for (factor, level) in &cell.levels {
            // One supported cell keeps the level.
            let kept = levels.entry((factor, level)).or_insert(why.as_ref());
            *kept = kept.and(why.as_ref()).and(*kept);
        }
    }
    let whole = levels.iter().filter_map(|((factor, level), why)| Some((one(factor, level), (*why)?)));
    let whole: Vec<_> = whole.collect();
    let single = cells.filter_map(|(cell, why)| Some((cell, why.as_ref()?)));
    let single =
        single.filter(|(cell, _)| cell.twin_of.is_none() && !whole.iter().any(|(level, _)| level.matches(cell)));
    let single = single.map(|(cell, why)| {
        let levels = cell.levels.iter().map(|(factor, level)| (factor.clone(), Value::from(level.as_str())));
        (Selector(levels.collect()), why)
    });
    let single: Vec<_> = single.collect();
    whole.into_iter().chain(single).collect()
}

fn one(factor: &str, level: &str) -> Selector {
    Selector([(factor.to_owned(), Value::from(level))].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = r#"
        name = "mine"
        title = "t"
        question = "q"
        lab = "netns"
        [factors]
        placement = ["same-node", "lan", "single-az"]
        protocol = ["h1", "h2", "h3"]
        [compare]
        factor = "protocol"
        baseline = "h1"
    "#;

    /// Labels of the remaining cells, and the selectors and reasons of the omitted ones.
    fn left(refuses: &dyn Fn(&str) -> Option<&'static str>) -> (Vec<String>, Vec<(Vec<String>, String)>) {
        let study = crate::parse(STUDY, "mine.toml").unwrap();
        let words = |job: &Job| format!("{} {}", job.protocol, job.topology.placement);
        let (study, plan, warnings) =
            placed(study, &Settings::default(), &|job| refuses(&words(job)).map(str::to_owned)).unwrap();
        let said = warnings.into_iter().filter_map(|warning| match warning {
            Warning::NoPlace { cells, why, lab } => {
                assert_eq!(lab, study.lab);
                Some((cells, why))
            }
            _ => None,
        });
        (plan.cells.iter().map(Cell::label).collect(), said.collect())
    }

    #[test]
    fn a_lab_that_supports_every_cell_omits_none() {
        let (cells, said) = left(&|_| None);
        assert_eq!((cells.len(), said.len()), (12, 0));
    }

    #[test]
    fn unsupported_cells_are_named_by_level_or_one_by_one_for_each_reason() {
        let (cells, said) = left(&|words| match words {
            _ if words.starts_with("h3") => Some("no UDP"),
            "h2 lan" | "h1 single-az" => Some("too large"),
            "h2 single-az" => Some("far too large"),
            _ => None,
        });
        assert_eq!(
            cells,
            [
                "placement=same-node protocol=h1",
                "placement=same-node protocol=h2",
                "placement=lan protocol=h1",
                "placement=same-node protocol=h1 (A/A)",
                "placement=lan protocol=h1 (A/A)"
            ]
        );
        let said: Vec<_> = said.iter().map(|(cells, why)| (cells.join(", "), why.as_str())).collect();
        let expected = [
            ("protocol=h3".to_owned(), "no UDP"),
            ("placement=single-az, placement=lan protocol=h2".to_owned(), "too large"),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn cells_stay_if_no_comparison_would_remain() {
        for only in ["h1", "h2"] {
            let (cells, said) = left(&|words| (!words.starts_with(only)).then_some("no"));
            assert_eq!((cells.len(), said.len()), (12, 0), "only {only}");
        }
    }
}
