//! Rank correlation: Spearman (1904), "The proof and measurement of association between two things". It measures
//! whether two quantities increase together, for any form of the relation, and a single extreme value does not dominate
//! it.

use crate::ranks;

/// Spearman's coefficient of values in the same order, from -1 to 1; ties have mid-ranks. `None` if one of the two does
/// not vary.
#[must_use]
pub fn spearman(first: &[f64], second: &[f64]) -> Option<f64> {
    let [first, second] = [first, second].map(centred_ranks);
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let spread = (sum(&first, &first) * sum(&second, &second)).sqrt();
    (spread > 0.0).then(|| sum(&first, &second) / spread)
}

/// Doubled ranks minus their mean; doubling does not change a correlation.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mean = (values.len() + 1) as f64;
    ranks::doubled(values).into_iter().map(|rank| rank as f64 - mean).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Intelligence and hours of television of ten people, an example of many text books: 1 - 6 * 194 / (10 * 99) =
    /// -29/165.
    #[test]
    fn the_coefficient_is_that_of_the_text_book() {
        let intelligence = [106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0];
        let hours = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        assert!((spearman(&intelligence, &hours).unwrap() + 29.0 / 165.0).abs() < 1e-12);
    }

    /// Ranks 1, 2.5, 2.5, 4 and 1, 2, 3.5, 3.5: covariance 3.75, both variances 4.5.
    #[test]
    fn ties_have_mid_ranks() {
        let coefficient = spearman(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 3.0]).unwrap();
        assert!((coefficient - 3.75 / 4.5).abs() < 1e-12, "{coefficient}");
    }

    #[test]
    fn constant_values_have_no_correlation() {
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[5.0; 3]), None);
        assert_eq!(spearman(&[], &[]), None);
    }

    proptest! {
        #[test]
        fn it_is_bounded_symmetric_and_the_same_for_every_increasing_scale(
            pairs in prop::collection::vec((-50.0..50.0_f64, -50.0..50.0_f64), 2..20)
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let Some(coefficient) = spearman(&a, &b) else { return Ok(()) };
            prop_assert!((-1.0 - 1e-12..=1.0 + 1e-12).contains(&coefficient));
            prop_assert_eq!(spearman(&b, &a), Some(coefficient));
            let scaled: Vec<f64> = a.iter().map(|value| if *value < 0.0 { *value } else { 8.0 * value }).collect();
            let turned: Vec<f64> = a.iter().map(|value| -value).collect();
            prop_assert!((spearman(&scaled, &b).unwrap() - coefficient).abs() < 1e-9);
            prop_assert!((spearman(&turned, &b).unwrap() + coefficient).abs() < 1e-9);
        }
    }
}
