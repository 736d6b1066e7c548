//! The differences that a run will be able to find, from the noise of an earlier run.

use std::fmt;

use wirelab_model::plan::Plan;
use wirelab_model::study::Study;
use wirelab_model::units::Share;
use wirelab_run::Run;
use wirelab_stats::sensitivity::{POWER, blocks, noise, smallest};

/// Blocks that a study needs to find differences as large as its margin.
#[derive(Debug, Clone)]
pub struct Sensitivity {
    /// The noisiest primary metric.
    metric: String,
    margin: f64,
    /// Standard deviation of the logarithm of the ratio within a block.
    noise: f64,
    /// Name of the folder of the earlier run.
    run: String,
    needed: f64,
    most: u32,
    smallest: f64,
}

/// The sensitivity of a plan, by the newest of these runs with an A/A pair that has the same job. `None` without one.
pub fn sensitivity(study: &Study, plan: &Plan, earlier: &[Run]) -> Option<Sensitivity> {
    let primary: Vec<&String> =
        study.compare.metrics.iter().filter(|metric| study.compare.is_primary(metric)).collect();
    let compared = plan.comparisons.iter().filter(|comparison| !comparison.aa).count();
    let comparisons = (compared * primary.len()) as u32;
    let margin = study.compare.margin.0;
    let of_run = |run: &Run| {
        let theirs = &run.manifest().plan;
        let is_own = |cell: usize| {
            plan.comparisons.iter().any(|own| own.aa && plan.cells[own.cell].job == theirs.cells[cell].job)
        };
        let pairs = || theirs.comparisons.iter().filter(|pair| pair.aa && is_own(pair.cell));
        let noises = primary.iter().flat_map(|metric| {
            pairs().filter_map(|pair| Some((noise(theirs, run.trials(), [pair.cell, pair.baseline], metric)?, *metric)))
        });
        let (noise, metric) = noises.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
        Some(Sensitivity {
            metric: metric.clone(),
            margin,
            noise,
            run: run.folder().file_name().unwrap_or_default().to_string_lossy().into_owned(),
            needed: blocks(noise, margin, comparisons),
            most: plan.max_blocks,
            smallest: smallest(noise, plan.max_blocks, comparisons),
        })
    };
    earlier.iter().find_map(of_run)
}

impl fmt::Display for Sensitivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, run, needed, most, .. } = self;
        let percent = |share: f64| Share((share * 1e3).round() / 1e3);
        write!(
            f,
            "By the A/A pair of {run}, which varies by {} from block to block, {needed} blocks find a difference of {} in \
             {metric} with a probability of {}.",
            percent(self.noise),
            Share(self.margin),
            Share(POWER)
        )?;
        if *needed > f64::from(*most) {
            write!(
                f,
                " With the planned {most} blocks, differences below {} will probably be inconclusive; --set blocks.max={needed} \
                 allows for more.",
                percent(self.smallest)
            )?;
        }
        Ok(())
    }
}
