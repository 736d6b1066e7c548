//! Trial order: randomised complete blocks (Fisher 1935). Slow changes of the machine affect all cells alike, and no
//! cell always follows the same other one.

use rand::seq::SliceRandom;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wirelab_model::plan::{Plan, Trial};

/// The trials of block `number`: every cell once, in random order.
///
/// The order depends only on the plan's seed and the block number (ChaCha8, keyed by the seed, with the block number
/// as stream). A resumed run thus continues in the original order, and any block can be repeated.
///
/// All trials of a block share one seed, so that compared cells get the same arrivals and pauses. Each block has a
/// different seed.
///
/// # Panics
/// If a trial number reaches 2^32, which cannot happen with plans made by [`plan`](crate::plan()).
#[must_use]
pub fn block(plan: &Plan, number: u32) -> Vec<Trial> {
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    rng.set_stream(u64::from(number));
    let seed = rng.next_u64();
    let mut order: Vec<usize> = (0..plan.cells.len()).collect();
    order.shuffle(&mut rng);
    let first = number.checked_mul(order.len() as u32).expect("a plan's trial numbers are below 2^32");
    let trial = |(position, cell): (usize, usize)| {
        let position = position as u32;
        Trial { number: first + position, block: number, position, cell, seed }
    };
    order.into_iter().enumerate().map(trial).collect()
}
