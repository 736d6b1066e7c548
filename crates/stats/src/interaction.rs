//! The interaction of the pairs of one table, from the values of their trials.

use std::collections::BTreeSet;

use crate::additive::Additive;
use crate::bootstrap::{Bootstrap, Distribution};
use crate::compare::PairedEffect;
use crate::quantile;
use crate::wilcoxon::signed_rank;

/// Pairs with their values, and their part in the predictions.
pub struct Table {
    /// For every pair its number among the pairs with values, if it has values.
    numbers: Vec<Option<usize>>,
    /// Row and column of the pairs with values.
    places: Vec<(usize, usize)>,
    /// The values of these pairs, each with the number of its block.
    values: Vec<Vec<(usize, f64)>>,
    /// The medians of these pairs over blocks.
    medians: Vec<f64>,
    takes: Vec<bool>,
    blocks: usize,
    found: Found,
}

/// A pair's row and column, and its values with their blocks.
type Measured = ((usize, usize), Vec<(u32, f64)>);

/// The fitted model, with results by the number of the pair.
struct Found {
    model: Additive,
    /// The logarithm of the interaction of the medians; NaN without a prediction.
    sizes: Vec<f64>,
    /// The same for the trials of each block in which it is defined.
    by_block: Vec<Vec<f64>>,
}

impl Table {
    /// From pairs with row, column and values by block. A pair counts if it has values in at least half of the blocks
    /// in which any pair has one; fewer values would be missing in most resamples.
    pub fn of(mut pairs: Vec<Measured>) -> Self {
        // The logarithm of 0 is undefined.
        let not_positive = |values: &[(u32, f64)]| values.iter().any(|(_, value)| *value <= 0.0);
        pairs.iter_mut().filter(|(_, values)| not_positive(values)).for_each(|(_, values)| values.clear());
        let blocks: BTreeSet<u32> = pairs.iter().flat_map(|(_, values)| values).map(|(block, _)| *block).collect();
        let number = |block: u32| blocks.range(..block).count();
        let (mut numbers, mut places, mut numbered) = (Vec::new(), Vec::new(), Vec::<Vec<(usize, f64)>>::new());
        for (place, values) in pairs {
            let counts = !values.is_empty() && 2 * values.len() >= blocks.len();
            numbers.push(counts.then_some(places.len()));
            if counts {
                places.push(place);
                numbered.push(values.into_iter().map(|(block, value)| (number(block), value)).collect());
            }
        }
        let median = |values: &Vec<(usize, f64)>| {
            quantile::median(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let medians: Vec<f64> = numbered.iter().map(median).collect();
        let takes = vec![true; places.len()];
        let found = Found::of(&places, &takes, &medians, &numbered, blocks.len());
        Self { numbers, places, values: numbered, medians, takes, blocks: blocks.len(), found }
    }

    /// The number of pairs, including pairs without values.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The median of the pair at a row and column, if it has values.
    pub fn median(&self, place: (usize, usize)) -> Option<f64> {
        self.places.iter().position(|other| *other == place).map(|number| self.medians[number])
    }

    /// The P value of each pair, in order; `None` without a prediction.
    pub fn p(&self) -> Vec<Option<f64>> {
        self.each(|number| signed_rank(&self.found.by_block[number]).map(|test| test.p))
    }

    /// The logarithm of each pair's interaction; 0 without a prediction.
    pub fn sizes(&self) -> Vec<f64> {
        let size = |number: usize| Some(self.found.sizes[number]).filter(|size| size.is_finite());
        self.each(size).into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Whether every pair keeps its prediction if this pair is removed from the predictions.
    pub fn can_spare(&self, pair: usize) -> bool {
        let Some(number) = self.numbers[pair].filter(|number| self.takes[*number]) else { return false };
        let mut takes = self.takes.clone();
        takes[number] = false;
        let without = Additive::of(&self.places, &takes);
        without.predicts().zip(self.found.model.predicts()).all(|(then, now)| then || !now)
    }

    /// Removes a pair from the predictions.
    pub fn remove(&mut self, pair: usize) {
        if let Some(number) = self.numbers[pair] {
            self.takes[number] = false;
            self.found = Found::of(&self.places, &self.takes, &self.medians, &self.values, self.blocks);
        }
    }

    /// The interaction of each pair, in order; `None` without a prediction.
    pub fn effects(&self, bootstrap: &mut Bootstrap) -> Vec<Option<PairedEffect>> {
        let distributions = self.distributions(bootstrap);
        self.each(|number| {
            let size = self.found.sizes[number];
            let by_block = &self.found.by_block[number];
            let distribution = distributions[number].as_ref();
            size.is_finite().then(|| PairedEffect {
                blocks: by_block.len() as u32,
                ratio: Some(size.exp()),
                interval_95: distribution.map(|d| d.interval(0.95)),
                interval_90: distribution.map(|d| d.interval(0.90)),
                noise: None,
                p: signed_rank(by_block).map(|test| test.p),
                difference: None,
                equal: false,
            })
        })
    }

    fn each<T>(&self, of: impl Fn(usize) -> Option<T>) -> Vec<Option<T>> {
        self.numbers.iter().map(|number| number.and_then(&of)).collect()
    }

    /// The bootstrap distribution of each pair's interaction. The few resamples in which some pair has no value are
    /// skipped; every pair has values in at least half of the blocks.
    fn distributions(&self, bootstrap: &mut Bootstrap) -> Vec<Option<Distribution>> {
        let resamples = Bootstrap::resamples(self.blocks);
        let mut all = vec![Vec::with_capacity(resamples); self.values.len()];
        bootstrap.medians(self.blocks, &self.values, |medians| {
            if medians.iter().all(|median| median.is_finite()) {
                for (effects, beyond) in all.iter_mut().zip(self.found.model.beyond(&logs(medians))) {
                    effects.push(beyond.exp());
                }
            }
        });
        let enough = |effects: &Vec<f64>| effects.len() * 10 >= resamples * 9;
        all.into_iter().map(|effects| Some(effects).filter(enough).and_then(Distribution::of)).collect()
    }
}

impl Found {
    fn of(
        places: &[(usize, usize)],
        takes: &[bool],
        medians: &[f64],
        values: &[Vec<(usize, f64)>],
        blocks: usize,
    ) -> Self {
        let model = Additive::of(places, takes);
        let sizes = model.beyond(&logs(medians));
        let mut by_block = vec![Vec::new(); places.len()];
        // Most blocks have the same pairs, and so the same model.
        let mut last: (Vec<usize>, Additive) = (Vec::new(), Additive::of(&[], &[]));
        for block in 0..blocks {
            let in_block = |(pair, values): (usize, &Vec<(usize, f64)>)| {
                values.iter().find(|(other, _)| *other == block).map(|(_, value)| (pair, *value))
            };
            let (pairs, values): (Vec<usize>, Vec<f64>) = values.iter().enumerate().filter_map(in_block).unzip();
            if last.0 != pairs {
                let (places, takes): (Vec<_>, Vec<_>) = pairs.iter().map(|pair| (places[*pair], takes[*pair])).unzip();
                last = (pairs, Additive::of(&places, &takes));
            }
            for (pair, beyond) in last.0.iter().zip(last.1.beyond(&logs(&values))).filter(|(_, b)| b.is_finite()) {
                by_block[*pair].push(beyond);
            }
        }
        Self { model, sizes, by_block }
    }
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}
