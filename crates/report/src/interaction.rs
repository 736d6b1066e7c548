//! Whether pairs of a client and a server are what their two sides predict, in sentences.

use wirelab_model::metric::{Better, Unit};
use wirelab_stats::analysis::{CannotTell, Pair, Verdict};

use crate::numbers::{change_with, p_value, quantity};
use crate::pairs::View;
use crate::words::margin;

impl<'a> View<'a> {
    /// Whether the pair's value is what its two sides predict, in a sentence; absent where nothing is predicted.
    pub(crate) fn interaction(&self, pair: &Pair) -> Option<String> {
        let (size, predicted) = pair.interaction.zip(pair.predicted)?;
        let estimate = self.input.estimate(pair.cell, &self.table.metric)?;
        let unit = self.metric.map_or(Unit::Count, |metric| metric.unit);
        let size = change_with(size, pair.interval.as_ref());
        let values = format!("{}, predicted {}", quantity(estimate.median, unit), quantity(predicted, unit));
        let text = match pair.verdict {
            Verdict::More => format!("▲ {size}, {}", self.judged(false)),
            Verdict::Less => format!("▼ {size}, {}", self.judged(true)),
            Verdict::Equivalent => format!("as predicted within ±{} ({size})", margin(self.input)),
            Verdict::CannotTell { why: CannotTell::TooFewBlocks } => {
                format!("cannot tell, {} of {} blocks ({size})", pair.blocks, self.table.blocks_needed)
            }
            Verdict::CannotTell { .. } => match pair.p_holm.filter(|p| *p > wirelab_stats::compare::ALPHA) {
                Some(p) => format!("cannot tell, P {} after correction ({size})", p_value(p)),
                None => format!("cannot tell, the interval is too wide ({size})"),
            },
        };
        Some(format!("{}: {text}; {values}", self.name(pair)))
    }

    fn judged(&self, less: bool) -> &'static str {
        match self.metric.map_or(Better::Lower, |metric| metric.better) == Better::Lower {
            lower if lower == less => "better than its two sides predict",
            _ => "worse than its two sides predict",
        }
    }

    /// The pairs that are better or worse than predicted, the farthest first.
    pub(crate) fn odd(&self) -> Vec<&'a Pair> {
        let odd = |pair: &&Pair| matches!(pair.verdict, Verdict::Less | Verdict::More);
        let mut odd: Vec<_> = self.table.pairs.iter().filter(odd).collect();
        let size = |pair: &Pair| pair.interaction.map_or(0.0, |size| size.ln().abs());
        odd.sort_by(|a, b| size(b).total_cmp(&size(a)));
        odd
    }

    /// What is known of the pairs that are neither.
    pub(crate) fn rest(&self) -> String {
        let count_of = |is: fn(&Pair) -> bool| self.table.pairs.iter().filter(|pair| is(pair)).count();
        let parts = [
            (count_of(|pair| pair.verdict == Verdict::Equivalent), "as predicted within the margin"),
            (
                count_of(|pair| matches!(pair.verdict, Verdict::CannotTell { .. }) && pair.interaction.is_some()),
                "not told from their predictions",
            ),
            (count_of(|pair| pair.interaction.is_none()), "without a prediction"),
        ];
        let words: Vec<_> =
            parts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect();
        format!("{}: {} better or worse; {}.", self.subject(), self.odd().len(), words.join(", "))
    }

    /// Whether there is anything to judge: a pair with a prediction in enough blocks.
    pub(crate) fn judges(&self) -> bool {
        self.table.pairs.iter().any(|pair| pair.blocks >= self.table.blocks_needed)
    }

    /// What a verdict needs.
    pub(crate) fn needs(&self) -> String {
        format!(
            "A verdict on a pair needs {} blocks, and at least two clients and two servers that work; with two of a side nobody knows which of \
             the two is the odd one, and both are named.",
            self.table.blocks_needed
        )
    }
}
