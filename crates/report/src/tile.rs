//! A contest in a few words: what a tile of the heat map says.

use wirelab_stats::analysis::{CannotTell, Contest, ContestOutcome, Rival, Standing, Verdict};

use crate::contests::Field;
use crate::grid::Axis;
use crate::numbers::change;

/// What the marks of a table say.
pub(crate) const NOTE: &str = "✓ beats every other beyond chance (every pair tested, Holm's correction over all of them), with the \
     change of its value against the next; ! the same, but no more than the noise floor; = no difference that matters; ? cannot tell, \
     names are those that may be the best; – no values, or one level alone has any; * trials failed or were refused.";

/// What a tile says, without its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// One level is the best.
    Sure,
    /// The same, but its lead is no more than the same cell differs from itself.
    Noise,
    /// Several are the best without a difference that matters.
    Tied,
    /// Unknown.
    Unknown,
    /// There was nothing to decide between.
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

/// A contest as a tile shows it.
pub(crate) struct Tile {
    pub mark: Mark,
    /// The series of the winner, where there is one.
    pub series: Option<usize>,
    /// How large the winner's lead is, from 1 to 4: see [`STEPS`].
    pub step: usize,
    /// Who wins, or that nobody does.
    pub name: String,
    /// By how much the winner's value differs from that of the next; empty without a winner.
    pub size: String,
    /// What else has to be known: failures.
    pub note: String,
}

impl Tile {
    /// Its words in one line: `✓ HTTP/3 −23 %`; a star where there is a note.
    pub(crate) fn line(&self) -> String {
        let size = if self.size.is_empty() { String::new() } else { format!(" {}", self.size) };
        format!("{} {}{size}{}", self.mark.symbol(), self.name, if self.note.is_empty() { "" } else { " *" })
    }
}

/// Leads, as the larger of two medians divided by the smaller one, at which the steps of [`Tile::step`] end.
pub(crate) const STEPS: [f64; 3] = [1.1, 1.25, 2.0];

impl Field<'_> {
    /// A contest as a tile shows it.
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
                tile(Mark::Tied, "no difference".to_owned())
            }
            ContestOutcome::Tied => tile(Mark::Tied, self.first(contest, Standing::Tied).join(", ")),
            ContestOutcome::Undecided if contest.rivals.iter().any(few) => {
                tile(Mark::Unknown, format!("too few {}", self.input.design().counted()))
            }
            ContestOutcome::Undecided if self.with(contest, Standing::Beaten).is_empty() => {
                tile(Mark::Unknown, "cannot tell".to_owned())
            }
            ContestOutcome::Undecided => tile(Mark::Unknown, self.open(contest).join(" or ")),
            ContestOutcome::NoContest => {
                let alone = contest.leader.map(|leader| format!("only {}", self.name(leader)));
                tile(Mark::Nothing, alone.unwrap_or_else(|| "no values".to_owned()))
            }
        }
    }

    /// The grid as lines of a table, the first of them its heading.
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

fn few(rival: &Rival) -> bool {
    rival.verdict == Verdict::CannotTell { why: CannotTell::TooFewBlocks }
}
