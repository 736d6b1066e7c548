//! `wirelab endpoints check`: the contract suite.

use std::path::Path;
use std::time::Instant;

use wirelab_lab::endpoints::{Checked, Found, describe, digest};
use wirelab_model::endpoint::Endpoint;
use wirelab_suite::{CaseResult, Report, Verdict};

use crate::args::Chosen;
use crate::commands::endpoints::chosen;
use crate::commands::endpoints::list::verdict;
use crate::failure::{Failure, Result};
use crate::output::{print, print_json};
use crate::place::program;

/// Runs the contract suite on the chosen endpoints, or only its cases whose names contain the words of `only`. Skips
/// endpoints that are not usable, unless they are named. With `resume` it also skips endpoints that passed before.
pub fn check(wanted: &Chosen, only: Option<&str>, resume: bool, as_json: bool) -> Result {
    let is_named = !wanted.which.names.is_empty();
    let judge = Judge::new(as_json, is_named)?;
    let mut reports = Vec::new();
    for found in chosen(wanted)? {
        let endpoint = match &found.endpoint {
            Ok(endpoint) => endpoint,
            Err(error) if is_named => return Err(Failure::input(error)),
            Err(error) => {
                judge.say(&format!("{}\n  left out: {error}\n", found.name))?;
                continue;
            }
        };
        judge.say(&format!("{}\n", endpoint.name))?;
        if resume && let Some(checked) = found.checked().filter(|checked| judge.need_not_repeat(endpoint, checked)) {
            judge.say(&format!("  as before: {}\n", verdict(&checked)))?;
            continue;
        }
        reports.push(judge.report(&found, endpoint, only)?);
    }
    // The first case is the description, which always runs.
    if let Some(words) = only
        && reports.iter().all(|report| report.failed() == 0 && report.cases.len() == 1)
    {
        return Err(Failure::input(format!(
            "no case has `{words}` in its line; expected words as in `client h3: the warm-up is not recorded`"
        )));
    }
    if as_json {
        print_json(&reports)?;
    }
    let sum = |count: fn(&Report) -> usize| reports.iter().map(count).sum::<usize>();
    match (sum(Report::failed), sum(Report::not_tried)) {
        (0, 0) => Ok(()),
        (failed, 0) => Err(Failure::failed(format!("{failed} cases of the contract suite failed"))),
        (failed, not_tried) => {
            Err(Failure::failed(format!("{failed} cases of the contract suite failed, {not_tried} were not tried")))
        }
    }
}

/// Runs the suite and keeps its results.
struct Judge {
    builtin: Endpoint,
    /// The digest of wirelab's own file, because another version may have another suite.
    program: String,
    scratch: tempfile::TempDir,
    is_silent: bool,
    /// Whether passed cases are printed, too. For many endpoints these are thousands of lines.
    tells_all: bool,
}

impl Judge {
    fn new(is_silent: bool, tells_all: bool) -> Result<Self> {
        let builtin = wirelab_lab::endpoints::builtin(&program()?);
        let program = digest(&builtin).map_err(Failure::failed)?;
        let scratch =
            tempfile::tempdir().map_err(|error| Failure::failed(format!("cannot make a temporary folder: {error}")))?;
        Ok(Self { builtin, program, scratch, is_silent, tells_all })
    }

    fn say(&self, text: &str) -> Result {
        if self.is_silent { Ok(()) } else { print(text) }
    }

    /// Whether this program has already passed this version of the endpoint. The version is compared because a server
    /// of the system can change while its folder does not.
    fn need_not_repeat(&self, endpoint: &Endpoint, checked: &Checked) -> bool {
        checked.is_good()
            && checked.program == self.program
            && describe(endpoint).is_ok_and(|now| checked.version.as_deref() == Some(&*now.version))
    }

    /// Runs the suite on an endpoint. The result is recorded for `wirelab endpoints list`, unless `only` selects cases.
    fn report(&self, found: &Found, endpoint: &Endpoint, only: Option<&str>) -> Result<Report> {
        let mut progress = |case: &CaseResult| {
            if self.tells_all || matches!(case.verdict, Verdict::Failed(_)) {
                let _ = self.say(&format!("  {case}\n"));
            }
        };
        let (begun, scratch): (_, &Path) = (Instant::now(), self.scratch.path());
        let report = match only {
            Some(words) => wirelab_suite::check_only(endpoint, &self.builtin, scratch, words, &mut progress),
            None => wirelab_suite::check(endpoint, &self.builtin, scratch, &mut progress),
        };
        let checked = Checked {
            passed: report.passed(),
            not_applicable: report.not_applicable(),
            failed: report.failed(),
            failures: report.failures(),
            not_tried: report.not_tried(),
            seconds: begun.elapsed().as_secs_f64(),
            at: wirelab_run::store::journal::timestamp(),
            version: describe(endpoint).ok().map(|described| described.version),
            wirelab: env!("CARGO_PKG_VERSION").to_owned(),
            program: self.program.clone(),
        };
        if only.is_none() {
            found.keep(&checked).map_err(Failure::failed)?;
        }
        self.say(&format!("  {}\n", verdict(&checked)))?;
        Ok(report)
    }
}
