//! Simulated comparisons with a known truth, to check verdicts, intervals and the stopping rule.
//!
//! `cargo run --release -p wirelab-stats --example power` prints the tables of `docs/statistics.md`; the bounds are
//! asserted in `tests/simulation.rs`.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::analysis::Verdict;
use crate::bootstrap::Bootstrap;
use crate::compare::{ALPHA, PairedEffect, Rule, blocks_needed};
use crate::is_precise;

/// The variation between trials of one cell. All parts multiply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation of the logarithm of a trial's value; each study draws one from this range.
    pub sigma: (f64, f64),
    /// Correlation of this part between consecutive trials of any cells.
    pub correlation: f64,
    /// Standard deviation of the logarithm of the common factor of a block's trials.
    pub block: f64,
    /// Change of the logarithm from the first block to the last.
    pub drift: f64,
    /// Share of disturbed trials.
    pub spikes: f64,
    /// The slow-down of a disturbed trial, as a range of shares.
    pub spike: (f64, f64),
}

impl Noise {
    /// A busy virtual machine: medians that scatter by 5 to 8 %, with memory; blocks that differ by 4 %; 5 % of drift;
    /// three trials in a hundred slower by 20 to 50 %.
    pub const REALISTIC: Self =
        Self { sigma: (0.05, 0.08), correlation: 0.3, block: 0.04, drift: 0.05, spikes: 0.03, spike: (0.2, 0.5) };
}

/// The trials of a cell and of its baseline, by block.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// One value per block.
    pub cell: Vec<f64>,
    /// One value per block.
    pub baseline: Vec<f64>,
}

impl Pair {
    /// Trials of two cells in random order within each block, where the cell's values are those of the baseline times
    /// `ratio`.
    #[must_use]
    pub fn simulate(seed: u64, blocks: u32, ratio: f64, noise: &Noise) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let normal = Normal::standard();
        let gauss = |random: &mut ChaCha8Rng| normal.inverse_cdf(random.random_range(1e-12..1.0));
        let sigma = random.random_range(noise.sigma.0..=noise.sigma.1);
        let mut memory = gauss(&mut random);
        let mut pair = Self { cell: Vec::new(), baseline: Vec::new() };
        for block in 0..blocks {
            let shared = noise.block * gauss(&mut random) + noise.drift * f64::from(block) / f64::from(blocks);
            let mut trial = |random: &mut ChaCha8Rng| {
                let fresh = (1.0 - noise.correlation * noise.correlation).sqrt() * gauss(random);
                memory = noise.correlation * memory + fresh;
                let spike = if random.random_bool(noise.spikes) {
                    1.0 + random.random_range(noise.spike.0..=noise.spike.1)
                } else {
                    1.0
                };
                1e6 * (shared + sigma * memory).exp() * spike
            };
            let (first, second) = (trial(&mut random), trial(&mut random));
            let (cell, baseline) = if random.random_bool(0.5) { (first, second) } else { (second, first) };
            pair.cell.push(cell * ratio);
            pair.baseline.push(baseline);
        }
        pair
    }
}

/// The length of a simulated study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// A fixed number of blocks.
    Blocks(u32),
    /// At least `min` blocks, then until the interval is precise, at most `max` blocks.
    UntilPrecise {
        /// Blocks before the stopping rule applies.
        min: u32,
        /// The largest number of blocks.
        max: u32,
        /// The precision, a share.
        precision: f64,
    },
}

/// The results of many simulated comparisons.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Comparisons.
    pub studies: u32,
    /// Verdict "less".
    pub less: u32,
    /// Verdict "more".
    pub more: u32,
    /// Verdict "equivalent".
    pub equivalent: u32,
    /// Intervals that contain the true ratio.
    pub covered: u32,
    /// Blocks of all comparisons together.
    pub blocks: u32,
}

impl Tally {
    /// A count as a share of the comparisons.
    #[must_use]
    pub fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.studies)
    }
}

/// Verdicts with a margin of 5 % on `studies` comparisons whose true ratio is `ratio`, each the first step of Holm's
/// correction over `family` comparisons, which is its strictest.
pub fn tally(studies: u32, ratio: f64, length: Length, family: usize, bootstrap: &mut Bootstrap) -> Tally {
    const MARGIN: f64 = 0.05;
    let mut tally = Tally { studies, ..Tally::default() };
    for study in 0..studies {
        let (effect, blocks) = run(u64::from(study) + 1, ratio, length, bootstrap);
        let p = effect.p.map(|p| (p * family as f64).min(1.0));
        match effect.verdict(p, &Rule::plain(blocks_needed(family, ALPHA), MARGIN)) {
            Verdict::Less => tally.less += 1,
            Verdict::More => tally.more += 1,
            Verdict::Equivalent => tally.equivalent += 1,
            Verdict::CannotTell { .. } => {}
        }
        tally.covered += u32::from(effect.interval_95.is_some_and(|i| i.low <= ratio && ratio <= i.high));
        tally.blocks += blocks;
    }
    tally
}

/// One comparison, and the blocks that it took.
fn run(seed: u64, ratio: f64, length: Length, bootstrap: &mut Bootstrap) -> (PairedEffect, u32) {
    let (min, max, precision) = match length {
        Length::Blocks(blocks) => (blocks, blocks, 0.0),
        Length::UntilPrecise { min, max, precision } => (min, max, precision),
    };
    let pair = Pair::simulate(seed, max, ratio, &Noise::REALISTIC);
    let mut blocks = min;
    loop {
        let seen = blocks as usize;
        let effect = PairedEffect::of(&pair.cell[..seen], &pair.baseline[..seen], bootstrap);
        let precise = effect.ratio.zip(effect.interval_95).is_some_and(|(r, i)| is_precise(r, i, precision));
        if blocks >= max || precise {
            return (effect, blocks);
        }
        blocks += 1;
    }
}

/// The number of 95 % intervals of a single cell's median, among `studies`, that contain the truth. Trials are
/// log-normal with a standard deviation of 6.5 % and no other noise.
pub fn median_covered(studies: u32, trials: u32, bootstrap: &mut Bootstrap) -> u32 {
    let noise =
        Noise { sigma: (0.065, 0.065), correlation: 0.0, block: 0.0, drift: 0.0, spikes: 0.0, ..Noise::REALISTIC };
    let covers = |seed: u64, bootstrap: &mut Bootstrap| {
        let values = Pair::simulate(seed, trials, 1.0, &noise).cell;
        let interval = bootstrap.distribution(&[&values], |m| m[0]).map(|d| d.interval(0.95));
        interval.is_some_and(|i| i.low <= 1e6 && 1e6 <= i.high)
    };
    (0..studies).map(|study| u32::from(covers(u64::from(study) + 1, bootstrap))).sum()
}
