//! The record of each level of the compared factor over all conditions.

use wirelab_stats::analysis::{ContestOutcome, Standing};

use crate::contests::Field;
use crate::numbers::change;
use crate::summary::count;

/// The record of a level, counted in conditions.
#[derive(Debug, Default)]
struct Tally {
    /// For each win, the ratio to the runner-up.
    wins: Vec<Option<f64>>,
    ties: usize,
    losses: usize,
    inconclusive: usize,
    without_data: usize,
}

/// A line per level: wins, ties, losses, inconclusive conditions, and conditions without data.
pub(crate) fn tallies(field: &Field) -> Vec<String> {
    let mut tallies: Vec<Tally> = field.layout.series.iter().map(|_| Tally::default()).collect();
    for contest in &field.contests {
        let undecided = contest.outcome == ContestOutcome::Undecided;
        if let Some(tally) = contest.leader.and_then(|leader| field.series(leader)).map(|series| &mut tallies[series]) {
            match contest.outcome {
                ContestOutcome::Best => tally.wins.push(contest.rivals.first().and_then(|next| next.ratio)),
                ContestOutcome::Tied => tally.ties += 1,
                ContestOutcome::Undecided | ContestOutcome::NoContest => tally.inconclusive += 1,
            }
        }
        for rival in &contest.rivals {
            let Some(tally) = field.series(rival.cell).map(|series| &mut tallies[series]) else { continue };
            match rival.standing {
                Standing::Beaten => tally.losses += 1,
                Standing::Tied if !undecided => tally.ties += 1,
                Standing::Tied | Standing::Open => tally.inconclusive += 1,
                Standing::Absent => tally.without_data += 1,
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
    let ratios: Vec<f64> = tally.wins.iter().copied().flatten().collect();
    let (low, high) =
        ratios.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    let size = match ratios.len() {
        0 => String::new(),
        1 => format!(" ({} against the runner-up)", change(low)),
        _ => format!(" ({} to {} against the runner-up)", change(low), change(high)),
    };
    let of = |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let mut words = vec![format!("{}{size}", of(tally.wins.len(), "win", "wins"))];
    let others = [
        (tally.ties, "tie", "ties"),
        (tally.losses, "loss", "losses"),
        (tally.inconclusive, "inconclusive", "inconclusive"),
        (tally.without_data, "without data", "without data"),
    ];
    let others = others.into_iter().filter(|(number, ..)| *number > 0);
    words.extend(others.map(|(number, one, many)| of(number, one, many)));
    format!("{} in {}", words.join(", "), count(all, "condition"))
}
