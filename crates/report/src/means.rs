//! Every comparison of an imported table in one row, with the judgement on its better mean.

use wirelab_model::metric::{Better, Metric};
use wirelab_stats::analysis::{Compared, Estimate, Verdict};

use crate::Input;
use crate::layout::{Layout, level_title};
use crate::numbers::{Scale, magnitude, p_value};
use crate::words::{margin, phrase, short, symbol, upper_first};

/// The comparisons of one metric.
pub(crate) struct Comparisons {
    /// The metric in words.
    pub title: String,
    pub header: Vec<String>,
    /// The number of columns with words, to the left of the numbers.
    pub words: usize,
    pub rows: Vec<Vec<String>>,
    /// The number of better means by outcome.
    pub tally: String,
}

/// How to read the tables.
pub(crate) const NOTE: &str = "“Better mean” is the naive winner with its lead. It is confirmed if the difference is beyond chance \
    after Holm's correction over the table and points the same way. It is reversed if the difference points the other way, and equivalent if \
    it is known to be within the margin. Otherwise it is inconclusive. Change, interval and verdict refer to medians, which a single \
    outlier does not move.";

/// The judgement on a better mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Confirmed,
    Reversed,
    Equivalent,
    Inconclusive,
}

impl Fate {
    const fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Reversed => "reversed",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// A table for each compared metric; empty for a run, whose reports have more detailed tables.
pub(crate) fn tables(input: &Input, layout: &Layout) -> Vec<Comparisons> {
    if input.table.is_none() {
        return Vec::new();
    }
    input.manifest.study.compare.metrics.iter().filter_map(|metric| of_metric(input, layout, metric)).collect()
}

fn of_metric(input: &Input, layout: &Layout, name: &str) -> Option<Comparisons> {
    let metric = input.metric(name)?;
    let comparisons: Vec<_> =
        input.analysis.comparisons.iter().filter(|compared| compared.metric == name && !compared.aa).collect();
    let factor = &input.manifest.study.compare.factor;
    let others: Vec<_> = input.manifest.study.factors.keys().filter(|other| *other != factor).collect();
    let several = layout.series.len() > 2;
    let means = comparisons.iter().flat_map(|compared| [compared.cell, compared.baseline]);
    let scale = Scale::of(metric.unit, means.filter_map(|cell| input.estimate(cell, name)).map(mean));
    let unit = if scale.name.is_empty() { String::new() } else { format!(" ({})", scale.name) };
    let baseline = layout.cell_title(comparisons.first()?.baseline);
    let other = if several { "level".to_owned() } else { layout.cell_title(comparisons[0].cell) };
    let mut header: Vec<String> = others.iter().map(|name| (*name).clone()).collect();
    header.extend(several.then(|| factor.clone()));
    let words = header.len();
    header.extend([
        format!("mean {baseline}{unit}"),
        format!("mean {other}{unit}"),
        "better mean".to_owned(),
        format!("median against {baseline} [95 %]"),
        "P (Holm)".to_owned(),
        "verdict".to_owned(),
        "better mean is".to_owned(),
    ]);
    let mut fates = Vec::new();
    let row = |compared: &&Compared| {
        let cell = &input.manifest.plan.cells[compared.cell];
        let mut row: Vec<String> = others
            .iter()
            .map(|other| cell.levels.get(*other).map_or_else(String::new, |l| level_title(other, l)))
            .collect();
        row.extend(several.then(|| layout.cell_title(compared.cell)));
        let mean_of = |cell: usize| input.estimate(cell, name).map(mean);
        let (here, there) = (mean_of(compared.cell), mean_of(compared.baseline));
        row.extend([there, here].map(|mean| mean.map_or_else(|| "–".to_owned(), |mean| scale.number(mean))));
        let winner = here.zip(there).and_then(|(here, there)| winner(here, there, metric));
        row.push(match (winner, here.zip(there)) {
            (Some(wins), Some((here, there))) => {
                let title = layout.cell_title(if wins { compared.cell } else { compared.baseline });
                if there > 0.0 { format!("{title}, {}", magnitude(here / there)) } else { title }
            }
            _ => "–".to_owned(),
        });
        let (word, size) = short(input, compared);
        row.push(if size.is_empty() { "–".to_owned() } else { size });
        row.push(compared.p_holm.map_or_else(|| "–".to_owned(), p_value));
        row.push(format!("{} {word}", symbol(&compared.verdict)));
        let fate = winner.map(|wins| fate(wins, compared, metric));
        row.push(fate.map_or("–", Fate::words).to_owned());
        fates.extend(fate);
        row
    };
    let rows = comparisons.iter().map(row).collect();
    Some(Comparisons { title: upper_first(&phrase(metric.title)), header, words, rows, tally: tally(input, &fates) })
}

fn mean(estimate: &Estimate) -> f64 {
    estimate.values.iter().map(|(_, value)| value).sum::<f64>() / estimate.values.len() as f64
}

/// Whether the cell has the better mean; absent if neither has.
fn winner(cell: f64, baseline: f64, metric: &Metric) -> Option<bool> {
    (cell != baseline).then_some((cell < baseline) == (metric.better == Better::Lower))
}

/// The judgement on the better mean, which is the cell's if `cell_wins`, else the baseline's.
fn fate(cell_wins: bool, compared: &Compared, metric: &Metric) -> Fate {
    let cell_is_better = match compared.verdict {
        Verdict::Equivalent => return Fate::Equivalent,
        Verdict::CannotTell { .. } => return Fate::Inconclusive,
        Verdict::Less => metric.better == Better::Lower,
        Verdict::More => metric.better == Better::Higher,
    };
    if cell_is_better == cell_wins { Fate::Confirmed } else { Fate::Reversed }
}

/// `Of 16 better means 3 are confirmed, 1 is reversed, ...`.
fn tally(input: &Input, fates: &[Fate]) -> String {
    let count = |fate: Fate| fates.iter().filter(|one| **one == fate).count();
    let are = |number: usize| if number == 1 { "is" } else { "are" };
    let confirmed = count(Fate::Confirmed);
    let mut words = vec![format!("{confirmed} {} confirmed", are(confirmed))];
    let others = [
        (count(Fate::Reversed), "reversed".to_owned()),
        (count(Fate::Equivalent), format!("equivalent within ±{}", margin(input))),
        (count(Fate::Inconclusive), "inconclusive".to_owned()),
    ];
    let others = others.into_iter().filter(|(number, _)| *number > 0);
    words.extend(others.map(|(number, word)| format!("{number} {} {word}", are(number))));
    let means = if fates.len() == 1 { "better mean" } else { "better means" };
    format!("Of {} {means} {}.", fates.len(), words.join(", "))
}
