//! Verdicts in words: the direction, the change of the value and its interval.

use wirelab_model::metric::{Better, Metric};
use wirelab_stats::analysis::{CannotTell, ClaimVerdict, Compared, Interval, Verdict};

use crate::Input;
use crate::columns::is_waiting;
use crate::layout::{Layout, sentence};
use crate::limits;
use crate::numbers::{change_with, magnitude, p_value, percent_interval, plain_interval, share, significant};

/// The value of a verdict for the compared cell; decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// An improvement over the baseline.
    Better,
    /// The opposite.
    Worse,
    /// Equivalent within the margin.
    Same,
    /// Inconclusive or preliminary.
    Unknown,
}

impl Tone {
    pub(crate) fn of(verdict: &Verdict, metric: Option<&Metric>) -> Self {
        let lower = metric.is_none_or(|metric| metric.better == Better::Lower);
        match verdict {
            Verdict::Less if lower => Self::Better,
            Verdict::More if !lower => Self::Better,
            Verdict::Less | Verdict::More => Self::Worse,
            Verdict::Equivalent => Self::Same,
            Verdict::CannotTell { .. } => Self::Unknown,
        }
    }

    /// The CSS class in the HTML report.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unknown => "unknown",
        }
    }
}

/// The verdict as a symbol, for readers without colour.
pub(crate) const fn symbol(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Less => "▼",
        Verdict::More => "▲",
        Verdict::Equivalent => "=",
        Verdict::CannotTell { .. } => "?",
    }
}

/// The verdict in one word.
pub(crate) fn direction(verdict: &Verdict, metric: Option<&Metric>) -> &'static str {
    let waiting = metric.is_some_and(is_waiting);
    match verdict {
        Verdict::Less if waiting => "faster",
        Verdict::More if waiting => "slower",
        Verdict::Less => "lower",
        Verdict::More => "higher",
        Verdict::Equivalent => "equivalent",
        Verdict::CannotTell { why: CannotTell::TooFewBlocks } => "preliminary",
        Verdict::CannotTell { .. } => "inconclusive",
    }
}

/// The reason for an inconclusive or preliminary comparison.
pub(crate) fn why(input: &Input, compared: &Compared, why: CannotTell) -> String {
    match why {
        CannotTell::TooFewBlocks => {
            format!("{} of {} {}", compared.blocks, compared.blocks_needed, input.design().counted())
        }
        CannotTell::TooNoisy => "the data are too noisy".to_owned(),
        CannotTell::Correction => {
            let p = compared.p_holm.map_or_else(String::new, |p| format!(": P {}", p_value(p)));
            format!("not significant after the correction for the number of comparisons{p}")
        }
        CannotTell::NoiseFloor => "the A/A pair differs by as much".to_owned(),
        CannotTell::NotEnded => NOT_ENDED.to_owned(),
        CannotTell::UnequalFailures => unequal_failures(input, compared),
        CannotTell::ClientBound => limits::client_bound(input, [compared.cell, compared.baseline]),
        CannotTell::NoValues => {
            let empty = [compared.cell, compared.baseline]
                .into_iter()
                .find(|cell| input.estimate(*cell, &compared.metric).is_none());
            empty.map_or_else(
                || "no data".to_owned(),
                |cell| format!("no data: {}", input.why_missing(cell, &compared.metric)),
            )
        }
    }
}

/// Why a result is withheld.
pub(crate) const NOT_ENDED: &str = "the run has not reached its end";

/// The verdict in a table, as words and as the change with its interval: `slower`, `+20 % [+18, +22]`.
pub(crate) fn short(input: &Input, compared: &Compared) -> (String, String) {
    let word = match compared.verdict {
        Verdict::Less | Verdict::More => {
            let word = direction(&compared.verdict, input.metric(&compared.metric));
            if compared.exploratory { format!("{word} (exploratory)") } else { word.to_owned() }
        }
        Verdict::Equivalent => format!("equivalent within ±{}", margin(input)),
        Verdict::CannotTell { why: CannotTell::NoValues } => "inconclusive, no data".to_owned(),
        Verdict::CannotTell { why: CannotTell::TooFewBlocks } => {
            format!("preliminary, too few {}", input.design().counted())
        }
        Verdict::CannotTell { why: CannotTell::TooNoisy } => "inconclusive, too noisy".to_owned(),
        Verdict::CannotTell { why: CannotTell::Correction } => "inconclusive, after correction".to_owned(),
        Verdict::CannotTell { why: CannotTell::NoiseFloor } => "inconclusive, A/A differs as much".to_owned(),
        Verdict::CannotTell { why: CannotTell::NotEnded } => "inconclusive, not ended".to_owned(),
        Verdict::CannotTell { why: CannotTell::UnequalFailures } => "inconclusive, fails more".to_owned(),
        Verdict::CannotTell { why: CannotTell::ClientBound } => "inconclusive, client-bound".to_owned(),
    };
    let size = compared.ratio.map_or_else(String::new, |ratio| change_with(ratio, compared.interval.as_ref()));
    (word, size)
}

/// Why a comparison has no ratio.
pub(crate) fn no_ratio(input: &Input, compared: &Compared) -> &'static str {
    let is_known = |cell: usize| input.estimate(cell, &compared.metric).is_some();
    match compared.blocks {
        0 => "not measured",
        _ if is_known(compared.cell) && is_known(compared.baseline) => "no ratio: the baseline is 0",
        _ => "no ratio: failures make a median infinite",
    }
}

/// The failure shares of both cells: `failures differ: 26 %, and 0 % for the baseline; ...`.
fn unequal_failures(input: &Input, compared: &Compared) -> String {
    let [cell, baseline] = [compared.cell, compared.baseline].map(|cell| {
        input.cell(cell).and_then(|cell| cell.failure_share).map_or_else(|| "an unknown share".to_owned(), share)
    });
    format!("failures differ: {cell}, and {baseline} for the baseline; successful requests alone are a selection")
}

/// The margin of equivalence: `5 %`.
pub(crate) fn margin(input: &Input) -> String {
    share(input.manifest.study.compare.margin.0)
}

/// The verdict as a sentence.
pub(crate) fn full(input: &Input, layout: &Layout, compared: &Compared) -> String {
    let metric = input.metric(&compared.metric);
    let title = metric.map_or_else(|| compared.metric.clone(), |metric| phrase(metric.title));
    let cell = layout.cell_title(compared.cell);
    let baseline = layout.cell_title(compared.baseline);
    let at = place(layout, compared.cell);
    let size = compared.ratio.map(|ratio| size_words(ratio, compared.interval.as_ref()));
    let text = match (&compared.verdict, compared.ratio) {
        (Verdict::Less | Verdict::More, Some(ratio)) => {
            let verdict = &compared.verdict;
            let word = if metric.is_some_and(is_waiting) {
                format!("is {} than {baseline}", direction(verdict, metric))
            } else {
                format!("is {} than {baseline} in {title}", direction(verdict, metric))
            };
            let interval = compared.interval.as_ref();
            let amount = if ratio >= 2.0 {
                let interval = interval.map_or_else(String::new, |interval| format!(" {}", plain_interval(interval)));
                format!("{} times{interval} that of {baseline}", significant(ratio))
            } else {
                let lower = if ratio < 1.0 { "lower" } else { "higher" };
                let interval = interval.map_or_else(String::new, |interval| format!(" {}", percent_interval(interval)));
                let change = magnitude(ratio);
                format!("{change} {lower}{interval} ({})", ratio_words(ratio, compared.interval.as_ref()))
            };
            if metric.is_some_and(is_waiting) {
                format!("{at}{cell} {word}: its {title} is {amount}.")
            } else {
                format!("{at}{cell} {word}: {amount}.")
            }
        }
        (Verdict::Equivalent, _) => {
            format!("{at}{cell} and {baseline} are equivalent within ±{} in {title}{}.", margin(input), bracket(size))
        }
        (Verdict::CannotTell { why: reason }, _) => {
            let estimate = size.map(|size| format!("best estimate {size}"));
            format!(
                "{at}{cell} against {baseline} in {title} is {}: {}{}.",
                direction(&compared.verdict, metric),
                why(input, compared, *reason),
                bracket(estimate)
            )
        }
        (verdict, None) => format!(
            "{at}{cell} is {} than {baseline} in {title} ({}).",
            direction(verdict, metric),
            no_ratio(input, compared)
        ),
    };
    let caution =
        if within_noise(compared) { " This is within the A/A noise floor; treat it with caution." } else { "" };
    format!("{}{caution}", upper_first(&text))
}

/// `−20 % [−22, −18], ratio 0.800 [0.780, 0.820]`.
fn size_words(ratio: f64, interval: Option<&Interval>) -> String {
    if ratio >= 2.0 {
        return ratio_words(ratio, interval);
    }
    format!("{}, {}", change_with(ratio, interval), ratio_words(ratio, interval))
}

/// `ratio 0.800 [0.780, 0.820]`.
fn ratio_words(ratio: f64, interval: Option<&Interval>) -> String {
    match interval {
        Some(interval) => format!("ratio {} {}", significant(ratio), plain_interval(interval)),
        None => format!("ratio {}", significant(ratio)),
    }
}

fn bracket(text: Option<String>) -> String {
    text.map_or_else(String::new, |text| format!(" ({text})"))
}

/// `at payload 1 KiB, `; empty with a single group.
fn place(layout: &Layout, cell: usize) -> String {
    match layout.group_of(cell) {
        Some(group) if !group.levels.is_empty() => format!("at {}, ", sentence(&group.levels)),
        _ => String::new(),
    }
}

/// Whether a significant difference lies within the A/A noise floor.
pub(crate) fn within_noise(compared: &Compared) -> bool {
    let found = matches!(compared.verdict, Verdict::Less | Verdict::More);
    match (compared.ratio, compared.noise_floor) {
        (Some(ratio), Some(noise)) => found && noise.low <= ratio && ratio <= noise.high,
        _ => false,
    }
}

/// The title of a metric within a sentence; its name if it is unknown.
pub(crate) fn title(input: &Input, metric: &str) -> String {
    input.metric(metric).map_or_else(|| metric.to_owned(), |metric| phrase(metric.title))
}

/// The noise floor of a group: the interval of the ratio of its A/A pair.
pub(crate) fn noise_floor(input: &Input, layout: &Layout, group: usize, metric: &str) -> Option<Interval> {
    let rows = &layout.groups[group].rows;
    let here = |compared: &&Compared| compared.metric == metric && rows.iter().any(|row| row.cell == compared.cell);
    let comparisons = || input.analysis.comparisons.iter().filter(here);
    comparisons()
        .find(|compared| compared.aa)
        .and_then(|compared| compared.interval)
        .or_else(|| comparisons().find_map(|compared| compared.noise_floor))
}

/// The noise floor in a table.
pub(crate) fn noise_words(noise: Option<Interval>) -> String {
    noise.map_or_else(|| "not measured".to_owned(), |noise| percent_interval(&noise))
}

/// A claim's verdict in words.
pub(crate) const fn claim(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Holds => "holds",
        ClaimVerdict::DoesNotHold => "does not hold",
        ClaimVerdict::CannotTell => "inconclusive",
        ClaimVerdict::NotTested => "not tested",
    }
}

/// The CSS class of a claim's verdict in the HTML report.
pub(crate) const fn claim_class(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Holds => "holds",
        ClaimVerdict::DoesNotHold => "violated",
        ClaimVerdict::CannotTell => "unknown",
        ClaimVerdict::NotTested => "untested",
    }
}

/// A claim's verdict as a symbol, for readers without colour.
pub(crate) const fn claim_symbol(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Holds => "✓",
        ClaimVerdict::DoesNotHold => "✗",
        ClaimVerdict::CannotTell => "?",
        ClaimVerdict::NotTested => "–",
    }
}

/// A metric's title within a sentence: `Response time, median` becomes `median response time`.
pub(crate) fn phrase(title: &str) -> String {
    match title.rsplit_once(", ") {
        Some((what, which)) => format!("{} {}", lower_first(which), lower_first(what)),
        None => lower_first(title),
    }
}

/// The first letter in upper case.
pub(crate) fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Lowers the first letter, except in an abbreviation (`CPU`) or a name (`P99`).
pub(crate) fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}
