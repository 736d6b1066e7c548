//! What each level of the compared factor comes to over all conditions.

use wirelab_stats::analysis::{ContestOutcome, Standing};

use crate::contests::Field;
use crate::numbers::change;

/// What a level comes to over all combinations.
#[derive(Debug, Default)]
struct Tally {
    /// The ratio to the next wherever it is the best.
    best: Vec<Option<f64>>,
    tied: usize,
    beaten: usize,
    open: usize,
    absent: usize,
}

/// A line per level: in how many of the combinations it is the best, among the best, beaten, undecided.
pub(crate) fn tallies(field: &Field) -> Vec<String> {
    let mut tallies: Vec<Tally> = field.layout.series.iter().map(|_| Tally::default()).collect();
    for contest in &field.contests {
        let undecided = contest.outcome == ContestOutcome::Undecided;
        if let Some(tally) = contest.leader.and_then(|leader| field.series(leader)).map(|series| &mut tallies[series]) {
            match contest.outcome {
                ContestOutcome::Best => tally.best.push(contest.rivals.first().and_then(|next| next.ratio)),
                ContestOutcome::Tied => tally.tied += 1,
                ContestOutcome::Undecided | ContestOutcome::NoContest => tally.open += 1,
            }
        }
        for rival in &contest.rivals {
            let Some(tally) = field.series(rival.cell).map(|series| &mut tallies[series]) else { continue };
            match rival.standing {
                Standing::Beaten => tally.beaten += 1,
                Standing::Tied if !undecided => tally.tied += 1,
                Standing::Tied | Standing::Open => tally.open += 1,
                Standing::Absent => tally.absent += 1,
            }
        }
    }
    let all = field.contests.len();
    tallies
        .iter()
        .zip(&field.layout.series)
        .map(|(tally, series)| format!("{}: {}.", series.title, words(tally, all)))
        .collect()
}

fn words(tally: &Tally, all: usize) -> String {
    let ratios: Vec<f64> = tally.best.iter().copied().flatten().collect();
    let (low, high) =
        ratios.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    let size = match ratios.len() {
        0 => String::new(),
        1 => format!(" ({} against the next)", change(low)),
        _ => format!(" ({} to {} against the next)", change(low), change(high)),
    };
    let mut words = vec![format!("the best in {} of {all}{size}", tally.best.len())];
    let others = [
        (tally.tied, "among the best in"),
        (tally.beaten, "beaten in"),
        (tally.open, "undecided in"),
        (tally.absent, "without values in"),
    ];
    words.extend(others.iter().filter(|(number, _)| *number > 0).map(|(number, name)| format!("{name} {number}")));
    words.join(", ")
}
