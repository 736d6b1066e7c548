//! The headline of a report: the answer in a sentence, with the number, its interval and the amount of evidence.

use wirelab_model::metric::Metric;
use wirelab_stats::analysis::{Compared, Interval, Moment, RequirementVerdict, Verdict};

use crate::Input;
use crate::columns::is_waiting;
use crate::layout::{Layout, sentence};
use crate::numbers::{change, change_with, percent_interval, share};
use crate::requirements;
use crate::summary::{self, Sentence, count};
use crate::words::{self, Tone, direction, margin, symbol, title, upper_first};

/// The answer of a study.
pub(crate) struct Headline {
    pub lead: Sentence,
    /// The answers for the other levels of the compared factor, and further requirements.
    pub others: Vec<Sentence>,
    /// Intervals, tests, amount of data and noise floor.
    pub sure: String,
}

pub(crate) fn headline(input: &Input, layout: &Layout) -> Headline {
    let mut sentences = of_requirements(input);
    let levels = of_levels(input, layout);
    if levels.is_empty() && sentences.is_empty() {
        sentences.push(summary::without_comparisons());
    }
    sentences.extend(levels);
    let lead = sentences.remove(0);
    Headline { lead, others: sentences, sure: sure(input, layout) }
}

/// A requirement is what the run was made for: the first one that is not met, or else the number of those met.
fn of_requirements(input: &Input) -> Vec<Sentence> {
    let results = &input.analysis.requirements;
    if results.iter().all(|result| result.verdict == RequirementVerdict::Met) && results.len() > 1 {
        let text = format!("All {} requirements are met.", results.len());
        return vec![Sentence { tone: Tone::Better, symbol: "✓", text }];
    }
    let mut sentences = requirements::sentences(input);
    // Failed first, then inconclusive, then met.
    sentences.sort_by_key(|sentence| match sentence.tone {
        Tone::Worse => 0,
        Tone::Unknown => 1,
        Tone::Better | Tone::Same => 2,
    });
    sentences
}

/// A sentence per level, the level with the most conditions of one kind first.
fn of_levels(input: &Input, layout: &Layout) -> Vec<Sentence> {
    let mut levels: Vec<Level> =
        (0..layout.series.len()).filter_map(|series| Level::new(input, layout, series)).collect();
    // A stable sort keeps the order of the study between equals.
    levels.sort_by_key(|level| std::cmp::Reverse(level.rank()));
    levels.iter().map(Level::sentence).collect()
}

/// The comparisons of a level in the first metric, one for each condition.
struct Level<'a> {
    input: &'a Input<'a>,
    layout: &'a Layout,
    compared: Vec<&'a Compared>,
    /// The verdict of most conditions; verdicts beyond chance come before inconclusive ones.
    main: Verdict,
}

impl<'a> Level<'a> {
    fn new(input: &'a Input<'a>, layout: &'a Layout, series: usize) -> Option<Self> {
        let rows = layout.groups.iter().flat_map(|group| &group.rows).filter(|row| row.series == series && !row.twin);
        let compared: Vec<_> = rows.filter_map(|row| input.compared(row.cell, input.first_metric())).collect();
        let first = *compared.first()?;
        let number = |verdict: &Verdict| compared.iter().filter(|one| one.verdict == *verdict).count();
        let kinds = [Verdict::Less, Verdict::More, Verdict::Equivalent];
        // The first of equals, because `max_by_key` returns the last.
        let main = kinds.into_iter().rev().filter(|kind| number(kind) > 0).max_by_key(number);
        Some(Self { input, layout, main: main.unwrap_or(first.verdict), compared })
    }

    fn of(&self, verdict: &Verdict) -> Vec<&'a Compared> {
        let is_same = |one: &Verdict| std::mem::discriminant(one) == std::mem::discriminant(verdict);
        self.compared.iter().copied().filter(|one| is_same(&one.verdict)).collect()
    }

    fn rank(&self) -> (bool, bool, usize) {
        let is_open = matches!(self.main, Verdict::CannotTell { .. });
        (!is_open, matches!(self.main, Verdict::Less | Verdict::More), self.of(&self.main).len())
    }

    fn metric(&self) -> Option<&'a Metric> {
        self.input.metric(self.input.first_metric())
    }

    fn sentence(&self) -> Sentence {
        let tone = Tone::of(&self.main, self.metric());
        let text = match self.compared[..] {
            [only] => words::full(self.input, self.layout, only),
            _ => self.text(),
        };
        Sentence { tone, symbol: symbol(&self.main), text }
    }

    /// `HTTP/3 is slower than HTTP/1.1 in 3 of 4 conditions: median response time +22 % [+18, +26] to ×3.10 [3.00,
    /// 3.20]; inconclusive in 1.`
    fn text(&self) -> String {
        let first = self.compared[0];
        let level = self.layout.cell_title(first.cell);
        let baseline = self.layout.cell_title(first.baseline);
        let metric = title(self.input, &first.metric);
        let of_main = self.of(&self.main);
        let word = direction(&self.main, self.metric());
        let conditions = self.conditions(of_main.len());
        let mut text = match self.main {
            Verdict::Less | Verdict::More if self.metric().is_some_and(is_waiting) => {
                format!("{level} is {word} than {baseline} {conditions}: {metric} {}", range(&of_main))
            }
            Verdict::Less | Verdict::More => {
                format!("{level} is {word} than {baseline} in {metric} {conditions}: {}", range(&of_main))
            }
            Verdict::Equivalent => format!(
                "{level} and {baseline} are equivalent within ±{} in {metric} {conditions}: {}",
                margin(self.input),
                range(&of_main)
            ),
            Verdict::CannotTell { .. } => {
                let counts = self.open(&of_main);
                format!("No verdict on {level} against {baseline} in {metric}: {counts}; estimates {}", range(&of_main))
            }
        };
        for verdict in [Verdict::Less, Verdict::More, Verdict::Equivalent].into_iter().filter(|v| *v != self.main) {
            let others = self.of(&verdict);
            if !others.is_empty() {
                let word = direction(&verdict, self.metric());
                text += &format!("; {word} in {} ({})", others.len(), range(&others));
            }
        }
        if !matches!(self.main, Verdict::CannotTell { .. }) {
            let open: Vec<_> = self.compared.iter().copied().filter(|one| is_open(one)).collect();
            if !open.is_empty() {
                text += &format!("; {}", self.open(&open));
            }
        }
        let noisy = self.compared.iter().filter(|one| words::within_noise(one)).count();
        if noisy > 0 {
            text += &format!("; {noisy} within the A/A noise floor: treat with caution");
        }
        upper_first(&format!("{text}."))
    }

    fn conditions(&self, number: usize) -> String {
        match self.compared.len() {
            all if all == number => format!("in all {all} conditions"),
            all => format!("in {number} of {all} conditions"),
        }
    }

    /// `inconclusive in 2; preliminary in 1`.
    fn open(&self, open: &[&Compared]) -> String {
        let number = |word: &str| open.iter().filter(|one| direction(&one.verdict, self.metric()) == word).count();
        let words = ["inconclusive", "preliminary"].map(|word| (word, number(word)));
        let words = words.into_iter().filter(|(_, number)| *number > 0);
        words.map(|(word, number)| format!("{word} in {number}")).collect::<Vec<_>>().join("; ")
    }
}

const fn is_open(compared: &Compared) -> bool {
    matches!(compared.verdict, Verdict::CannotTell { .. })
}

/// A change, with its interval if enough blocks give one.
fn shown((ratio, interval): (f64, Option<&Interval>)) -> String {
    interval.map_or_else(|| change(ratio), |interval| change_with(ratio, Some(interval)))
}

/// The smallest and the largest change, each with its interval.
fn range(compared: &[&Compared]) -> String {
    let known = || compared.iter().filter_map(|one| Some((one.ratio?, one.interval.as_ref())));
    let least = known().min_by(|one, other| one.0.total_cmp(&other.0));
    let most = known().max_by(|one, other| one.0.total_cmp(&other.0));
    match (least, most) {
        (Some(one), Some(other)) if one.0 < other.0 => {
            format!("{} to {}", shown(one), shown(other))
        }
        (Some(one), _) => shown(one),
        _ => "not measured".to_owned(),
    }
}

fn sure(input: &Input, layout: &Layout) -> String {
    let metric = input.first_metric();
    let tested: Vec<_> = input.analysis.comparisons.iter().filter(|one| !one.aa && !one.exploratory).collect();
    let mut facts = Vec::new();
    if input.analysis.moment == Moment::Underway {
        facts.push("the run has not reached its planned end".to_owned());
    }
    let interval = tested.iter().find_map(|one| one.interval);
    facts.extend(interval.map(|interval| format!("brackets are {} intervals", share(interval.confidence))));
    let blocks = input.analysis.complete_blocks;
    match input.table {
        Some(_) => facts.push(count(input.trials.len(), "observation")),
        None => facts.push(format!(
            "{} of {} in {}; {}",
            count(input.trials.len(), "trial"),
            count(input.manifest.plan.cells.len(), "cell"),
            count(blocks as usize, "complete block"),
            summary::ended(input)
        )),
    }
    if tested.len() > 1 {
        facts.push(format!("tests are corrected for {} comparisons (Holm)", tested.len()));
    }
    facts.push(summary::widest_noise(input, layout, metric).map_or_else(
        || "the noise floor was not measured".to_owned(),
        |(_, widest)| format!("the baseline differs from itself by {}", percent_interval(&widest)),
    ));
    upper_first(&format!("{}.", facts.join("; ")))
}

/// A cell in a table of medians.
pub(crate) struct OverviewRow {
    pub symbol: &'static str,
    pub tone: Option<Tone>,
    pub title: String,
    pub median: String,
    pub change: String,
    pub verdict: String,
}

/// The medians and verdicts in the first metric, by condition.
pub(crate) fn overview(input: &Input, layout: &Layout) -> Vec<(String, Vec<OverviewRow>)> {
    let metric = input.first_metric();
    let unit = input.metric(metric).map_or(wirelab_model::metric::Unit::Count, |metric| metric.unit);
    let row = |row: &crate::layout::Row| {
        let compared = input.compared(row.cell, metric);
        let median = input.estimate(row.cell, metric);
        let median = median.map_or_else(|| "not measured".to_owned(), |one| crate::numbers::quantity(one.median, unit));
        OverviewRow {
            symbol: compared.map_or(" ", |compared| symbol(&compared.verdict)),
            tone: compared.map(|compared| Tone::of(&compared.verdict, input.metric(metric))),
            title: layout.row_title(*row),
            median,
            change: compared
                .and_then(|one| Some((one, one.ratio?)))
                .map_or_else(String::new, |(one, ratio)| shown((ratio, one.interval.as_ref()))),
            verdict: compared.map_or_else(String::new, |compared| words::short(input, compared).0),
        }
    };
    let groups = layout.groups.iter().map(|group| {
        let title = if group.levels.is_empty() { "All cells".to_owned() } else { sentence(&group.levels) };
        (title, group.rows.iter().filter(|row| !row.twin).map(row).collect())
    });
    groups.collect()
}
