//! Holm's correction for several tests: Holm (1979), "A simple sequentially rejective multiple test procedure". It
//! bounds the probability of any false rejection by the level, for any dependence between the tests, and is never
//! weaker than Bonferroni's.

/// The corrected P values, in the order of the given ones.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut corrected = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (place, &index) in order.iter().enumerate() {
        largest = largest.max((p[index] * (p.len() - place) as f64).min(1.0));
        corrected[index] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(p: &[f64], expected: &[f64]) {
        for (got, want) in holm(p).iter().zip(expected) {
            assert!((got - want).abs() < 1e-12, "{:?}", holm(p));
        }
    }

    /// The first is the usual textbook example (`p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")` in R gives 0.03 0.06
    /// 0.06 0.02); the second shows ties, the cap at 1 and the running maximum.
    #[test]
    fn corrected_p_values_are_those_of_p_adjust() {
        check(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]);
        check(&[0.7, 0.02, 0.02, 0.9], &[1.0, 0.08, 0.08, 1.0]);
        check(&[0.04], &[0.04]);
        check(&[], &[]);
    }
}
