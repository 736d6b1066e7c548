//! Winners by condition, in sentences.

use wirelab_model::metric::{Better, Metric};
use wirelab_stats::analysis::{CannotTell, Contest, ContestOutcome, Interval, Rival, Standing, Verdict};
use wirelab_stats::compare::ALPHA;

use crate::Input;
use crate::grid::Grid;
use crate::layout::Layout;
use crate::numbers::{NBSP, change_with, p_value, percent, plain_interval, significant};
use crate::summary::count;
use crate::tile::has_few_blocks;
use crate::words::{NOT_ENDED, margin, noise_floor};

/// The contests of one metric, laid out as a grid.
pub(crate) struct Field<'a> {
    pub input: &'a Input<'a>,
    pub layout: &'a Layout,
    pub grid: Grid,
    pub contests: Vec<&'a Contest>,
    pub metric: Option<&'a Metric>,
}

impl<'a> Field<'a> {
    /// `None` if the study varies fewer than two other factors, or compares nothing in the metric.
    pub(crate) fn of(input: &'a Input<'a>, layout: &'a Layout, metric: &str) -> Option<Self> {
        let contests: Vec<_> = input.analysis.contests.iter().filter(|contest| contest.metric == metric).collect();
        let grid = Grid::of(&contests.iter().map(|contest| &contest.levels).collect::<Vec<_>>())?;
        Some(Self { input, layout, grid, contests, metric: input.metric(metric) })
    }

    /// A contest in a sentence: `25 ms, 1 %: HTTP/3 beats HTTP/1.1 by 23 % [18 %, 29 %].`
    pub(crate) fn sentence(&self, contest: &Contest) -> String {
        let place = self.grid.title(&contest.levels);
        let Some(leader) = contest.leader else {
            return format!("{place}: no level has data{}.", self.absent(contest));
        };
        let name = self.name(leader);
        let better = self.metric.map_or(Better::Lower, |metric| metric.better);
        let with_lead = |rival: &Rival| format!("{}{}", self.name(rival.cell), lead(rival, better));
        let beaten: Vec<_> = self.with(contest, Standing::Beaten).into_iter().map(with_lead).collect();
        let beaten = beaten.join(" and ");
        let then = if beaten.is_empty() { String::new() } else { format!("; {name} beats {beaten}") };
        let equivalent = || {
            let tied = self.with(contest, Standing::Tied).into_iter();
            tied.map(|rival| format!("{name} and {}", self.name(rival.cell))).collect::<Vec<_>>().join(", ")
        };
        let text = match contest.outcome {
            ContestOutcome::Best if self.within_noise(contest) => {
                format!("{name} beats {beaten}; the lead is within the A/A noise floor, treat it with caution")
            }
            ContestOutcome::Best => format!("{name} beats {beaten}"),
            ContestOutcome::Tied => format!("equivalent within ±{}: {}{then}", margin(self.input), equivalent()),
            ContestOutcome::Undecided => {
                let open = self.with(contest, Standing::Open);
                let pairs: Vec<_> =
                    open.iter().map(|rival| format!("{name} against {}", self.unknown(contest, rival))).collect();
                let tied = match equivalent() {
                    none if none.is_empty() => none,
                    pairs => format!("; equivalent within ±{}: {pairs}", margin(self.input)),
                };
                let word = if contest.rivals.iter().any(has_few_blocks) { "preliminary" } else { "inconclusive" };
                format!("{word}: {}{tied}{then}", pairs.join(", "))
            }
            ContestOutcome::NoContest => format!("only {name} has data"),
        };
        let failures = self.failures(contest);
        let failures = if failures.is_empty() { failures } else { format!("; {failures}") };
        format!("{place}: {text}{}{failures}.", self.absent(contest))
    }

    /// The title of a cell's level.
    pub(crate) fn name(&self, cell: usize) -> String {
        self.series(cell).map_or_else(|| format!("cell {cell}"), |series| self.layout.series[series].title.clone())
    }

    pub(crate) fn series(&self, cell: usize) -> Option<usize> {
        self.layout.groups.iter().flat_map(|group| &group.rows).find(|row| row.cell == cell).map(|row| row.series)
    }

    pub(crate) fn with<'c>(&self, contest: &'c Contest, standing: Standing) -> Vec<&'c Rival> {
        contest.rivals.iter().filter(|rival| rival.standing == standing).collect()
    }

    /// The leader and the rivals of a standing.
    pub(crate) fn first(&self, contest: &Contest, standing: Standing) -> Vec<String> {
        let rivals = self.with(contest, standing).into_iter().map(|rival| rival.cell);
        contest.leader.into_iter().chain(rivals).map(|cell| self.name(cell)).collect()
    }

    /// The candidates for the best level: the leader and every level that it does not beat.
    pub(crate) fn open(&self, contest: &Contest) -> Vec<String> {
        let may = |rival: &&Rival| matches!(rival.standing, Standing::Open | Standing::Tied);
        let rivals = contest.rivals.iter().filter(may).map(|rival| rival.cell);
        contest.leader.into_iter().chain(rivals).map(|cell| self.name(cell)).collect()
    }

    fn unknown(&self, contest: &Contest, rival: &Rival) -> String {
        let why = match rival.verdict {
            Verdict::CannotTell { why: CannotTell::TooFewBlocks } => {
                let counted = self.input.design().counted();
                format!("{} of {} {counted}", rival.blocks, contest.blocks_needed)
            }
            Verdict::CannotTell { why: CannotTell::TooNoisy | CannotTell::Correction } => {
                match rival.p_holm.filter(|p| *p > ALPHA) {
                    Some(p) => format!("P {} after correction", p_value(p)),
                    None => "the interval is too wide".to_owned(),
                }
            }
            Verdict::CannotTell { why: CannotTell::NotEnded } => NOT_ENDED.to_owned(),
            Verdict::CannotTell { why: CannotTell::UnequalFailures } => "failures differ".to_owned(),
            Verdict::CannotTell { why: CannotTell::ClientBound } => "the client's own time may explain it".to_owned(),
            _ => "the medians and the common blocks point in opposite directions".to_owned(),
        };
        let estimate =
            rival.ratio.map(|ratio| format!("; best estimate {}", change_with(ratio, rival.interval.as_ref())));
        format!("{} ({why}{})", self.name(rival.cell), estimate.unwrap_or_default())
    }

    fn absent(&self, contest: &Contest) -> String {
        let absent = self.with(contest, Standing::Absent).into_iter();
        let words = absent.map(|rival| {
            format!("; {} has no data: {}", self.name(rival.cell), self.input.why_missing(rival.cell, &contest.metric))
        });
        words.collect()
    }

    /// Failed and unsupported trials of all levels together.
    pub(crate) fn failures(&self, contest: &Contest) -> String {
        let cells = contest.leader.into_iter().chain(contest.rivals.iter().map(|rival| rival.cell));
        let known: Vec<_> = cells.filter_map(|cell| self.input.cell(cell)).collect();
        let failed: u32 = known.iter().map(|cell| cell.failed).sum();
        let refused: u32 = known.iter().map(|cell| cell.unsupported).sum();
        let words = [(failed, "failed"), (refused, "unsupported")].into_iter().filter(|(number, _)| *number > 0);
        words.map(|(number, what)| format!("{} {what}", count(number as usize, "trial"))).collect::<Vec<_>>().join(", ")
    }

    /// Whether the winner's lead over the runner-up lies within the A/A noise floor.
    pub(crate) fn within_noise(&self, contest: &Contest) -> bool {
        let (Some(leader), Some(ratio)) = (contest.leader, contest.rivals.first().and_then(|next| next.ratio)) else {
            return false;
        };
        let group = self.layout.groups.iter().position(|group| group.rows.iter().any(|row| row.cell == leader));
        let noise = group.and_then(|group| noise_floor(self.input, self.layout, group, &contest.metric));
        // Chance decides which half of an A/A pair is slower, so the interval counts in both directions.
        let inside = |noise: &Interval, ratio: f64| noise.low <= ratio && ratio <= noise.high;
        noise.is_some_and(|noise| inside(&noise, ratio) || inside(&noise, 1.0 / ratio))
    }
}

/// The leader's lead over a rival: ` by 23 % [18 %, 29 %]`.
fn lead(rival: &Rival, better: Better) -> String {
    let Some(ratio) = rival.ratio else { return " (no ratio: its median is 0)".to_owned() };
    if ratio >= 2.0 {
        let interval = rival.interval.map_or_else(String::new, |interval| format!(" {}", plain_interval(&interval)));
        return format!(" by a factor of {}{interval}", significant(ratio));
    }
    // If lower is better, a ratio of 0.77 is a lead of 23 %, and the ends of its interval swap.
    let gain = |ratio: f64| {
        format!("{}{NBSP}%", percent(if better == Better::Lower { 2.0 - ratio } else { ratio }).replace('+', ""))
    };
    let ends = |i: Interval| if better == Better::Lower { (i.high, i.low) } else { (i.low, i.high) };
    let interval = rival.interval.map(ends).map(|(low, high)| format!(" [{}, {}]", gain(low), gain(high)));
    format!(" by {}{}", gain(ratio), interval.unwrap_or_else(|| " (no interval)".to_owned()))
}
