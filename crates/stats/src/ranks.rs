//! Ranks of values with mid-ranks for ties.

/// Twice the rank of each value, in the order of the values. Doubled ranks start at 2 and make mid-ranks of ties whole
/// numbers.
#[must_use]
pub fn doubled(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; values.len()];
    let mut smaller = 0;
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        for &place in tied {
            ranks[place] = 2 * smaller + 1 + tied.len();
        }
        smaller += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_the_mean_of_their_ranks() {
        assert_eq!(doubled(&[3.0, 1.0, 2.0]), [6, 2, 4]);
        assert_eq!(doubled(&[5.0, 1.0, 5.0, 1.0, 1.0]), [9, 4, 9, 4, 4]);
        assert_eq!(doubled(&[-0.0, 0.0, 1.0]), [3, 3, 6]);
        assert_eq!(doubled(&[]), [0; 0]);
    }
}
