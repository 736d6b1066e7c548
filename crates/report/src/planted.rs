//! Planted effects: what the run found of differences of known size.

use wirelab_stats::planted::{Detection, Planted, PlantedEffect, PlantedEffects};

use crate::Input;
use crate::numbers::{NBSP, change, change_with, share};

pub(crate) const HEADING: &str = "Planted effects";

/// The columns of the rows.
pub(crate) const HEADER: [&str; 6] = ["metric", "planted", "true", "found, with interval", "blocks", "detected"];

/// The planted effects of a run.
pub(crate) struct Section {
    /// A sentence on the planted effects, or on the reason for none.
    pub lead: String,
    /// A row for each metric and size.
    pub rows: Vec<[String; 6]>,
    /// Bias, A/A pairs and limits; one sentence each.
    pub notes: Vec<String>,
}

/// `None` for a table, or a run of a version without planted effects.
pub(crate) fn section(input: &Input) -> Option<Section> {
    match input.analysis.planted.as_ref()? {
        Planted::Nothing(why) => {
            Some(Section { lead: format!("Not planted: {why}."), rows: Vec::new(), notes: Vec::new() })
        }
        Planted::Effects(effects) => Some(of(input, effects)),
    }
}

fn of(input: &Input, effects: &PlantedEffects) -> Section {
    let label = input.manifest.plan.cells.get(effects.cell).map_or_else(String::new, wirelab_model::plan::Cell::label);
    let lead = format!(
        "In {} more trials of `{label}` the server worked for a known time before each response ({} of the time). They \
         are in none of the other results.",
        effects.trials,
        share(effects.time)
    );
    let rows = effects.effects.iter().map(|effect| {
        [
            effect.metric.clone(),
            share(effect.size),
            change(effect.truth),
            found(effect),
            effect.blocks.to_string(),
            detected(effect.detection, effects.blocks_needed),
        ]
    });
    let rows = rows.collect();
    let mut notes: Vec<_> = effects
        .biases
        .iter()
        .map(|bias| {
            let size = change_with(bias.ratio, bias.interval.as_ref());
            let blocks = if bias.blocks == 1 { "block" } else { "blocks" };
            format!("Bias of `{}`, all sizes together: {size} in {} {blocks}.", bias.metric, bias.blocks)
        })
        .collect();
    notes.push(match effects.aa.pairs {
        0 => "A/A pairs: none is judged yet, which takes enough blocks and the end of the run.".to_owned(),
        pairs => format!("A/A pairs called different, which is false: {} of {pairs}.", effects.aa.differ),
    });
    if effects.failed > 0 {
        notes.push(format!("{} of {} planted trials did not succeed.", effects.failed, effects.trials));
    }
    notes.push("Three sizes in one run are a spot check, not a rate.".to_owned());
    Section { lead, rows, notes }
}

fn found(effect: &PlantedEffect) -> String {
    effect.ratio.map_or_else(|| "no values".to_owned(), |ratio| change_with(ratio, effect.interval.as_ref()))
}

fn detected(detection: Detection, needed: u32) -> String {
    match detection {
        Detection::Found => "yes".to_owned(),
        Detection::Missed => "no".to_owned(),
        Detection::Reversed => "reversed".to_owned(),
        Detection::TooFewBlocks => format!("too few blocks ({needed}{NBSP}needed)"),
        Detection::NotEnded => "not judged before the end".to_owned(),
    }
}
