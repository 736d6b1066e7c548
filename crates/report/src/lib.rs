//! Reports: pure functions from a run's manifest, journal, samples and analysis to text.
