//! Checks references to levels (exclusions, adjustments, claims, published numbers), metrics, observers and labs.

use std::collections::HashSet;

use indexmap::{IndexMap, IndexSet};
use serde_json::Value;
use wirelab_model::claim::{Claim, Needs, Test};
use wirelab_model::selector::Selector;
use wirelab_model::study::Study;

use crate::bounds;
use crate::error::StudyError;
use crate::every;
use crate::factor::{level_name, level_names};
use crate::locate::{Step, steps};
use crate::words::{nearest, one_of};

type Checked = Result<(), StudyError>;
/// Known levels by factor.
type Known = IndexMap<String, IndexSet<String>>;

/// Checks that every selector refers to factors and levels of the study, in its base or in a preset.
pub(crate) fn check(study: &Study) -> Checked {
    let known = known(study);
    exclusions(&study.exclude, &known, &[])?;
    for (name, preset) in &study.presets {
        exclusions(preset.exclude.as_deref().unwrap_or_default(), &known, &steps!["presets", name])?;
    }
    for (index, adjustment) in study.adjust.iter().enumerate() {
        if adjustment.cells.is_empty() {
            let message = "an adjustment without levels would change every cell; put it into `[workload]`";
            return Err(StudyError::new(message).at(steps!["adjust", index, "cells"]));
        }
        selector(&adjustment.cells, &known, &steps!["adjust", index, "cells"])?;
    }
    figures(study, &known)?;
    for (index, published) in study.published.iter().enumerate() {
        selector(&published.cell, &known, &steps!["published", index, "cell"])?;
    }
    for (index, requirement) in study.require.iter().enumerate() {
        selector(&requirement.cells, &known, &steps!["require", index, "cells"])?;
    }
    bounds::requirements(study)?;
    claims(study, &known)
}

fn exclusions(exclude: &[Selector], known: &Known, prefix: &[Step]) -> Checked {
    for (index, exclude) in exclude.iter().enumerate() {
        let place = [prefix, &steps!["exclude", index]].concat();
        if exclude.is_empty() {
            let message = "an exclusion without levels would leave out every cell";
            return Err(StudyError::new(message).at(place));
        }
        selector(exclude, known, &place)?;
    }
    Ok(())
}

fn figures(study: &Study, known: &Known) -> Checked {
    for (index, figure) in study.figures.iter().enumerate() {
        selector(&figure.cells, known, &steps!["figures", index, "cells"])?;
        let rows = [(&figure.rows, steps!["figures", index, "rows"].to_vec())].into_iter();
        let pool = figure.pool.iter().enumerate();
        let pool = pool.map(|(number, factor)| (factor, steps!["figures", index, "pool", number].to_vec()));
        for (factor, place) in rows.chain(pool) {
            if !known.contains_key(factor) {
                let names: Vec<_> = known.keys().collect();
                let message = format!("the study has no factor `{factor}`, only {}", one_of(&names));
                let meant = nearest(factor, names.iter().map(|name| name.as_str()));
                return Err(StudyError::new(message).meant(meant).at(place));
            }
        }
        if figure.pool.contains(&figure.rows) {
            let message = format!("`{}` cannot be both the rows and pooled", figure.rows);
            return Err(StudyError::new(message).at(steps!["figures", index, "pool"]));
        }
    }
    Ok(())
}

/// The union of the levels of the base and of all presets.
fn known(study: &Study) -> Known {
    let mut known = Known::new();
    let of_presets = study.presets.values().flat_map(|preset| &preset.factors);
    for (name, factor) in study.factors.iter().chain(of_presets) {
        known.entry(name.clone()).or_default().extend(level_names(factor));
    }
    known
}

fn claims(study: &Study, known: &Known) -> Checked {
    let mut ids = HashSet::new();
    for (index, claim) in study.claims.iter().enumerate() {
        if !ids.insert(&claim.id) {
            let message = format!("two claims have the identifier `{}`", claim.id);
            return Err(StudyError::new(message).at(steps!["claims", index, "id"]));
        }
        if claim.tests.is_empty() && claim.untested.is_none() {
            let message = format!(
                "the claim `{}` has no tests; add `[[claims.tests]]`, or say in `untested` why there are none",
                claim.id
            );
            return Err(StudyError::new(message).at_key(steps!["claims", index, "id"]));
        }
        let each = each(claim, known, &steps!["claims", index])?;
        for (number, test) in claim.tests.iter().enumerate() {
            let place = steps!["claims", index, "tests", number];
            operands(test).map_err(|error| error.at([&place[..], &steps!["of"]].concat()))?;
            for (operand, of) in test.of.iter().enumerate() {
                selector(of, known, &[&place[..], &steps!["of", operand]].concat())?;
            }
            selector(&test.given, known, &[&place[..], &steps!["where"]].concat())?;
            let Some(factor) = each else { continue };
            let same = format!("the test is the same for each `{factor}` of the claim");
            if test.given.0.contains_key(factor) {
                let message = format!("{same}; leave `{factor}` out of `where`");
                return Err(StudyError::new(message).at_key([&place[..], &steps!["where"]].concat()));
            }
            if test.of.iter().all(|of| of.0.contains_key(factor)) {
                let message = format!("{same}; a selector without `{factor}` has the level of the case");
                return Err(StudyError::new(message).at([&place[..], &steps!["of"]].concat()));
            }
        }
    }
    Ok(())
}

/// The factor of `each`, over whose levels a claim is repeated.
fn each<'a>(claim: &'a Claim, known: &Known, place: &[Step]) -> Result<Option<&'a String>, StudyError> {
    let here = [place, &steps!["each"]].concat();
    if claim.each.is_empty() {
        if claim.needs != Needs::All {
            let message = "`needs` is the number of cases of `each` for which the tests must hold, but `each` is \
                           missing; name a factor and its levels: `each = { implementation = [\"a\", \"b\"] }`";
            return Err(StudyError::new(message).at([place, &steps!["needs"]].concat()));
        }
        return Ok(None);
    }
    let Some((factor, Value::Array(_))) = claim.each.0.first().filter(|_| claim.each.0.len() == 1) else {
        let message = "`each` has one factor with a list of its levels: `{ implementation = [\"a\", \"b\"] }`";
        return Err(StudyError::new(message).at_key(here));
    };
    selector(&claim.each, known, &here)?;
    let mut seen = HashSet::new();
    if let Some((index, twice)) =
        claim.each.levels(factor).into_iter().enumerate().find(|(_, level)| !seen.insert(level.clone()))
    {
        let message = format!("`{twice}` is listed twice; list each level once");
        return Err(StudyError::new(message).at([&here[..], &steps![factor, index]].concat()));
    }
    Ok(Some(factor))
}

/// Checks that the number of selectors fits the effect.
fn operands(test: &Test) -> Result<(), StudyError> {
    let given = test.of.len();
    if test.with.is_none() {
        let why = "a test needs one, two or four selectors (a; a/b; (a/b)/(c/d)), and this one has";
        return if matches!(given, 1 | 2 | 4) { Ok(()) } else { Err(StudyError::new(format!("{why} {given}"))) };
    }
    let [one] = &test.of[..] else {
        return Err(StudyError::new(format!("a correlation (`with`) needs one selector, and this one has {given}")));
    };
    let cells: usize = one.0.keys().map(|factor| one.levels(factor).len()).product();
    if cells < Test::LEAST_CELLS {
        let least = Test::LEAST_CELLS;
        return Err(StudyError::new(format!(
            "a correlation (`with`) needs {least} cells or more, and this selector names {cells}; list more levels"
        )));
    }
    Ok(())
}

fn selector(selector: &Selector, known: &Known, place: &[Step]) -> Checked {
    for (factor, value) in &selector.0 {
        let here = [place, &steps![factor]].concat();
        let Some(levels) = known.get(factor) else {
            let names: Vec<_> = known.keys().collect();
            let message = format!("the study has no factor `{factor}`, only {}", one_of(&names));
            let meant = nearest(factor, names.iter().map(|name| name.as_str()));
            return Err(StudyError::new(message).meant(meant).at_key(here));
        };
        match value {
            Value::Array(any) if any.is_empty() => {
                return Err(StudyError::new("an empty list matches no cell; remove it or name levels").at(here));
            }
            Value::Array(any) => {
                for (index, one) in any.iter().enumerate() {
                    level(factor, one, levels, [&here[..], &steps![index]].concat())?;
                }
            }
            one => level(factor, one, levels, here)?,
        }
    }
    Ok(())
}

fn level(factor: &str, value: &Value, levels: &IndexSet<String>, place: Vec<Step>) -> Checked {
    let name = level_name(value);
    // The endpoints behind `installed` are unknown here.
    let takes_all = levels.iter().any(|level| every::stands_for_all(factor, level));
    if takes_all || levels.contains(&name) {
        return Ok(());
    }
    let names: Vec<_> = levels.iter().collect();
    let message = format!("`{name}` is not a level of `{factor}`, which has {}", one_of(&names));
    let meant = nearest(&name, levels.iter().map(String::as_str));
    Err(StudyError::new(message).meant(meant).at(place))
}

/// Names that a study may use and that other crates define.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// Lab names.
    pub labs: &'a [&'a str],
    /// Observer names.
    pub observers: &'a [&'a str],
    /// Metric names, of statistics and observers.
    pub metrics: &'a [&'a str],
}

/// Checks that the study uses only known names.
///
/// # Errors
/// With the nearest known name. [`StudyError::located`] adds file, line and column.
pub fn check_names(study: &Study, names: &Names<'_>) -> Result<(), StudyError> {
    known_name("lab", &study.lab, names.labs, steps!["lab"].to_vec())?;
    for (index, observer) in study.observers.iter().flatten().enumerate() {
        known_name("observer", observer, names.observers, steps!["observers", index].to_vec())?;
    }
    let compared =
        study.compare.metrics.iter().enumerate().map(|(i, name)| (name, steps!["compare", "metrics", i].to_vec()));
    let claimed = study.claims.iter().enumerate().flat_map(|(claim, c)| {
        c.tests.iter().enumerate().flat_map(move |(i, t)| {
            let named = [Some(&t.metric), t.with.as_ref()].into_iter().zip(["metric", "with"]);
            named.filter_map(move |(name, key)| Some((name?, steps!["claims", claim, "tests", i, key].to_vec())))
        })
    });
    let published =
        study.published.iter().enumerate().map(|(i, p)| (&p.metric, steps!["published", i, "metric"].to_vec()));
    let required =
        study.require.iter().enumerate().map(|(i, r)| (&r.that.metric, steps!["require", i, "that"].to_vec()));
    for (name, place) in compared.chain(required).chain(claimed).chain(published) {
        known_name("metric", name, names.metrics, place)?;
    }
    Ok(())
}

fn known_name(what: &str, name: &str, known: &[&str], place: Vec<Step>) -> Checked {
    if known.contains(&name) {
        return Ok(());
    }
    let meant = nearest(name, known.iter().copied());
    let message = match meant {
        Some(_) => format!("unknown {what} `{name}`"),
        None => format!("unknown {what} `{name}`, expected {}", one_of(known)),
    };
    Err(StudyError::new(message).meant(meant).at(place))
}
