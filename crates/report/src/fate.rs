//! Whether a cell works: the outcomes of its trials and requests in a few words.

use wirelab_model::warning::Warning;

use crate::Input;
use crate::failures::Failure;
use crate::numbers::share;

/// The outcome of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fate {
    /// All trials and all their requests succeeded.
    Works,
    /// Some trials (`bad` of `of`) or requests did not succeed; `requests` is the largest share of failed requests in a
    /// trial.
    Partly { bad: u32, of: u32, requests: f64, kind: String, why: Option<String> },
    /// No trial or no request succeeded. wirelab skipped `not_run` trials after earlier failures.
    Failed { of: u32, not_run: u32, blame: String, reason: String },
    /// All trials were unsupported.
    Unsupported { reason: String },
    /// No trial has run yet.
    Untried,
}

impl Fate {
    pub(crate) fn of(input: &Input, failures: &[Failure], cell: usize) -> Self {
        let Some(known) = input.cell(cell) else { return Self::Untried };
        let (bad, of) = (known.failed + known.unsupported, known.ok + known.failed + known.unsupported);
        let of_cell = || failures.iter().filter(|failure| failure.cell == cell);
        let not_run = of_cell().filter(|failure| failure.is_not_run).map(|failure| failure.trials as u32).sum();
        // A failure is more informative than an unsupported trial, and both than a skipped trial.
        let first = of_cell().min_by_key(|failure| (failure.outcome != "failed", failure.is_not_run));
        let reason = || first.map_or_else(|| "the reason is unknown".to_owned(), |failure| failure.reason.clone());
        let requests = input.estimate(cell, "error_share");
        let kind =
            || kind_of_failed_requests(input, cell).map_or_else(String::new, |kind| format!(" (mostly `{kind}`)"));
        match (known.ok, known.failed, known.unsupported) {
            (0, 0, 0) => Self::Untried,
            (0, 0, _) => Self::Unsupported { reason: reason() },
            (0, ..) => {
                let blame = first.map_or_else(|| "unknown".to_owned(), |failure| failure.blame.clone());
                Self::Failed { of, not_run, blame, reason: reason() }
            }
            _ if bad == 0 && requests.is_some_and(|share| share.range.0 >= 1.0) => {
                let reason = format!("no request of the measured window succeeded{}", kind());
                Self::Failed { of, not_run, blame: "unknown".to_owned(), reason }
            }
            _ => {
                let requests = requests.map_or(0.0, |share| share.range.1);
                if bad == 0 && requests == 0.0 {
                    return Self::Works;
                }
                let why = first.map(|failure| format!("{}: {}", failure.blame, failure.reason));
                let kind = if requests > 0.0 { kind() } else { String::new() };
                Self::Partly { bad, of, requests, kind, why }
            }
        }
    }

    pub(crate) const fn works(&self) -> bool {
        matches!(self, Self::Works | Self::Partly { .. })
    }

    pub(crate) const fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    pub(crate) const fn mark(&self) -> &'static str {
        match self {
            Self::Works => "✓",
            Self::Partly { .. } => "!",
            Self::Failed { .. } => "✗",
            Self::Unsupported { .. } => "∅",
            Self::Untried => "·",
        }
    }

    /// The CSS class in the HTML report.
    pub(crate) const fn class(&self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Partly { .. } => "partly",
            Self::Failed { .. } => "broken",
            Self::Unsupported { .. } | Self::Untried => "absent",
        }
    }

    /// The token in CSV files.
    pub(crate) const fn token(&self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Partly { .. } => "partly",
            Self::Failed { .. } => "failed",
            Self::Unsupported { .. } => "unsupported",
            Self::Untried => "untried",
        }
    }

    /// The words in place of a number.
    pub(crate) fn short(&self) -> &str {
        match self {
            Self::Works | Self::Partly { .. } => "works",
            Self::Failed { blame, .. } if blame == "unknown" => "fails",
            Self::Failed { blame, .. } => blame,
            Self::Unsupported { .. } => "unsupported",
            Self::Untried => "no trial yet",
        }
    }

    /// The note beside a number; empty without one.
    pub(crate) fn note(&self) -> String {
        match self {
            Self::Partly { bad, of, requests, .. } => {
                let trials = (*bad > 0).then(|| format!("{bad} of {of} trials failed"));
                let requests = (*requests > 0.0).then(|| format!("up to {} of requests failed", share(*requests)));
                trials.into_iter().chain(requests).collect::<Vec<_>>().join(", ")
            }
            _ => String::new(),
        }
    }

    /// The failures in a sentence; `None` if the cell works.
    pub(crate) fn sentence(&self) -> Option<String> {
        Some(match self {
            Self::Works => return None,
            Self::Partly { kind, why, .. } => {
                let why = why.as_ref().map_or_else(String::new, |why| format!("; {why}"));
                format!("! {}{kind}{why}", self.note())
            }
            Self::Failed { of, not_run, blame, reason } => {
                let run = of - not_run;
                let rest = if *not_run > 0 { format!(", {not_run} more were not run") } else { String::new() };
                format!("✗ failed in {run} of {run} trials{rest}, blame {blame}: {reason}")
            }
            Self::Unsupported { reason } => format!("∅ unsupported: {reason}"),
            Self::Untried => "no trial yet".to_owned(),
        })
    }

    /// `23 work, 1 fails, 1 is unsupported`.
    pub(crate) fn tally(fates: &[Self]) -> String {
        let words = [
            ("works", "works", "work"),
            ("partly", "fails sometimes", "fail sometimes"),
            ("failed", "fails", "fail"),
            ("unsupported", "is unsupported", "are unsupported"),
            ("untried", "has no trial yet", "have no trial yet"),
        ];
        let count = |token: &str| fates.iter().filter(|fate| fate.token() == token).count();
        let parts = words.iter().map(|(token, one, many)| (count(token), one, many)).filter(|(count, ..)| *count > 0);
        parts
            .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// The most frequent kind of error among the failed requests of a cell.
fn kind_of_failed_requests<'a>(input: &Input<'a>, cell: usize) -> Option<&'a str> {
    let label = input.manifest.plan.cells.get(cell)?.label();
    crate::warnings::all(input).into_iter().find_map(|warning| match warning {
        Warning::RequestsFailed { cell, kind, .. } if *cell == label => Some(kind.as_str()),
        _ => None,
    })
}
