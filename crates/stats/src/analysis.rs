//! What the statistics say of a run: plain data, computed by [`crate::analyse`] and shown by the report.

use serde::{Deserialize, Serialize};
use wirelab_model::claim::{Bound, Needs};
use wirelab_model::metric::Metric;
use wirelab_model::warning::Warning;

use crate::stationarity::Stationarity;

/// Everything that a report shows beside the raw values; a pure function of manifest and journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Blocks in which every cell has a trial, successful or not.
    pub complete_blocks: u32,
    /// By cell number.
    pub cells: Vec<CellAnalysis>,
    /// One per comparison of the plan and compared metric; comparisons of the first metric come first.
    pub comparisons: Vec<Compared>,
    /// Which level of the compared factor is the best: one per compared metric and combination of the other factors, metric by metric.
    #[serde(default)]
    pub contests: Vec<Contest>,
    /// Clients against servers, where the study varies both: one per compared metric and combination of the other factors, metric by metric.
    #[serde(default)]
    pub pairs: Vec<PairTable>,
    /// One per claim of the study.
    pub claims: Vec<ClaimResult>,
    /// Everything that the trials and the analysis have to warn of, without repetition.
    pub warnings: Vec<Warning>,
}

/// What is known of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellAnalysis {
    /// Trials that ended `ok`.
    pub ok: u32,
    /// Trials that failed.
    pub failed: u32,
    /// Trials that the endpoint refused as unsupported, and its words.
    pub unsupported: u32,
    /// Share of failed requests over the trials; a trial that failed through the cell counts as 1. Absent if no trial says.
    #[serde(default)]
    pub failure_share: Option<f64>,
    /// Whether response times stay the same over the measured window.
    #[serde(default)]
    pub stationarity: Stationarity,
    /// The most frequent reason of failure or refusal.
    pub reason: Option<String>,
    /// Estimates by metric name, for every metric with at least one measured value.
    pub estimates: indexmap::IndexMap<String, Estimate>,
    /// Metrics that no trial measured, with the reason.
    pub not_measured: indexmap::IndexMap<String, String>,
}

/// An estimate of a metric over the trials of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median over trials.
    pub median: f64,
    /// Bootstrap interval of the median; absent with fewer than three trials.
    pub interval: Option<Interval>,
    /// First and third quartile over trials.
    pub quartiles: (f64, f64),
    /// Smallest and largest value.
    pub range: (f64, f64),
    /// The value of each successful trial with its trial number, in the order of trials; never with outliers removed.
    pub values: Vec<(u32, f64)>,
    /// Trial numbers of values beyond 1.5 times the interquartile range (Tukey 1977). Shown, and kept in the estimates.
    pub outliers: Vec<u32>,
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Its nominal coverage, for example 0.95.
    pub confidence: f64,
}

/// A cell compared with its baseline in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The number of the cell.
    pub cell: usize,
    /// The number of the baseline's cell.
    pub baseline: usize,
    /// Whether they are an A/A pair.
    pub aa: bool,
    /// The metric's name.
    pub metric: String,
    /// Blocks in which both have a value.
    pub blocks: u32,
    /// Median of the cell divided by the median of the baseline; absent where one has no values or the baseline is 0.
    pub ratio: Option<f64>,
    /// Bootstrap interval of the ratio, resampling blocks.
    pub interval: Option<Interval>,
    /// P value of the rank test, two-sided, uncorrected.
    pub p: Option<f64>,
    /// P value after Holm's correction over the study's comparisons in this metric. A/A pairs are not in the family.
    pub p_holm: Option<f64>,
    /// The interval of the ratio of the A/A pair at the same levels: the noise floor.
    pub noise_floor: Option<Interval>,
    /// What follows.
    pub verdict: Verdict,
}

/// What the statistics say of two cells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The cell's value is smaller than the baseline's, beyond chance, and not equivalent within the margin.
    Less,
    /// The cell's value is larger, beyond chance, and not equivalent within the margin.
    More,
    /// The ratio's 90 % interval lies within the margin: if there is a difference, it does not matter.
    Equivalent,
    /// The data allow neither.
    CannotTell {
        /// Why.
        why: CannotTell,
    },
}

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CannotTell {
    /// Fewer blocks than a verdict needs.
    TooFewBlocks,
    /// The interval is too wide to call the difference real or irrelevant.
    TooNoisy,
    /// One of the two has no values.
    NoValues,
    /// The one that looks better, or no worse, fails more often than the other.
    UnequalFailures,
}

/// The levels of the compared factor against each other, in one metric and under one combination of the other factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// The metric's name.
    pub metric: String,
    /// The levels of the other factors.
    pub levels: indexmap::IndexMap<String, String>,
    /// The cell with the best median; absent where no cell has values.
    pub leader: Option<usize>,
    /// The other cells, the best median first, those without values last.
    pub rivals: Vec<Rival>,
    /// What follows.
    pub outcome: ContestOutcome,
    /// Blocks that a verdict needs here, where the family is all pairs of levels under all combinations.
    pub blocks_needed: u32,
}

/// A cell that competes with the leader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rival {
    /// The number of the cell.
    pub cell: usize,
    /// Blocks in which both have a value.
    pub blocks: u32,
    /// The leader's median divided by this cell's; absent where one has no values or this cell's is 0.
    pub ratio: Option<f64>,
    /// Bootstrap interval of the ratio, resampling blocks. Not simultaneous, and the leader was chosen by the data.
    pub interval: Option<Interval>,
    /// P value of the rank test, two-sided, uncorrected.
    pub p: Option<f64>,
    /// P value after Holm's correction over all pairs of levels under all combinations in this metric.
    pub p_holm: Option<f64>,
    /// What the statistics say of the leader's value against this cell's.
    pub verdict: Verdict,
    /// What that means for this cell.
    pub standing: Standing,
}

/// How a cell stands against the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The leader is better, beyond chance, and not equivalent within the margin.
    Beaten,
    /// Equivalent within the margin.
    Tied,
    /// The data do not tell them apart.
    Open,
    /// It has no values.
    Absent,
}

/// What a contest ends with. Cells without values are left out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContestOutcome {
    /// The leader beats every other cell.
    Best,
    /// Some are equivalent to the leader within the margin, and it beats the rest.
    Tied,
    /// At least one cell is not told apart from the leader.
    Undecided,
    /// Fewer than two cells have values.
    NoContest,
}

/// Every client with every server, in one metric and under one combination of the other factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairTable {
    /// The metric's name.
    pub metric: String,
    /// The levels of the other factors.
    pub levels: indexmap::IndexMap<String, String>,
    /// The clients, in the order of the study.
    pub clients: Vec<String>,
    /// The servers, in the order of the study.
    pub servers: Vec<String>,
    /// The pairs that the study has, in the order of the plan.
    pub pairs: Vec<Pair>,
    /// Blocks that a verdict on a pair's interaction needs, where the family is all pairs under all combinations.
    pub blocks_needed: u32,
}

/// A client with a server, and what they do beyond what the two predict in other company.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The number of the cell.
    pub cell: usize,
    /// The client.
    pub client: String,
    /// The server.
    pub server: String,
    /// The median that all other pairs predict, from an effect of the client and one of the server that multiply; absent where the pair
    /// has no value, or the others predict nothing.
    pub predicted: Option<f64>,
    /// The pair's median divided by the predicted one.
    pub interaction: Option<f64>,
    /// Bootstrap interval of the interaction, resampling blocks.
    pub interval: Option<Interval>,
    /// Blocks in which the interaction can be computed.
    pub blocks: u32,
    /// P value of the rank test over blocks, two-sided, uncorrected.
    pub p: Option<f64>,
    /// P value after Holm's correction over all pairs under all combinations in this metric.
    pub p_holm: Option<f64>,
    /// What the statistics say of the pair's value against the predicted one.
    pub verdict: Verdict,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim's identifier.
    pub id: String,
    /// The claim's words.
    pub text: String,
    /// What all tests together say.
    pub verdict: ClaimVerdict,
    /// The levels that the claim speaks of, where it speaks of some or most or all of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Cases>,
    /// Every effect that was looked at.
    pub effects: Vec<Effect>,
    /// Why the claim or a part of it is not tested.
    pub untested: Option<String>,
}

/// The levels that a claim speaks of, each judged by all tests of the claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cases {
    /// The factor.
    pub factor: String,
    /// For how many levels the tests have to hold.
    pub needs: Needs,
    /// That many of those that were tested.
    pub least: u32,
    /// What became of each that was tested, by the intervals below and not by those of the effects.
    pub tested: Vec<Case>,
    /// Levels that this plan does not have.
    pub absent: Vec<String>,
    /// The confidence of the intervals by which a case holds: 0.95, or more where one of several cases will do.
    pub confidence_to_hold: f64,
    /// The confidence of the intervals by which a case does not hold: 0.95, or more where one of several cases refutes the claim.
    pub confidence_to_fail: f64,
}

/// One level that a claim speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The level.
    pub level: String,
    /// Whether all tests hold for it.
    pub verdict: ClaimVerdict,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// Every effect keeps its bound, with its whole interval; of a claim with cases: in so many cases as it needs.
    Holds,
    /// At least one effect violates its bound with its whole interval; of a claim with cases: in so many that too few are left.
    DoesNotHold,
    /// Neither.
    CannotTell,
    /// It was not tested.
    NotTested,
}

/// One effect of a claim's test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The levels that this effect belongs to, for example `payload=32 KiB`; empty where there is only one.
    pub at: String,
    /// What was divided by what, for example `protocol=quic / protocol=tls`.
    pub of: String,
    /// The metric's name.
    pub metric: String,
    /// The second metric of a correlation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// Its size: a ratio, a plain value where the test names one cell, or a correlation.
    pub size: Option<f64>,
    /// Whether the size is a plain value in the metric's unit.
    pub plain: bool,
    /// Its bootstrap interval.
    pub interval: Option<Interval>,
    /// The bound that it was expected to keep.
    pub expect: Bound,
    /// Whether it does.
    pub verdict: ClaimVerdict,
}

/// A metric by its name, from the declarations of this crate and of the observers.
#[must_use]
pub fn find<'a>(metrics: &[&'a Metric], name: &str) -> Option<&'a Metric> {
    metrics.iter().copied().find(|metric| metric.name == name)
}
