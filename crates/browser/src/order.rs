//! The order of loads: randomised complete blocks, as in studies.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Each of the `cells` once, in an order that depends on seed and block number only.
#[must_use]
pub fn block(seed: u64, number: u32, cells: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(number));
    let mut order: Vec<usize> = (0..cells).collect();
    order.shuffle(&mut rng);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_every_cell_once_and_comes_from_the_seed() {
        let mut sorted = block(7, 3, 6);
        assert_eq!(sorted, block(7, 3, 6));
        let orders: std::collections::HashSet<_> = (0..20).map(|number| block(7, number, 6)).collect();
        assert!(orders.len() > 10, "the order changes from block to block");
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
    }
}
