//! The order in which numbered datagrams arrived.

/// Counts of arrivals of numbered datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Arrivals {
    /// Different datagrams.
    pub distinct: u32,
    /// Arrivals beyond the first of a datagram.
    pub duplicates: u32,
    /// The fewest datagrams without which the others are in order.
    pub reordered: u32,
    /// Runs of consecutive numbers that did not arrive, each below one that did.
    pub gaps: u32,
}

impl Arrivals {
    /// Counts the numbers of datagrams, in the order of their arrival.
    pub(super) fn of(numbers: &[u32]) -> Self {
        let mut seen = std::collections::HashSet::new();
        let firsts: Vec<u32> = numbers.iter().copied().filter(|number| seen.insert(*number)).collect();
        let distinct = firsts.len() as u32;
        Self {
            distinct,
            duplicates: numbers.len() as u32 - distinct,
            reordered: distinct - longest_rise(&firsts) as u32,
            gaps: gaps(firsts),
        }
    }
}

/// The number of gaps below different numbers, which begin at 0 if there is none.
fn gaps(mut numbers: Vec<u32>) -> u32 {
    numbers.sort_unstable();
    let leading = numbers.first().is_some_and(|first| *first > 0);
    u32::from(leading) + numbers.windows(2).filter(|pair| pair[1] - pair[0] > 1).count() as u32
}

/// Length of the longest increasing subsequence of different numbers.
fn longest_rise(numbers: &[u32]) -> usize {
    // The least last number of a rise, for each length.
    let mut ends: Vec<u32> = Vec::new();
    for number in numbers {
        let place = ends.partition_point(|end| end < number);
        match ends.get_mut(place) {
            Some(end) => *end = *number,
            None => ends.push(*number),
        }
    }
    ends.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_that_is_early_or_late_counts_once() {
        let of = |numbers: &[u32]| {
            let Arrivals { distinct, duplicates, reordered, gaps: _ } = Arrivals::of(numbers);
            [distinct, duplicates, reordered]
        };
        assert_eq!(of(&[]), [0, 0, 0]);
        assert_eq!(of(&[0, 1, 3, 4]), [4, 0, 0], "a loss is not out of order");
        assert_eq!(of(&[4, 0, 1, 2, 3]), [5, 0, 1], "one early");
        assert_eq!(of(&[1, 2, 3, 4, 0]), [5, 0, 1], "one late");
        assert_eq!(of(&[0, 1, 1, 2, 0]), [3, 2, 0]);
        assert_eq!(of(&[1, 0, 3, 2]), [4, 0, 2]);
    }

    #[test]
    fn losses_one_after_the_other_are_one_run() {
        let of = |numbers: &[u32]| Arrivals::of(numbers).gaps;
        assert_eq!([of(&[]), of(&[0, 1, 2]), of(&[3])], [0, 0, 1]);
        assert_eq!(of(&[0, 1, 4, 5, 7, 7, 8]), 2, "two runs: 2 and 3, and 6");
        assert_eq!(of(&[4, 0, 1, 2, 3]), 0, "what overtakes is not lost");
    }
}
