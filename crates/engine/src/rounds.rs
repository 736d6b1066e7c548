//! Rounds of several requests with weights.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::schedule::{Phase, Share, random};

/// The user number of the random order, which no worker has.
const ROUNDS: u32 = u32::MAX;

/// The requests of a round, each as often as its weight says, in an order that the seed draws anew for every round.
#[derive(Debug)]
pub struct Rounds {
    order: Vec<u32>,
    position: usize,
    random: ChaCha8Rng,
}

impl Rounds {
    /// Creates the rounds of one thread; request number i has the weight i. At least one weight is above 0.
    pub fn new(weights: impl Iterator<Item = u32>, seed: u64, share: Share) -> Self {
        let each = (0..).zip(weights).flat_map(|(number, weight)| std::iter::repeat_n(number, weight as usize));
        let order: Vec<u32> = each.collect();
        Self { position: order.len(), order, random: random(seed, share, Phase::Measured, ROUNDS) }
    }

    /// The number of the next request.
    #[must_use]
    pub fn next_number(&mut self) -> u32 {
        if self.position == self.order.len() {
            self.order.shuffle(&mut self.random);
            self.position = 0;
        }
        self.position += 1;
        self.order[self.position - 1]
    }
}
