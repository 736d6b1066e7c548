//! The buckets of durations that the programs fill, and what follows from their counts.

/// Durations are counted in units of 2^6 = 64 ns.
pub(super) const UNIT_BITS: u32 = 6;

/// Each octave has 2^11 = 2048 buckets, so a duration is known to 0.05 %: 33 us of 100 ms.
pub(super) const FRACTION_BITS: u32 = 11;

/// Durations of 2^31 units, 137 seconds, and more are in the last bucket.
pub(super) const VALUE_BITS: u32 = 31;

/// Number of buckets: 2048 of the smallest durations, and 2048 for each octave.
pub(super) const BUCKETS: usize = ((VALUE_BITS - FRACTION_BITS + 1) as usize) << FRACTION_BITS;

/// Durations, counted by bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations(Vec<u64>);

impl Durations {
    pub(super) const fn new(counts: Vec<u64>) -> Self {
        Self(counts)
    }

    /// The counts of these durations, in nanoseconds.
    #[must_use]
    pub fn of(durations: impl IntoIterator<Item = u64>) -> Self {
        let mut counted = Self::new(vec![0; BUCKETS]);
        durations.into_iter().for_each(|ns| counted.add(ns));
        counted
    }

    pub(super) fn add(&mut self, ns: u64) {
        self.0[bucket(ns)] += 1;
    }

    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The lower bound of the bucket of each duration, longest first, with the number of durations at least as long.
    pub fn at_least(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut count = 0;
        self.0.iter().enumerate().rev().filter(|(_, counted)| **counted > 0).map(move |(number, counted)| {
            count += counted;
            (bounds(number).0, count)
        })
    }

    /// The duration that this share of all does not exceed (nearest rank), as the middle of its bucket; `None` without
    /// durations.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let found = self.0.iter().position(|counted| {
            below += counted;
            below >= rank
        })?;
        let (low, high) = bounds(found);
        Some((low as f64 + high as f64) / 2.0)
    }
}

/// The number of the bucket of a duration.
fn bucket(ns: u64) -> usize {
    let value = (ns >> UNIT_BITS).min((1 << VALUE_BITS) - 1);
    if value < 2 << FRACTION_BITS {
        return value as usize;
    }
    let octave = value.ilog2() - FRACTION_BITS;
    ((value >> octave) + (u64::from(octave) << FRACTION_BITS)) as usize
}

/// The durations of a bucket: from the first value up to below the second.
fn bounds(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    let octave = (bucket >> FRACTION_BITS).saturating_sub(1);
    let value = bucket - (octave << FRACTION_BITS);
    ((value << octave) << UNIT_BITS, ((value + 1) << octave) << UNIT_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_in_the_bucket_of_its_bounds_and_known_to_a_2048th() {
        let mut ns = 0;
        while ns < 1 << 37 {
            let (low, high) = bounds(bucket(ns));
            assert!((low..high).contains(&ns), "{ns}: {low} to {high}");
            assert!(high - low <= 64 || (high - low) as f64 <= low as f64 / 2048.0, "{ns}: {low} to {high}");
            ns += 1 + ns / 57;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!((bucket(0), bounds(0)), (0, (0, 64)));
    }

    #[test]
    fn quantiles_and_counts_from_above_are_those_of_the_durations() {
        assert_eq!(Durations::of([]).quantile(0.5), None);
        let durations = Durations::of((1..=1000).map(|us| us * 1000));
        assert_eq!(durations.count(), 1000);
        for (share, expected) in [(0.5, 500e3), (0.99, 990e3), (0.001, 1e3)] {
            let quantile = durations.quantile(share).unwrap();
            // Half a bucket: of 64 ns, or of a 2048th.
            assert!((quantile - expected).abs() <= 32.0 + expected / 2048.0, "{share}: {quantile}");
        }
        let all: Vec<_> = durations.at_least().collect();
        assert!(all.windows(2).all(|pair| pair[0].0 > pair[1].0 && pair[0].1 < pair[1].1));
        assert_eq!(all.last().unwrap().1, 1000);
    }
}
