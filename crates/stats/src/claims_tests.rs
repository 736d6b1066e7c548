use serde_json::{Value as Json, json};

use super::*;
use crate::fixture::{plan, records, study};

fn result(claim: &Json, blocks: u32, levels: [f64; 4]) -> ClaimResult {
    let mut claim = claim.clone();
    claim.as_object_mut().unwrap().extend(json!({ "id": "C1", "text": "?" }).as_object().unwrap().clone());
    let study = study(&json!({ "claims": [claim] }));
    crate::analyse(&study, &plan(), &records(blocks, levels), &[]).claims.remove(0)
}

/// A claim with one test of the median response time.
fn tested(of: &Json, given: &Json, expect: &str) -> Json {
    json!({ "tests": [{ "metric": "response_median", "of": of, "where": given, "expect": expect }] })
}

const LEVELS: [f64; 4] = [1000.0, 1500.0, 8000.0, 16_000.0];

#[test]
fn open_factors_are_gone_through_one_by_one() {
    let claim = tested(&json!([{ "colour": "blue" }, { "colour": "red" }]), &json!({}), "> 1.2");
    let result = result(&claim, 12, LEVELS);
    assert_eq!(result.verdict, ClaimVerdict::Holds);
    let shown: Vec<_> = result.effects.iter().map(|effect| (effect.at.as_str(), effect.of.as_str())).collect();
    assert_eq!(shown, [("size=small", "colour=blue / colour=red"), ("size=large", "colour=blue / colour=red")]);
    assert!((result.effects[0].size.unwrap() - 1.5).abs() < 0.03 && !result.effects[0].plain);
}

#[test]
fn one_violated_effect_is_enough_for_a_claim_not_to_hold() {
    let claim = tested(&json!([{ "colour": "blue" }, { "colour": "red" }]), &json!({}), "> 1.8");
    let result = result(&claim, 12, LEVELS);
    let each: Vec<_> = result.effects.iter().map(|effect| effect.verdict).collect();
    assert_eq!(each, [ClaimVerdict::DoesNotHold, ClaimVerdict::Holds]);
    assert_eq!(result.verdict, ClaimVerdict::DoesNotHold);
}

#[test]
fn a_list_in_where_narrows_a_factor_and_leaves_it_open() {
    let of = json!([{ "colour": "blue" }, { "colour": "red" }]);
    let narrowed = result(&tested(&of, &json!({ "size": ["large", "huge"] }), "> 1.8"), 12, LEVELS);
    assert_eq!(narrowed.effects[0].at, "size=large");
    assert_eq!((narrowed.effects.len(), narrowed.verdict), (1, ClaimVerdict::Holds));
    let fixed = result(&tested(&of, &json!({ "size": "large" }), "> 1.8"), 12, LEVELS);
    assert_eq!((fixed.effects.len(), fixed.effects[0].at.as_str()), (1, ""));
}

#[test]
fn one_selector_gives_a_value_and_four_a_ratio_of_ratios() {
    let value = result(&tested(&json!([{ "colour": "red", "size": "large" }]), &json!({}), "7000 to 9000"), 12, LEVELS);
    assert!(value.effects[0].plain && (value.effects[0].size.unwrap() - 8000.0).abs() < 160.0);
    assert_eq!(value.verdict, ClaimVerdict::Holds);
    let at = |colour: &str, size: &str| json!({ "colour": colour, "size": size });
    let of = json!([at("blue", "large"), at("red", "large"), at("blue", "small"), at("red", "small")]);
    let growth = result(&tested(&of, &json!({}), "> 1.2"), 12, LEVELS);
    assert!((growth.effects[0].size.unwrap() - 2.0 / 1.5).abs() < 0.05, "{growth:?}");
    assert_eq!(
        growth.effects[0].of,
        "(colour=blue size=large / colour=red size=large) / (colour=blue size=small / colour=red size=small)"
    );
}

#[test]
fn an_interval_across_the_bound_and_nine_blocks_cannot_tell() {
    let of = json!([{ "colour": "blue" }, { "colour": "red" }]);
    let close = result(&tested(&of, &json!({ "size": "small" }), "> 1.5"), 12, LEVELS);
    assert_eq!(close.verdict, ClaimVerdict::CannotTell);
    let few = result(&tested(&of, &json!({ "size": "small" }), "> 1.2"), 9, LEVELS);
    assert_eq!(few.verdict, ClaimVerdict::CannotTell);
    assert!(few.effects[0].size.is_some() && few.effects[0].interval.is_some());
}

#[test]
fn a_test_without_cells_is_not_tested_and_says_so() {
    let of = json!([{ "colour": "green" }, { "colour": "red" }]);
    let result = result(&tested(&of, &json!({ "size": "small" }), "> 1"), 12, LEVELS);
    assert_eq!((result.verdict, result.effects.len()), (ClaimVerdict::NotTested, 0));
    let words = "This plan has no cells for colour=green / colour=red in response_median where size=small.";
    assert_eq!(result.untested.as_deref(), Some(words));
}

#[test]
fn a_claim_without_tests_keeps_its_own_reason() {
    let result = result(&json!({ "untested": "Needs a network." }), 12, LEVELS);
    assert_eq!((result.verdict, result.untested.as_deref()), (ClaimVerdict::NotTested, Some("Needs a network.")));
}

#[test]
fn a_metric_that_nobody_measured_cannot_tell() {
    let claim = json!({ "tests": [{ "metric": "goodput", "of": [{ "colour": "red" }], "expect": "> 1" }] });
    let result = result(&claim, 12, LEVELS);
    assert_eq!((result.verdict, result.effects[0].size), (ClaimVerdict::CannotTell, None));
}

#[test]
fn an_interval_keeps_or_violates_a_bound_only_as_a_whole() {
    use ClaimVerdict::{CannotTell, DoesNotHold, Holds};
    for (low, high, bound, expected) in [
        (1.1, 1.2, "> 1", Holds),
        (0.9, 1.0, "> 1", DoesNotHold),
        (0.9, 1.1, "> 1", CannotTell),
        (0.0, 0.0, "< 0.01", Holds),
        (0.0, 0.0, "> 0", DoesNotHold),
        (0.1, 0.2, "< 0.1", DoesNotHold),
        (3.0, 12.0, "3 to 12", Holds),
        (2.9, 4.0, "3 to 12", CannotTell),
        (13.0, 14.0, "3 to 12", DoesNotHold),
    ] {
        let interval = Interval { low, high, confidence: 0.95 };
        assert_eq!(keeps(interval, bound.parse().unwrap()), expected, "{low} to {high}, {bound}");
    }
}
