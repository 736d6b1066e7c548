//! The interactions of clients and servers in sentences.

use wirelab_model::metric::{Better, Unit};
use wirelab_stats::analysis::{CannotTell, Pair, Verdict};

use crate::numbers::{change_with, p_value, quantity};
use crate::pairs::View;
use crate::words::{NOT_ENDED, margin};

impl<'a> View<'a> {
    /// The interaction of a pair in a sentence; `None` without a prediction.
    pub(crate) fn interaction(&self, pair: &Pair) -> Option<String> {
        let (size, predicted) = pair.interaction.zip(pair.predicted)?;
        let estimate = self.input.estimate(pair.cell, &self.table.metric)?;
        let unit = self.metric.map_or(Unit::Count, |metric| metric.unit);
        let size = change_with(size, pair.interval.as_ref());
        let values = format!("{}, predicted {}", quantity(estimate.median, unit), quantity(predicted, unit));
        let text = match pair.verdict {
            Verdict::More => format!("▲ {size}, {}", self.judged(false)),
            Verdict::Less => format!("▼ {size}, {}", self.judged(true)),
            Verdict::Equivalent => format!("equivalent to the prediction within ±{} ({size})", margin(self.input)),
            Verdict::CannotTell { why: CannotTell::TooFewBlocks } => {
                format!("preliminary, {} of {} blocks ({size})", pair.blocks, self.table.blocks_needed)
            }
            Verdict::CannotTell { why: CannotTell::NotEnded } => format!("inconclusive, {NOT_ENDED} ({size})"),
            Verdict::CannotTell { .. } => match pair.p_holm.filter(|p| *p > wirelab_stats::compare::ALPHA) {
                Some(p) => format!("inconclusive, P {} after correction ({size})", p_value(p)),
                None => format!("inconclusive, the interval is too wide ({size})"),
            },
        };
        Some(format!("{}: {text}; {values}", self.name(pair)))
    }

    fn judged(&self, less: bool) -> &'static str {
        match self.metric.map_or(Better::Lower, |metric| metric.better) == Better::Lower {
            lower if lower == less => "better than predicted",
            _ => "worse than predicted",
        }
    }

    /// The pairs that are better or worse than predicted, the largest interaction first.
    pub(crate) fn odd(&self) -> Vec<&'a Pair> {
        let odd = |pair: &&Pair| matches!(pair.verdict, Verdict::Less | Verdict::More);
        let mut odd: Vec<_> = self.table.pairs.iter().filter(odd).collect();
        let size = |pair: &Pair| pair.interaction.map_or(0.0, |size| size.ln().abs());
        odd.sort_by(|a, b| size(b).total_cmp(&size(a)));
        odd
    }

    /// The number of pairs by verdict.
    pub(crate) fn rest(&self) -> String {
        let count_of = |is: fn(&Pair) -> bool| self.table.pairs.iter().filter(|pair| is(pair)).count();
        let parts = [
            (count_of(|pair| pair.verdict == Verdict::Equivalent), "equivalent within the margin"),
            (
                count_of(|pair| matches!(pair.verdict, Verdict::CannotTell { .. }) && pair.interaction.is_some()),
                "inconclusive",
            ),
            (count_of(|pair| pair.interaction.is_none()), "without a prediction"),
        ];
        let words: Vec<_> =
            parts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect();
        let found = self.odd().len();
        let differ = if found == 1 { "pair differs" } else { "pairs differ" };
        format!("{}: {found} {differ} from the prediction; {}.", self.subject(), words.join(", "))
    }

    /// Whether any pair has enough blocks for a verdict.
    pub(crate) fn judges(&self) -> bool {
        self.table.pairs.iter().any(|pair| pair.blocks >= self.table.blocks_needed)
    }

    /// The requirements of a verdict.
    pub(crate) fn needs(&self) -> String {
        format!(
            "A verdict on a pair needs {} blocks and at least two working clients and two working servers. With only two on one \
             side, the data do not show which of the two deviates; both are named.",
            self.table.blocks_needed
        )
    }
}
