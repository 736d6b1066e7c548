//! Families of hypotheses: which P values share Holm's correction.
//!
//! All comparisons in the primary metrics of a study are one family, so that the probability of any false verdict in
//! them is bounded. Each exploratory metric is a family of its own. Its verdicts say "exploratory": with several such
//! metrics, one false verdict among them is likelier than 5 %.

use wirelab_model::study::Compare;

use crate::holm::holm;

/// The corrected P values of the study's metrics, in the given order: a list per metric.
pub fn correct(compare: &Compare, p: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let is_primary = |place: usize| compare.is_primary(&compare.metrics[place]);
    let primary: Vec<f64> =
        (0..p.len()).filter(|place| is_primary(*place)).flat_map(|place| p[place].clone()).collect();
    let mut primary = holm(&primary).into_iter();
    let correct = |(place, of_metric): (usize, &Vec<f64>)| {
        if is_primary(place) { primary.by_ref().take(of_metric.len()).collect() } else { holm(of_metric) }
    };
    p.iter().enumerate().map(correct).collect()
}

/// The size of a metric's family, from the number of hypotheses in each metric.
pub fn size(compare: &Compare, metric: &str, in_each: usize) -> usize {
    let metrics = compare.metrics.iter().filter(|name| compare.is_primary(name)).count();
    if compare.is_primary(metric) { metrics * in_each } else { in_each }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primary_metrics_share_a_correction_and_each_exploratory_one_has_its_own() {
        let compare: Compare = serde_json::from_value(serde_json::json!({
            "factor": "f", "baseline": "b", "metrics": ["x", "y", "z"], "primary": ["x", "z"],
        }))
        .unwrap();
        let corrected = correct(&compare, &[vec![0.01, 0.02], vec![0.01, 0.02], vec![0.5, 0.001]]);
        assert_eq!(corrected, [vec![0.03, 0.04], vec![0.02, 0.02], vec![0.5, 0.004]]);
        assert_eq!((size(&compare, "x", 2), size(&compare, "y", 2)), (4, 2));
    }

    #[test]
    fn without_a_list_the_first_metric_is_primary() {
        let compare = serde_json::json!({ "factor": "f", "baseline": "b", "metrics": ["x", "y"] });
        let compare: Compare = serde_json::from_value(compare).unwrap();
        assert!(compare.is_primary("x") && !compare.is_primary("y"));
    }
}
