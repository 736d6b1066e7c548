//! Checks requirements, and the units of bounds in requirements and claims.

use std::fmt;

use wirelab_model::amount::Amount;
use wirelab_model::claim::Test;
use wirelab_model::metric::{Better, Metric, Quantity, Unit};
use wirelab_model::requirement::{Limit, Reference, Requirement, Statement};
use wirelab_model::study::Study;

use crate::error::StudyError;
use crate::factor::level_names;
use crate::locate::{Step, steps};
use crate::words::{nearest, one_of};

/// Checks the parts of requirements that need only the study: levels and shares.
pub(crate) fn requirements(study: &Study) -> Result<(), StudyError> {
    for (index, requirement) in study.require.iter().enumerate() {
        let Limit::NoWorse { by, than } = &requirement.that.limit else { continue };
        let place = steps!["require", index, "that"];
        if by.unit() != Some(Unit::Share) || by.value() < 0.0 || by.value() >= 1.0 {
            let message = format!("`{by}` is no margin; give a share from 0 % to below 100 %, such as `5 %`");
            return Err(StudyError::new(message).at(place));
        }
        if let Reference::Level(level) = than {
            let levels = levels(study);
            if !levels.contains(level) {
                let factor = &study.compare.factor;
                let message = format!("`{level}` is not a level of `{factor}`, which has {}", one_of(&levels));
                let meant = nearest(level, levels.iter().map(String::as_str));
                return Err(StudyError::new(message).meant(meant).at(place));
            }
        }
    }
    Ok(())
}

/// The levels of the compared factor, in the base and all presets.
fn levels(study: &Study) -> Vec<String> {
    let factor = &study.compare.factor;
    let of_presets = study.presets.values().filter_map(|preset| preset.factors.get(factor));
    study.factors.get(factor).into_iter().chain(of_presets).flat_map(level_names).collect()
}

/// A bound of a claim without a unit, which is read in the base unit of its metric.
#[derive(Debug, Clone, PartialEq)]
pub struct BareBound {
    claim: String,
    bound: Amount,
    metric: Metric,
}

impl fmt::Display for BareBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, bound, metric } = self;
        write!(
            f,
            "The claim `{claim}` has the bound `{bound}` without a unit. It is read as {}, because {} is measured in {}. \
             Write the unit.",
            Quantity(bound.value(), metric.unit),
            metric.name,
            base(metric.unit)
        )
    }
}

const fn base(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::BitsPerSecond => "bit/s",
        Unit::PerSecond => "events per second",
        Unit::Count => "plain numbers",
        Unit::Share => "shares of 1",
    }
}

/// Checks that the bounds of requirements and claims have the units of their metrics. Returns the bounds of claims
/// without a unit. Unknown metrics are skipped; [`check_names`](crate::check_names) reports them.
///
/// # Errors
/// If a unit is missing or wrong. [`StudyError::located`] adds file, line and column.
pub fn check_bounds(study: &Study, metrics: &[&Metric]) -> Result<Vec<BareBound>, StudyError> {
    let find = |name: &str| metrics.iter().copied().find(|metric| metric.name == name);
    for (index, requirement) in study.require.iter().enumerate() {
        if let Some(metric) = find(&requirement.that.metric) {
            statement(&requirement.that, metric).map_err(|error| error.at(steps!["require", index, "that"]))?;
        }
    }
    let mut bare = Vec::new();
    for (index, claim) in study.claims.iter().enumerate() {
        for (number, test) in claim.tests.iter().enumerate() {
            let Some(metric) = find(&test.metric) else { continue };
            let place = || -> Vec<Step> { steps!["claims", index, "tests", number, "expect"].to_vec() };
            for bound in test.expect.amounts() {
                if bound_of_claim(test, bound, metric).map_err(|error| error.at(place()))? {
                    bare.push(BareBound { claim: claim.id.clone(), bound, metric: *metric });
                }
            }
        }
    }
    Ok(bare)
}

/// Adds requirements to a study, as conditions of failure from a command line.
///
/// # Errors
/// If a metric is unknown, or a unit is missing or wrong.
pub fn require(study: &mut Study, statements: Vec<Statement>, metrics: &[&Metric]) -> Result<(), StudyError> {
    for that in statements {
        known_statement(&that, metrics)?;
        let inconclusive = study.require.first().map_or_else(Default::default, |first| first.inconclusive);
        study.require.push(Requirement { that, cells: Default::default(), inconclusive });
    }
    requirements(study).map_err(StudyError::without_path)
}

/// Checks a statement that is not part of a study file, and returns its metric.
///
/// # Errors
/// If the metric is unknown, or a unit is missing or wrong.
pub fn known_statement<'a>(that: &Statement, metrics: &[&'a Metric]) -> Result<&'a Metric, StudyError> {
    let Some(metric) = metrics.iter().copied().find(|metric| metric.name == that.metric) else {
        let short = Statement::short_names().iter().map(|(short, _)| *short);
        let meant = nearest(&that.metric, metrics.iter().map(|metric| metric.name).chain(short));
        return Err(StudyError::new(format!("unknown metric `{}`", that.metric)).meant(meant));
    };
    statement(that, metric)?;
    Ok(metric)
}

fn statement(that: &Statement, metric: &Metric) -> Result<(), StudyError> {
    let (Limit::AtMost(amount) | Limit::AtLeast(amount)) = &that.limit else {
        if metric.unit == Unit::Share {
            let message = format!(
                "`{}` is a share and often 0, so `worse` by a share of it has no meaning; require `at most` or `at least`",
                metric.name
            );
            return Err(StudyError::new(message));
        }
        return Ok(());
    };
    amount.fits(metric.unit).map_err(|unfit| StudyError::new(format!("`{amount}` {unfit}")))?;
    let is_impossible = metric.unit == Unit::Share && metric.better == Better::Lower && amount.value() <= 0.0;
    if is_impossible && matches!(that.limit, Limit::AtMost(_)) {
        let message =
            "no number of requests shows that a share is 0 %; require a small share, such as `at most 0.01 %`";
        return Err(StudyError::new(message));
    }
    Ok(())
}

/// Checks a bound of a claim. Returns whether it lacks the unit of its metric.
fn bound_of_claim(test: &Test, bound: Amount, metric: &Metric) -> Result<bool, StudyError> {
    let is_value = test.with.is_none() && test.of.len() == 1;
    match (is_value, bound.unit()) {
        (true, None) => Ok(metric.unit != Unit::Count && bound.value() != 0.0),
        (true, Some(_)) => match bound.fits(metric.unit) {
            Ok(()) => Ok(false),
            Err(unfit) => Err(StudyError::new(format!("`{bound}` {unfit}"))),
        },
        (false, None) => Ok(false),
        (false, Some(_)) => {
            let what = if test.with.is_some() { "a correlation" } else { "a ratio" };
            let message = format!("`{bound}` has a unit, but this test is about {what}, a number such as `1.5`");
            Err(StudyError::new(message))
        }
    }
}
