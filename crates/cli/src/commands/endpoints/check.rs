//! `wirelab endpoints check`: the contract suite.

use wirelab_lab::endpoints::{Checked, Found};
use wirelab_suite::{CaseResult, Report, Verdict};

use crate::args::Chosen;
use crate::commands::endpoints::chosen;
use crate::commands::endpoints::list::verdict;
use crate::failure::{Failure, Result};
use crate::output::{print, print_json};
use crate::place::program;

/// Runs the contract suite, or its cases that have the words of `only`, on the chosen endpoints. Of those that are not named, those
/// that cannot be used are left out.
pub fn check(wanted: &Chosen, only: Option<&str>, as_json: bool) -> Result {
    let builtin = wirelab_lab::endpoints::builtin(&program()?);
    let scratch =
        tempfile::tempdir().map_err(|error| Failure::failed(format!("cannot make a temporary folder: {error}")))?;
    let mut reports = Vec::new();
    for found in chosen(wanted)? {
        let endpoint = match &found.endpoint {
            Ok(endpoint) => endpoint,
            Err(_) if wanted.names.is_empty() => continue,
            Err(error) => return Err(Failure::input(error)),
        };
        if !as_json {
            print(&format!("{}\n", endpoint.name))?;
        }
        let mut progress = |case: &CaseResult| {
            // Of many endpoints every case would be thousands of lines.
            if !as_json && (!wanted.names.is_empty() || matches!(case.verdict, Verdict::Failed(_))) {
                let _ = print(&format!("  {case}\n"));
            }
        };
        let report = match only {
            Some(words) => wirelab_suite::check_only(endpoint, &builtin, scratch.path(), words, &mut progress),
            None => wirelab_suite::check(endpoint, &builtin, scratch.path(), &mut progress),
        };
        if only.is_none() {
            keep(&found, &report)?;
        }
        if !as_json {
            print(&format!("  {}\n", verdict(count(&report))))?;
        }
        reports.push(report);
    }
    // The first case is the description, which is always asked for.
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
    let failed: usize = reports.iter().map(Report::failed).sum();
    if failed == 0 { Ok(()) } else { Err(Failure::failed(format!("{failed} cases of the contract suite failed"))) }
}

/// Keeps what the suite said beside what was installed, for the list.
fn keep(found: &Found, report: &Report) -> Result {
    let Some(installation) = &found.installation else { return Ok(()) };
    installation.check(count(report)).map_err(Failure::failed)
}

fn count(report: &Report) -> Checked {
    Checked { passed: report.passed(), not_applicable: report.not_applicable(), failed: report.failed() }
}
