//! What a comparison says, in words that cannot be misread: a direction, the change of the value, its interval.

use wirelab_model::metric::{Better, Metric};
use wirelab_stats::analysis::{CannotTell, ClaimVerdict, Compared, Interval, Verdict};

use crate::Input;
use crate::columns::is_waiting;
use crate::layout::{Layout, sentence};
use crate::numbers::{change_with, magnitude, percent_interval, plain_interval, share, significant};

/// What a verdict means to someone who has to choose; decides colour and symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// An improvement over the baseline.
    Better,
    /// The opposite.
    Worse,
    /// No difference that matters.
    Same,
    /// Unknown.
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

    /// The name of its class in the page.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unknown => "unknown",
        }
    }
}

/// A mark that says the verdict without colour.
pub(crate) const fn symbol(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Less => "▼",
        Verdict::More => "▲",
        Verdict::Equivalent => "=",
        Verdict::CannotTell { .. } => "?",
    }
}

/// The direction in one word.
pub(crate) fn direction(verdict: &Verdict, metric: Option<&Metric>) -> &'static str {
    let waiting = metric.is_some_and(is_waiting);
    match verdict {
        Verdict::Less if waiting => "faster",
        Verdict::More if waiting => "slower",
        Verdict::Less => "less",
        Verdict::More => "more",
        Verdict::Equivalent => "no difference",
        Verdict::CannotTell { .. } => "cannot tell",
    }
}

/// Why there is no verdict, in words.
pub(crate) fn why(input: &Input, compared: &Compared, why: CannotTell) -> String {
    match why {
        CannotTell::TooFewBlocks => {
            format!("too few {}: {} of {}", input.design().counted(), compared.blocks, input.blocks_needed())
        }
        CannotTell::TooNoisy => "the interval is too wide".to_owned(),
        CannotTell::UnequalFailures => unequal_failures(input, compared),
        CannotTell::NoValues => {
            let empty = [compared.cell, compared.baseline]
                .into_iter()
                .find(|cell| input.estimate(*cell, &compared.metric).is_none());
            empty.map_or_else(
                || "no values".to_owned(),
                |cell| format!("no values: {}", input.why_missing(cell, &compared.metric)),
            )
        }
    }
}

/// The verdict as a table shows it: its words, and the change with its interval: `slower`, `+20 % [+18, +22]`.
pub(crate) fn short(input: &Input, compared: &Compared) -> (String, String) {
    let word = match compared.verdict {
        Verdict::Less | Verdict::More => direction(&compared.verdict, input.metric(&compared.metric)).to_owned(),
        Verdict::Equivalent => format!("no difference beyond ±{}", margin(input)),
        Verdict::CannotTell { why: CannotTell::NoValues } => "cannot tell, no values".to_owned(),
        Verdict::CannotTell { why: CannotTell::TooFewBlocks } => {
            format!("cannot tell, too few {}", input.design().counted())
        }
        Verdict::CannotTell { why: CannotTell::TooNoisy } => "cannot tell, too noisy".to_owned(),
        Verdict::CannotTell { why: CannotTell::UnequalFailures } => "cannot tell, fails more".to_owned(),
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

/// Which of the two fails more, with the shares: `h3 fails in 26 % of requests and trials, h1 in 0 %`.
fn unequal_failures(input: &Input, compared: &Compared) -> String {
    let [cell, baseline] = [compared.cell, compared.baseline].map(|cell| {
        input.cell(cell).and_then(|cell| cell.failure_share).map_or_else(|| "an unknown share".to_owned(), share)
    });
    format!("failures differ: {cell} against {baseline} of the baseline's, and what fails is not fast")
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
                format!("has {} than {baseline}", if *verdict == Verdict::Less { "less" } else { "more" })
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
            format!("{at}{cell} {word}: its {title} is {amount}.")
        }
        (Verdict::Equivalent, _) => format!(
            "{at}{cell} and {baseline} do not differ by more than ±{} in {title}{}.",
            margin(input),
            bracket(size)
        ),
        (Verdict::CannotTell { why: reason }, _) => {
            let estimate = size.map(|size| format!("best estimate {size}"));
            format!(
                "{at}cannot tell whether {cell} differs from {baseline} in {title}, {}{}.",
                why(input, compared, *reason),
                bracket(estimate)
            )
        }
        (verdict, None) => format!(
            "{at}{title} of {cell}: {} than of {baseline} ({}).",
            if *verdict == Verdict::Less { "less" } else { "more" },
            no_ratio(input, compared)
        ),
    };
    let caution = if within_noise(compared) {
        " This is no more than the same cell differs from itself (A/A): distrust it."
    } else {
        ""
    };
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

/// `At payload 1 KiB: `, or nothing where there is only one group.
fn place(layout: &Layout, cell: usize) -> String {
    match layout.group_of(cell) {
        Some(group) if !group.levels.is_empty() => format!("at {}, ", sentence(&group.levels)),
        _ => String::new(),
    }
}

/// Whether a difference that was found lies within what the same cell differs from itself.
pub(crate) fn within_noise(compared: &Compared) -> bool {
    let found = matches!(compared.verdict, Verdict::Less | Verdict::More);
    match (compared.ratio, compared.noise_floor) {
        (Some(ratio), Some(noise)) => found && noise.low <= ratio && ratio <= noise.high,
        _ => false,
    }
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

/// The noise floor as a table shows it.
pub(crate) fn noise_words(noise: Option<Interval>) -> String {
    noise.map_or_else(|| "not measured".to_owned(), |noise| percent_interval(&noise))
}

/// A claim's verdict in words.
pub(crate) const fn claim(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Holds => "holds",
        ClaimVerdict::DoesNotHold => "does not hold",
        ClaimVerdict::CannotTell => "cannot tell",
        ClaimVerdict::NotTested => "not tested",
    }
}

/// The class of a claim's verdict in the page.
pub(crate) const fn claim_class(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Holds => "holds",
        ClaimVerdict::DoesNotHold => "violated",
        ClaimVerdict::CannotTell => "unknown",
        ClaimVerdict::NotTested => "untested",
    }
}

/// A mark that says a claim's verdict without colour.
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

/// The first letter in lower case, unless the word is an abbreviation such as `CPU` or a name such as `P99`.
pub(crate) fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}
