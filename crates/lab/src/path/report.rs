//! What a reflector counted in a phase.

use crate::path::order::Arrivals;

/// The counts of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    /// The questions that arrived. Each was answered.
    pub arrivals: Arrivals,
    /// Rate at which load arrived, in bits per second; 0: none.
    pub arrived: u64,
    /// Rate at which the reflector sent load, in bits per second; 0: none.
    pub sent: u64,
}

impl Report {
    /// The counts as numbers of a packet.
    pub(super) fn to_numbers(self) -> [u64; 4] {
        let Arrivals { distinct, duplicates, reordered, gaps } = self.arrivals;
        let two = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        [two(distinct, duplicates), two(gaps, reordered), self.arrived, self.sent]
    }

    pub(super) const fn of([counts, order, arrived, sent]: [u64; 4]) -> Self {
        let (distinct, duplicates) = ((counts >> 32) as u32, counts as u32);
        let (gaps, reordered) = ((order >> 32) as u32, order as u32);
        Self { arrivals: Arrivals { distinct, duplicates, reordered, gaps }, arrived, sent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let arrivals = Arrivals { distinct: 240, duplicates: 3, reordered: 7, gaps: 5 };
        let report = Report { arrivals, arrived: 100_000_000, sent: 1 << 40 };
        assert_eq!(Report::of(report.to_numbers()), report);
    }
}
