//! A contest in a few words, for a tile of the heat map.

use wirelab_stats::analysis::{CannotTell, Contest, ContestOutcome, Rival, Standing, Verdict};

use crate::contests::Field;
use crate::grid::Axis;
use crate::numbers::change;

/// The meaning of the marks in a table.
pub(crate) const NOTE: &str = "✓ beats every other level beyond chance (all pairs tested, Holm's correction), with its change \
     against the runner-up; ! the same, but within the A/A noise floor; = equivalent; ? inconclusive, candidates listed; \
     – no data to compare; * some trials failed or were unsupported.";

/// The verdict of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// One level is the best.
    Sure,
    /// One level is the best, but its lead is within the A/A noise floor.
    Noise,
    /// Several levels are the best and equivalent.
    Tied,
    /// Inconclusive or preliminary.
    Unknown,
    /// Fewer than two levels have data.
    Nothing,
}

impl Mark {
    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Self::Sure => "✓",
            Self::Noise => "!",
            Self::Tied => "=",
            Self::Unknown => "?",
            Self::Nothing => "–",
        }
    }
}

/// The content of a tile.
pub(crate) struct Tile {
    pub mark: Mark,
    /// The winner's series, if there is a winner.
    pub series: Option<usize>,
    /// The size of the winner's lead, from 1 to 4: see [`STEPS`].
    pub step: usize,
    /// The winner, the candidates, or a verdict without a winner.
    pub name: String,
    /// The change of the winner's value against the runner-up; empty without a winner.
    pub size: String,
    /// Failed and unsupported trials; empty without any.
    pub note: String,
}

impl Tile {
    /// The tile in one line: `✓ HTTP/3 −23 %`; a star stands for the note.
    pub(crate) fn line(&self) -> String {
        let size = if self.size.is_empty() { String::new() } else { format!(" {}", self.size) };
        format!("{} {}{size}{}", self.mark.symbol(), self.name, if self.note.is_empty() { "" } else { " *" })
    }
}

/// The limits between the steps of [`Tile::step`]: larger median divided by the smaller one.
pub(crate) const STEPS: [f64; 3] = [1.1, 1.25, 2.0];

impl Field<'_> {
    pub(crate) fn tile(&self, contest: &Contest) -> Tile {
        let tile = |mark, name: String| Tile {
            mark,
            series: None,
            step: 0,
            name,
            size: String::new(),
            note: self.failures(contest),
        };
        match contest.outcome {
            ContestOutcome::Best => {
                let leader = contest.leader.unwrap_or_default();
                let ratio = contest.rivals.first().and_then(|next| next.ratio);
                let lead = ratio.map_or(f64::INFINITY, |ratio| ratio.max(1.0 / ratio));
                Tile {
                    series: self.series(leader),
                    step: 1 + STEPS.iter().filter(|step| lead >= **step).count(),
                    size: ratio.map_or_else(String::new, change),
                    ..tile(if self.within_noise(contest) { Mark::Noise } else { Mark::Sure }, self.name(leader))
                }
            }
            ContestOutcome::Tied if self.with(contest, Standing::Beaten).is_empty() => {
                tile(Mark::Tied, "equivalent".to_owned())
            }
            ContestOutcome::Tied => tile(Mark::Tied, self.first(contest, Standing::Tied).join(", ")),
            ContestOutcome::Undecided if contest.rivals.iter().any(has_few_blocks) => {
                tile(Mark::Unknown, "preliminary".to_owned())
            }
            ContestOutcome::Undecided if self.with(contest, Standing::Beaten).is_empty() => {
                tile(Mark::Unknown, "inconclusive".to_owned())
            }
            ContestOutcome::Undecided => tile(Mark::Unknown, self.open(contest).join(" or ")),
            ContestOutcome::NoContest => {
                let alone = contest.leader.map(|leader| format!("only {}", self.name(leader)));
                tile(Mark::Nothing, alone.unwrap_or_else(|| "no data".to_owned()))
            }
        }
    }

    /// The grid as rows of a table; the first row is the heading.
    pub(crate) fn table(&self) -> Vec<Vec<String>> {
        let rows: Vec<_> = self.grid.rows.factors.iter().map(|(factor, _)| factor.as_str()).collect();
        let titles = |axis: &Axis| axis.titles().into_iter().map(|levels| levels.join(", "));
        let mut table = vec![[rows.join(", ")].into_iter().chain(titles(&self.grid.columns)).collect::<Vec<_>>()];
        for (title, tiles) in titles(&self.grid.rows).zip(&self.grid.tiles) {
            let line = |tile: &Option<usize>| match tile {
                Some(contest) => self.tile(self.contests[*contest]).line(),
                None => "not in the study".to_owned(),
            };
            table.push([title].into_iter().chain(tiles.iter().map(line)).collect());
        }
        table
    }
}

/// Whether a comparison with the leader lacks blocks.
pub(crate) fn has_few_blocks(rival: &Rival) -> bool {
    rival.verdict == Verdict::CannotTell { why: CannotTell::TooFewBlocks }
}
