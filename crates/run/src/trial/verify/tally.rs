//! Counters of a measured window.

use indexmap::IndexMap;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::plan::Cell;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::Resumption;
use wirelab_model::warning::Warning;

/// Counters of the measured window, after validation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Successful requests.
    pub ok: u64,
    /// Failed requests by kind.
    pub errors: IndexMap<ErrorKind, u64>,
    /// Payload bytes of successful requests, both directions.
    pub bytes: u64,
    /// Handshakes in the window by type.
    pub handshakes: IndexMap<Handshake, u64>,
}

impl Tally {
    pub(crate) fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Warnings for the report about the trial.
    pub(crate) fn warnings(&self, cell: &Cell) -> Vec<Warning> {
        let mut warnings = Vec::new();
        // The first of equally frequent kinds wins, so that the warning is deterministic.
        let mut most: Option<(ErrorKind, u64)> = None;
        for (kind, count) in &self.errors {
            if most.is_none_or(|(_, before)| *count > before) {
                most = Some((*kind, *count));
            }
        }
        if let Some((kind, _)) = most.filter(|(_, count)| *count > 0) {
            let share = self.failed() as f64 / (self.ok + self.failed()) as f64;
            warnings.push(Warning::RequestsFailed { cell: cell.label(), share, kind: kind.to_string() });
        }
        let wanted = match cell.job.load.resumption {
            Resumption::None => None,
            Resumption::Resume => Some((Handshake::Resumed, "resumed")),
            Resumption::ZeroRtt => Some((Handshake::EarlyAccepted, "early_accepted")),
        };
        let all: u64 = self.handshakes.values().sum();
        if let Some((wanted, word)) = wanted {
            let hit = self.handshakes.get(&wanted).copied().unwrap_or(0);
            if hit < all {
                let share = hit as f64 / all as f64;
                warnings.push(Warning::ResumptionMissed { cell: cell.label(), wanted: word.to_owned(), share });
            }
        }
        warnings
    }
}
