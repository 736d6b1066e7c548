//! The results of the statistics: plain data, computed by [`crate::analyse`] and shown by the report.

use serde::{Deserialize, Serialize};
use wirelab_model::claim::{Bound, Needs};
use wirelab_model::metric::Metric;
use wirelab_model::requirement::{Inconclusive, Statement};
use wirelab_model::warning::Warning;

use crate::ages::Ages;
use crate::client_share::Shares;
use crate::planted::Planted;
use crate::stationarity::Stationarity;

/// The moment at which records are analysed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// The planned end of a run.
    #[default]
    Ended,
    /// Before the planned end, however often: the run goes on, or its user stopped it.
    Underway,
    /// Data that were complete before the first look.
    Complete,
}

impl Moment {
    /// The level of the comparisons with the baseline. The level of a run is [`ALPHA`](crate::compare::ALPHA), divided
    /// between all looks before the end and the end.
    #[must_use]
    pub const fn alpha(self) -> f64 {
        match self {
            Self::Ended => crate::compare::ALPHA - crate::anytime::BEFORE_END,
            Self::Underway => crate::anytime::BEFORE_END,
            Self::Complete => crate::compare::ALPHA,
        }
    }
}

/// The analysis of a run: a pure function of manifest and journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The moment of the run.
    #[serde(default)]
    pub moment: Moment,
    /// Blocks in which every cell has a trial, successful or not.
    pub complete_blocks: u32,
    /// One per requirement of the study.
    #[serde(default)]
    pub requirements: Vec<RequirementResult>,
    /// By cell number.
    pub cells: Vec<CellAnalysis>,
    /// One per comparison of the plan and compared metric; comparisons of the first metric come first.
    pub comparisons: Vec<Compared>,
    /// The best level of the compared factor: one contest per compared metric and combination of the other factors,
    /// metric by metric.
    #[serde(default)]
    pub contests: Vec<Contest>,
    /// Pairs of clients and servers, if the study varies both: one table per compared metric and combination of the
    /// other factors, metric by metric.
    #[serde(default)]
    pub pairs: Vec<PairTable>,
    /// One per claim of the study.
    pub claims: Vec<ClaimResult>,
    /// The planted effects and their estimates; absent for a table, and before they are analysed
    /// ([`planted`](crate::planted::planted())).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<Planted>,
    /// Whose limit each cell is, by cell number; empty for a table, for a run of a version without null references, and
    /// before it is known ([`attribute`](crate::client_share::attribute)).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Shares>,
    /// The warnings of the trials and of the analysis, without repetition.
    pub warnings: Vec<Warning>,
}

/// The results of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellAnalysis {
    /// Trials that ended `ok`.
    pub ok: u32,
    /// Trials that failed.
    pub failed: u32,
    /// Trials that an endpoint refused as unsupported.
    pub unsupported: u32,
    /// Mean share of failed requests over the trials; a trial that failed through the cell counts as 1. `None` if no
    /// trial reports it.
    #[serde(default)]
    pub failure_share: Option<f64>,
    /// Whether response times stay the same over the measured window.
    #[serde(default)]
    pub stationarity: Stationarity,
    /// Whether response times change with the age of connections and of the server's process; absent for a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ages: Option<Ages>,
    /// The most frequent reason of a failed or unsupported trial.
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
    /// Bootstrap interval of the median; `None` with fewer than five trials.
    pub interval: Option<Interval>,
    /// First and third quartile over trials.
    pub quartiles: (f64, f64),
    /// Smallest and largest value.
    pub range: (f64, f64),
    /// The value of each successful trial with its trial number, in the order of trials. Outliers are included.
    pub values: Vec<(u32, f64)>,
    /// Trial numbers of values beyond 1.5 times the interquartile range (Tukey 1977). They stay in the estimates.
    pub outliers: Vec<u32>,
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The nominal coverage, for example 0.95.
    pub confidence: f64,
}

/// A cell compared with its baseline in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The number of the cell.
    pub cell: usize,
    /// The number of the baseline's cell.
    pub baseline: usize,
    /// Whether cell and baseline are an A/A pair.
    pub aa: bool,
    /// The metric's name.
    pub metric: String,
    /// Whether the metric is not one of the study's primary ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exploratory: bool,
    /// Blocks in which both have a value.
    pub blocks: u32,
    /// Blocks that a verdict needs.
    #[serde(default)]
    pub blocks_needed: u32,
    /// Median of the cell divided by the median of the baseline; `None` if a cell has no values or the baseline is 0.
    pub ratio: Option<f64>,
    /// The interval of the ratio: at the end the bootstrap's, resampling blocks; before the end an anytime-valid one.
    pub interval: Option<Interval>,
    /// P value, two-sided, uncorrected: at the end that of the rank test, before the end an anytime-valid one.
    pub p: Option<f64>,
    /// P value after Holm's correction over the study's comparisons in all primary metrics, or in this exploratory one.
    /// A/A pairs are not in the family.
    pub p_holm: Option<f64>,
    /// The interval of the ratio of the A/A pair at the same levels: the noise floor.
    pub noise_floor: Option<Interval>,
    /// The verdict on the cell against the baseline.
    pub verdict: Verdict,
}

/// The result of a comparison of two cells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The cell's value is smaller than the baseline's, beyond chance, and not equivalent within the margin.
    Less,
    /// The cell's value is larger, beyond chance, and not equivalent within the margin.
    More,
    /// The ratio's 90 % interval lies within the margin: any difference is negligible.
    Equivalent,
    /// Inconclusive, or preliminary with too few blocks.
    CannotTell {
        /// The reason.
        why: CannotTell,
    },
}

/// The reason for an inconclusive or preliminary comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CannotTell {
    /// Fewer blocks than a verdict needs.
    TooFewBlocks,
    /// The data are too noisy for a significant difference or for equivalence.
    TooNoisy,
    /// Significant by itself, but not after the correction for the number of comparisons.
    Correction,
    /// Significant, but the A/A pair differs by as much.
    NoiseFloor,
    /// The run has not reached its planned end.
    NotEnded,
    /// At least one of the two cells has no values.
    NoValues,
    /// The cell that looks better or equivalent fails more often than the other.
    UnequalFailures,
    /// Without the client's own time, which null references show, the difference is not beyond chance.
    ClientBound,
}

/// The levels of the compared factor against each other in one metric, under one combination of the other factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// The metric's name.
    pub metric: String,
    /// The levels of the other factors.
    pub levels: indexmap::IndexMap<String, String>,
    /// The cell with the best median; `None` if no cell has values.
    pub leader: Option<usize>,
    /// The other cells, the best median first, cells without values last.
    pub rivals: Vec<Rival>,
    /// The result of the contest.
    pub outcome: ContestOutcome,
    /// Blocks that a verdict needs; the family is all pairs of levels under all combinations.
    pub blocks_needed: u32,
}

/// A cell that competes with the leader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rival {
    /// The number of the cell.
    pub cell: usize,
    /// Blocks in which both have a value.
    pub blocks: u32,
    /// The leader's median divided by this cell's; `None` if a cell has no values or this cell's median is 0.
    pub ratio: Option<f64>,
    /// Bootstrap interval of the ratio, resampling blocks. It is not simultaneous, and the data chose the leader.
    pub interval: Option<Interval>,
    /// P value of the rank test, two-sided, uncorrected.
    pub p: Option<f64>,
    /// P value after Holm's correction over all pairs of levels under all combinations in this metric.
    pub p_holm: Option<f64>,
    /// The verdict on the leader's value against this cell's.
    pub verdict: Verdict,
    /// The resulting standing of this cell.
    pub standing: Standing,
}

/// The standing of a cell against the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The leader is better, beyond chance, and not equivalent within the margin.
    Beaten,
    /// Equivalent within the margin.
    Tied,
    /// Inconclusive.
    Open,
    /// The cell has no values.
    Absent,
}

/// The result of a contest. Cells without values do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContestOutcome {
    /// The leader beats every other cell.
    Best,
    /// Some cells are equivalent to the leader within the margin, and the leader beats the rest.
    Tied,
    /// At least one comparison with the leader is inconclusive.
    Undecided,
    /// Fewer than two cells have values.
    NoContest,
}

/// Every client with every server in one metric, under one combination of the other factors.
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
    /// The pairs of the study, in the order of the plan.
    pub pairs: Vec<Pair>,
    /// Blocks that a verdict on a pair's interaction needs; the family is all pairs under all combinations.
    pub blocks_needed: u32,
}

/// A client with a server, and their interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The number of the cell.
    pub cell: usize,
    pub client: String,
    pub server: String,
    /// The median that all other pairs predict: an effect of the client times an effect of the server. `None` if the
    /// pair has no value, or the others do not determine a prediction.
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
    /// The verdict on the pair's value against the predicted one.
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequirementResult {
    /// The requirement.
    pub that: Statement,
    /// The verdict of all tests together.
    #[serde(flatten)]
    pub verdict: RequirementVerdict,
    /// Consequence of an inconclusive result.
    pub inconclusive: Inconclusive,
    /// The test of each cell; empty if the plan has no cell for the requirement.
    pub tests: Vec<Requiring>,
}

impl RequirementResult {
    /// Whether the result is a failure of the run.
    #[must_use]
    pub fn fails(&self) -> bool {
        match self.verdict {
            RequirementVerdict::Met => false,
            RequirementVerdict::NotMet => true,
            RequirementVerdict::CannotTell { .. } => self.inconclusive == Inconclusive::Fail,
        }
    }
}

/// Whether a requirement is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum RequirementVerdict {
    /// Every test shows it.
    Met,
    /// At least one test shows the opposite.
    NotMet,
    /// Inconclusive.
    CannotTell {
        /// The reason of the first inconclusive test; `no_values` without a test.
        why: CannotTell,
    },
}

/// The test of a requirement in one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Requiring {
    /// The number of the cell.
    pub cell: usize,
    /// The number of the cell with which it is compared; `None` for an absolute bound.
    pub baseline: Option<usize>,
    /// Trials with a value or a failure; of a comparison, the common blocks.
    pub blocks: u32,
    /// The tested size: the median over trials, the mean for the share of failed requests, or the ratio of two medians.
    /// `None` without values, or if failures make it infinite.
    pub size: Option<f64>,
    /// The interval of the size with 5 % on each side.
    pub interval: Option<Interval>,
    /// The number of blocks that would probably decide a test that is too noisy, if the size stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_to_decide: Option<u32>,
    /// P value of the hypothesis that the requirement is violated.
    pub p_met: f64,
    /// P value of the hypothesis that the requirement is kept, after Holm's correction over all tests of the study.
    pub p_not_met: f64,
    /// The verdict for this cell.
    #[serde(flatten)]
    pub verdict: RequirementVerdict,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim's identifier.
    pub id: String,
    /// The claim's words.
    pub text: String,
    /// The verdict of all tests together.
    pub verdict: ClaimVerdict,
    /// The levels of a claim about some, most or all of several levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Cases>,
    /// Every tested effect.
    pub effects: Vec<Effect>,
    /// The reason why the claim or a part of it is not tested.
    pub untested: Option<String>,
}

/// The levels of a claim, each judged by all tests of the claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cases {
    pub factor: String,
    /// The number of levels for which the tests must hold, as a quantifier.
    pub needs: Needs,
    /// The same as a number of tested levels.
    pub least: u32,
    /// The tested levels, judged by the confidence levels below and not by the intervals of the effects.
    pub tested: Vec<Case>,
    /// Levels that the plan lacks.
    pub absent: Vec<String>,
    /// The confidence of the intervals by which a case holds: 0.95, or more if fewer than all cases must hold.
    pub confidence_to_hold: f64,
    /// The confidence of the intervals by which a case does not hold: 0.95, or more if more than one case must hold.
    pub confidence_to_fail: f64,
}

/// One level of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub level: String,
    /// Whether all tests hold for it.
    pub verdict: ClaimVerdict,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// The plan has every level that the tests name, and the whole interval of each effect keeps its bound; with cases,
    /// this holds for as many cases as the claim needs.
    Holds,
    /// The whole interval of at least one effect violates its bound; with cases, in so many that too few can hold.
    DoesNotHold,
    /// Inconclusive: an interval contains its bound, or the plan lacks a part of what the claim is about.
    CannotTell,
    NotTested,
}

/// One effect of a claim's test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The levels of this effect, for example `payload=32 KiB`; empty for a single effect.
    pub at: String,
    /// The quotient, for example `protocol=quic / protocol=tls`.
    pub of: String,
    /// The metric's name.
    pub metric: String,
    /// The second metric of a correlation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// The size: a ratio, a correlation, or a plain value if the test names one cell.
    pub size: Option<f64>,
    /// Whether the size is a plain value in the metric's unit.
    pub plain: bool,
    /// The bootstrap interval of the size.
    pub interval: Option<Interval>,
    /// The expected bound.
    pub expect: Bound,
    /// Whether the interval keeps the bound.
    pub verdict: ClaimVerdict,
}

/// The declaration of a metric by its name.
#[must_use]
pub fn find<'a>(metrics: &[&'a Metric], name: &str) -> Option<&'a Metric> {
    metrics.iter().copied().find(|metric| metric.name == name)
}

impl Contest {
    /// Withholds the results, which hold at the end of a run only.
    pub(crate) fn withhold(&mut self) {
        for rival in self.rivals.iter_mut().filter(|rival| rival.standing != Standing::Absent) {
            rival.verdict = Verdict::CannotTell { why: CannotTell::NotEnded };
            rival.standing = Standing::Open;
        }
        if self.outcome != ContestOutcome::NoContest {
            self.outcome = ContestOutcome::Undecided;
        }
    }
}

impl PairTable {
    /// Withholds the results, which hold at the end of a run only.
    pub(crate) fn withhold(&mut self) {
        for pair in self.pairs.iter_mut().filter(|pair| pair.interaction.is_some()) {
            pair.verdict = Verdict::CannotTell { why: CannotTell::NotEnded };
        }
    }
}

impl RequirementResult {
    /// Withholds the results, which hold at the end of a run only.
    pub(crate) fn withhold(&mut self) {
        let verdicts = self.tests.iter_mut().map(|test| &mut test.verdict).chain([&mut self.verdict]);
        verdicts.for_each(|verdict| *verdict = RequirementVerdict::CannotTell { why: CannotTell::NotEnded });
    }
}

impl ClaimResult {
    /// Withholds the results, which hold at the end of a run only.
    pub(crate) fn withhold(&mut self) {
        let cases = self.cases.iter_mut().flat_map(|cases| &mut cases.tested).map(|case| &mut case.verdict);
        let effects = self.effects.iter_mut().map(|effect| &mut effect.verdict);
        let verdicts = cases.chain(effects).chain([&mut self.verdict]);
        verdicts.filter(|verdict| **verdict != ClaimVerdict::NotTested).for_each(|v| *v = ClaimVerdict::CannotTell);
    }
}
