//! The head of every report: the verdicts in sentences, and how reliable they are.

use wirelab_model::journal::StopReason;
use wirelab_stats::analysis::{Compared, Interval, Moment, Verdict};
use wirelab_stats::anytime::BEFORE_END;

use crate::Input;
use crate::ages;
use crate::layout::Layout;
use crate::numbers::{change, percent_interval, share};
use crate::processors;
use crate::requirements;
use crate::source;
use crate::steady;
use crate::words::{Tone, direction, full, margin, noise_floor, phrase, symbol, upper_first};

/// A sentence with the tone of its verdict.
pub(crate) struct Sentence {
    pub tone: Tone,
    pub symbol: &'static str,
    pub text: String,
}

/// With more comparisons than this, the report has a sentence per level instead of one per comparison.
const ONE_BY_ONE: usize = 12;

/// The requirements, then the verdicts in the primary metrics.
pub(crate) fn verdicts(input: &Input, layout: &Layout) -> Vec<Sentence> {
    let compare = &input.manifest.study.compare;
    let primary = compare.metrics.iter().filter(|metric| compare.is_primary(metric));
    let mut sentences = requirements::sentences(input);
    sentences.extend(not_ended(input));
    sentences.extend(primary.flat_map(|metric| verdicts_in(metric, input, layout)));
    sentences
}

/// The sentence of a report before the planned end, with the withheld verdicts.
fn not_ended(input: &Input) -> Option<Sentence> {
    (input.analysis.moment == Moment::Underway).then(|| Sentence {
        tone: Tone::Unknown,
        symbol: "…",
        text: format!(
            "The run has not reached its planned end. Verdicts rest on tests and intervals of {} that stay valid at \
             every look, and need stronger evidence; claims, best levels and pairs get a verdict at the end only.",
            share(1.0 - BEFORE_END)
        ),
    })
}

fn verdicts_in(metric: &str, input: &Input, layout: &Layout) -> Vec<Sentence> {
    let all: Vec<_> = comparisons_in(metric, input).collect();
    if all.is_empty() {
        return vec![without_comparisons()];
    }
    if all.len() <= ONE_BY_ONE {
        return all
            .into_iter()
            .map(|compared| Sentence {
                tone: Tone::of(&compared.verdict, input.metric(&compared.metric)),
                symbol: symbol(&compared.verdict),
                text: full(input, layout, compared),
            })
            .collect();
    }
    by_series(metric, input, layout, &all)
}

pub(crate) fn without_comparisons() -> Sentence {
    Sentence {
        tone: Tone::Unknown,
        symbol: "?",
        text: "No verdict: the study compares no cell with a baseline. It has estimates, and at most an A/A pair."
            .to_owned(),
    }
}

/// The comparisons in a metric, without A/A pairs.
fn comparisons_in<'a>(metric: &str, input: &Input<'a>) -> impl Iterator<Item = &'a Compared> {
    input.analysis.comparisons.iter().filter(move |compared| !compared.aa && compared.metric == metric)
}

/// One sentence per level with the number of conditions by verdict.
fn by_series(metric: &str, input: &Input, layout: &Layout, all: &[&Compared]) -> Vec<Sentence> {
    let metric = input.metric(metric);
    let mut sentences = Vec::new();
    for (number, series) in layout.series.iter().enumerate() {
        let of_series: Vec<_> = all
            .iter()
            .filter(|compared| {
                layout
                    .groups
                    .iter()
                    .flat_map(|group| &group.rows)
                    .any(|row| row.cell == compared.cell && row.series == number && !row.twin)
            })
            .collect();
        let Some(first) = of_series.first() else { continue };
        let mut parts = Vec::new();
        for kind in [Verdict::Less, Verdict::More] {
            let ratios: Vec<f64> = of_series
                .iter()
                .filter(|compared| compared.verdict == kind)
                .filter_map(|compared| compared.ratio)
                .collect();
            let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let high = ratios.iter().copied().fold(0.0, f64::max);
            match ratios.len() {
                0 => {}
                1 => parts.push((ratios.len(), kind, format!("{} in 1 ({})", direction(&kind, metric), change(low)))),
                count => parts.push((
                    count,
                    kind,
                    format!("{} in {count} (from {} to {})", direction(&kind, metric), change(low), change(high)),
                )),
            }
        }
        let same = of_series.iter().filter(|compared| compared.verdict == Verdict::Equivalent).count();
        if same > 0 {
            parts.push((same, Verdict::Equivalent, format!("equivalent within ±{} in {same}", margin(input))));
        }
        for word in ["inconclusive", "preliminary"] {
            let is_meant = |compared: &&&&Compared| direction(&compared.verdict, metric) == word;
            let open: Vec<_> = of_series.iter().filter(is_meant).collect();
            if let Some(example) = open.first() {
                parts.push((open.len(), example.verdict, format!("{word} in {}", open.len())));
            }
        }
        let main = parts.iter().max_by_key(|(count, ..)| *count).map_or(first.verdict, |(_, verdict, _)| *verdict);
        let words: Vec<_> = parts.into_iter().map(|(.., words)| words).collect();
        sentences.push(Sentence {
            tone: Tone::of(&main, metric),
            symbol: symbol(&main),
            text: format!(
                "{} against {} in {}, over {} conditions: {}.",
                series.title,
                layout.cell_title(first.baseline),
                metric.map_or_else(|| first.metric.clone(), |metric| phrase(metric.title)),
                of_series.len(),
                words.join("; ")
            ),
        });
    }
    sentences
}

/// The amount of data, the reason for the end, and the noise floor.
pub(crate) fn ground(input: &Input, layout: &Layout) -> Vec<String> {
    let plan = &input.manifest.plan;
    let blocks = input.analysis.complete_blocks;
    let of_run = || {
        format!(
            "{} of {} cells in {blocks} complete {} (a verdict needs {}); {}.",
            count(input.trials.len(), "trial"),
            plan.cells.len(),
            if blocks == 1 { "block" } else { "blocks" },
            input.blocks_needed(),
            ended(input)
        )
    };
    let mut sentences = vec![input.table.map_or_else(of_run, |table| source::ground(input, table))];
    if let Some(integrity) = input.integrity.filter(|integrity| integrity.unverified > 0) {
        let all = integrity.verified + integrity.unverified;
        sentences.push(format!(
            "{} of {all} records of the journal have no checksum, because an older version wrote them.",
            integrity.unverified
        ));
    }
    let metric = input.first_metric();
    sentences.push(widest_noise(input, layout, metric).map_or_else(
        || "The noise floor was not measured (no A/A pair has data); small differences may be noise.".to_owned(),
        |(floors, widest)| {
            let which = if floors > 1 { "widest noise floor" } else { "noise floor" };
            let title = input.metric(metric).map_or_else(|| metric.to_owned(), |metric| phrase(metric.title));
            format!("{which} (baseline against itself, {title}): {}.", percent_interval(&widest))
        },
    ));
    sentences.extend(processors::sentence(input));
    sentences.extend(processors::both_sides(input));
    sentences.extend(steady::sentence(input));
    sentences.extend(ages::sentence(input));
    sentences.into_iter().map(|sentence| upper_first(&sentence)).collect()
}

/// Why the run has ended, or that it has not.
pub(crate) const fn ended(input: &Input) -> &'static str {
    match input.stopped {
        Some(StopReason::Precise) => "it ended because every interval reached the target precision",
        Some(StopReason::MaxBlocks) => "it ended after the last planned block",
        Some(StopReason::Budget) => "it ended because its time budget was used up",
        Some(StopReason::Interrupted) => "it was interrupted and can be resumed",
        Some(StopReason::Hopeless) => "it was aborted because every trial of the first blocks failed",
        None => "it has not finished",
    }
}

/// The number of groups with a noise floor, and the widest one.
pub(crate) fn widest_noise(input: &Input, layout: &Layout, metric: &str) -> Option<(usize, Interval)> {
    let floors: Vec<_> =
        (0..layout.groups.len()).filter_map(|group| noise_floor(input, layout, group, metric)).collect();
    let widest = floors.iter().copied().max_by(|a, b| (a.high / a.low).total_cmp(&(b.high / b.low)));
    widest.map(|widest| (floors.len(), widest))
}

/// `1 trial`, `2 trials`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
