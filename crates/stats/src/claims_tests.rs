use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};
use wirelab_model::claim::Needs;
use wirelab_model::plan::Cell;

use super::*;
use crate::analysis::Moment;
use crate::fixture::{plan, record, records, study, wobble};

fn result(claim: &Json, blocks: u32, levels: [f64; 4]) -> ClaimResult {
    let mut claim = claim.clone();
    claim.as_object_mut().unwrap().extend(json!({ "id": "C1", "text": "?" }).as_object().unwrap().clone());
    let study = study(&json!({ "claims": [claim] }));
    crate::analyse(&study, &plan(), &records(blocks, levels), &[], Moment::Ended).claims.remove(0)
}

/// A claim with one test of the median response time.
fn tested(of: &Json, given: &Json, expect: &str) -> Json {
    json!({ "tests": [{ "metric": "response_median", "of": of, "where": given, "expect": expect }] })
}

const LEVELS: [f64; 4] = [1000.0, 1500.0, 8000.0, 16_000.0];

#[test]
fn each_level_of_an_open_factor_gives_an_effect() {
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
    assert_eq!((narrowed.effects.len(), narrowed.effects[0].verdict), (1, ClaimVerdict::Holds));
    let fixed = result(&tested(&of, &json!({ "size": "large" }), "> 1.8"), 12, LEVELS);
    assert_eq!((fixed.effects.len(), fixed.effects[0].at.as_str()), (1, ""));
}

#[test]
fn a_claim_about_levels_that_the_plan_lacks_never_holds_and_can_fail() {
    let of = json!([{ "colour": "blue" }, { "colour": "red" }]);
    let part = |expect| result(&tested(&of, &json!({ "size": ["large", "huge"] }), expect), 12, LEVELS);
    let (holds, fails) = (part("> 1.8"), part("< 1.8"));
    assert_eq!((holds.verdict, fails.verdict), (ClaimVerdict::CannotTell, ClaimVerdict::DoesNotHold));
    let reason = "This plan has no cells for colour=blue / colour=red in response_median where size=huge.";
    assert_eq!(holds.untested.as_deref(), Some(reason));
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
fn an_interval_across_the_bound_and_nine_blocks_are_inconclusive() {
    let of = json!([{ "colour": "blue" }, { "colour": "red" }]);
    let close = result(&tested(&of, &json!({ "size": "small" }), "> 1.5"), 12, LEVELS);
    assert_eq!(close.verdict, ClaimVerdict::CannotTell);
    let few = result(&tested(&of, &json!({ "size": "small" }), "> 1.2"), 9, LEVELS);
    assert_eq!(few.verdict, ClaimVerdict::CannotTell);
    assert!(few.effects[0].size.is_some() && few.effects[0].interval.is_some());
}

#[test]
fn a_test_without_cells_is_not_tested_with_a_reason() {
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
fn a_metric_without_values_is_inconclusive() {
    let claim = json!({ "tests": [{ "metric": "goodput", "of": [{ "colour": "red" }], "expect": "> 1" }] });
    let result = result(&claim, 12, LEVELS);
    assert_eq!((result.verdict, result.effects[0].size), (ClaimVerdict::CannotTell, None));
}

/// A study of the same response times for each of the colours, over the bound of 1 against `base`.
fn of_colours(needs: &str, colours: &[&str], values: &[f64]) -> ClaimResult {
    let levels: Vec<&str> = ["base"].into_iter().chain(colours.iter().copied()).collect();
    let claim = json!({
        "id": "C1", "text": "?", "each": { "colour": levels[1..] }, "needs": needs,
        "tests": [{ "metric": "response_median", "of": [{}, { "colour": "base" }], "expect": "> 1" }],
    });
    let values = [&[1.0], values].concat();
    of_plan(&claim, values.len(), 12, |cell, block| vec![("response_median", 1e6 * values[cell] * wobble(cell, block))])
}

/// The claim over cells `colour=base`, `colour=1`, `colour=2`, ...
fn of_plan(
    claim: &Json,
    cells: usize,
    blocks: u32,
    mut values: impl FnMut(usize, u32) -> Vec<(&'static str, f64)>,
) -> ClaimResult {
    let study = study(&json!({ "claims": [claim] }));
    let mut records = Vec::new();
    for block in 0..blocks {
        records.extend((0..cells).map(|cell| record(cell, block, &values(cell, block))));
    }
    crate::analyse(&study, &colours(cells), &records, &[], Moment::Ended).claims.remove(0)
}

/// A plan of that many colours.
fn colours(cells: usize) -> Plan {
    let mut plan = plan();
    let one = plan.cells[0].clone();
    let colour = |number: usize| if number == 0 { "base".to_owned() } else { number.to_string() };
    let of_colour = |number| Cell { levels: [("colour".to_owned(), colour(number))].into(), ..one.clone() };
    plan.cells = (0..cells).map(of_colour).collect();
    plan.comparisons.clear();
    plan
}

fn cases(result: &ClaimResult) -> Vec<(&str, ClaimVerdict)> {
    let cases = result.cases.as_ref().unwrap();
    cases.tested.iter().map(|case| (case.level.as_str(), case.verdict)).collect()
}

#[test]
fn some_most_and_all_need_one_more_than_half_and_every_case() {
    use ClaimVerdict::{CannotTell, DoesNotHold, Holds};
    let (above, below, on) = (1.2, 0.8, 1.0);
    for (values, some, most, all) in [
        (&[above, above, above][..], Holds, Holds, Holds),
        (&[above, above, below], Holds, Holds, DoesNotHold),
        (&[above, below, below], Holds, DoesNotHold, DoesNotHold),
        (&[below, below, below], DoesNotHold, DoesNotHold, DoesNotHold),
        (&[above, on, below], Holds, CannotTell, DoesNotHold),
        (&[on, below, below], CannotTell, DoesNotHold, DoesNotHold),
        (&[above, above, on], Holds, Holds, CannotTell),
        (&[above, above, below, below], Holds, DoesNotHold, DoesNotHold),
        (&[above], Holds, Holds, Holds),
    ] {
        let colours = &["1", "2", "3", "4"][..values.len()];
        let verdicts = ["some", "most", "all"].map(|needs| of_colours(needs, colours, values).verdict);
        assert_eq!(verdicts, [some, most, all], "{values:?}");
    }
}

#[test]
fn more_cases_widen_the_intervals_of_each_case() {
    let some = of_colours("some", &["1", "2", "3", "4"], &[1.2, 1.0, 0.8, 0.8]);
    use ClaimVerdict::{CannotTell, DoesNotHold, Holds};
    assert_eq!(cases(&some), [("1", Holds), ("2", CannotTell), ("3", DoesNotHold), ("4", DoesNotHold)]);
    let confidences = |needs: &str| {
        let cases = of_colours(needs, &["1", "2", "3", "4"], &[1.2; 4]).cases.unwrap();
        (cases.least, cases.confidence_to_hold, cases.confidence_to_fail)
    };
    assert_eq!(confidences("some"), (1, 1.0 - 0.05 / 4.0, 0.95));
    assert_eq!(confidences("most"), (3, 1.0 - 0.05 / 2.0, 1.0 - 0.05 / 3.0));
    assert_eq!(confidences("all"), (4, 0.95, 1.0 - 0.05 / 4.0));
}

#[test]
fn levels_that_the_plan_does_not_have_are_named_and_are_no_cases() {
    let result = of_colours("most", &["1", "2", "3", "absent", "gone"], &[1.2, 1.2, 0.8]);
    assert_eq!((result.verdict, cases(&result).len()), (ClaimVerdict::Holds, 3));
    assert_eq!(result.cases.as_ref().unwrap().absent, ["absent", "gone"]);
    assert_eq!(result.untested.as_deref(), Some("This plan does not have the cells to test colour=absent|gone."));
    let absent = of_colours("some", &["absent"], &[]);
    assert_eq!((absent.verdict, absent.effects.len()), (ClaimVerdict::NotTested, 0));
}

#[test]
fn a_case_holds_if_every_test_holds_for_it() {
    let test = |of: Json, expect: &str| json!({ "metric": "response_median", "of": of, "expect": expect });
    let claim = json!({
        "each": { "size": ["small", "large", "huge"] }, "needs": "some",
        "tests": [
            test(json!([{ "colour": "blue" }, { "colour": "red" }]), "> 1.2"),
            test(json!([{ "colour": "blue" }, { "colour": "red" }]), "< 1.7"),
            test(json!([{ "colour": "green" }, { "colour": "red", "size": "small" }]), "< 1.7"),
        ],
    });
    let mut complete = claim.clone();
    complete["tests"].as_array_mut().unwrap().pop();
    let complete = result(&complete, 12, LEVELS);
    assert_eq!(complete.verdict, ClaimVerdict::Holds);
    assert_eq!(cases(&complete), [("small", ClaimVerdict::Holds), ("large", ClaimVerdict::DoesNotHold)]);
    assert_eq!(complete.effects[0].of, "size=small colour=blue / size=small colour=red");
    // Without cells for the third test no case holds.
    let result = result(&claim, 12, LEVELS);
    assert_eq!(cases(&result), [("small", ClaimVerdict::CannotTell), ("large", ClaimVerdict::DoesNotHold)]);
    assert_eq!(result.verdict, ClaimVerdict::CannotTell);
    let words = "This plan does not have the cells to test size=huge. This plan has no cells for size=small|large colour=green / \
                 colour=red size=small in response_median.";
    assert_eq!(result.untested.as_deref(), Some(words));
}

/// Every one of 12 cases lies on the bound, so that "some are above it" is wrong: it must be said in few of 200 studies
/// (2.5 % is the level).
#[test]
fn many_cases_on_the_bound_seldom_make_a_claim_of_some_hold() {
    let names: Vec<String> = (1..=12).map(|number| number.to_string()).collect();
    let claim = |needs: &str| {
        json!({
            "id": "C1", "text": "?", "each": { "colour": names }, "needs": needs,
            "tests": [{ "metric": "response_median", "of": [{}, { "colour": "base" }], "expect": "> 1" }],
        })
    };
    let (mut some, mut by_chance) = (0, 0);
    for seed in 0..200 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // About normal: the sum of 12 uniform numbers.
        let mut normal = || (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let result = of_plan(&claim("some"), 13, 14, |_, _| vec![("response_median", 1e6 * (0.1 * normal()).exp())]);
        some += u32::from(result.verdict == ClaimVerdict::Holds);
        by_chance += u32::from(result.effects.iter().any(|effect| effect.verdict == ClaimVerdict::Holds));
    }
    assert!(some <= 10 && by_chance > 2 * some, "{some} of 200, without a correction {by_chance}");
}

/// Two metrics over seven cells, with one cell out of order, and a third metric that one cell lacks.
fn correlated(with: &str, of: &Json, expect: &str, blocks: u32) -> ClaimResult {
    let test = json!({ "metric": "response_median", "with": with, "of": of, "expect": expect });
    of_plan(&json!({ "id": "C1", "text": "?", "tests": [test] }), 8, blocks, |cell, block| {
        let calls = [9.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 1.0][cell] * wobble(cell, block);
        let mut values = vec![("response_median", 1e6 * (cell + 1) as f64 * wobble(cell + 1, block)), ("cpu", calls)];
        if cell != 3 {
            values.push(("goodput", calls));
        }
        values
    })
}

#[test]
fn a_correlation_is_of_the_ranks_of_the_medians_of_two_metrics() {
    let six = json!([{ "colour": ["1", "2", "3", "4", "5", "6"] }]);
    let result = correlated("cpu", &six, "> 0.5", 12);
    let effect = &result.effects[0];
    assert_eq!((result.verdict, effect.size, effect.plain), (ClaimVerdict::Holds, Some(1.0), false));
    assert_eq!((effect.of.as_str(), effect.with.as_deref()), ("colour=1|2|3|4|5|6", Some("cpu")));
    // With the last cell, whose order is the other way, ranks differ by 6 once and by 1 six times: 1 - 6 * 42 / (7 *
    // 48).
    let seven = json!([{ "colour": ["1", "2", "3", "4", "5", "6", "7"] }]);
    let result = correlated("cpu", &seven, "> 0.5", 12);
    assert!((result.effects[0].size.unwrap() - 0.25).abs() < 1e-12, "{result:?}");
    assert_eq!(result.verdict, ClaimVerdict::DoesNotHold);
    assert_eq!(correlated("cpu", &six, "> 0.5", 9).verdict, ClaimVerdict::CannotTell);
    assert_eq!(result.untested, None);
    let more = json!([{ "colour": ["1", "2", "3", "4", "5", "6", "absent"] }]);
    let words = "This plan does not have the cells to test colour=absent.";
    assert_eq!(correlated("cpu", &more, "> 0.5", 12).untested.as_deref(), Some(words));
}

#[test]
fn a_correlation_omits_and_names_a_cell_without_values() {
    let six = json!([{ "colour": ["1", "2", "3", "4", "5", "6"] }]);
    let result = correlated("goodput", &six, "> 0.5", 12);
    assert_eq!((result.verdict, result.effects[0].of.as_str()), (ClaimVerdict::Holds, "colour=1|2|4|5|6"));
    let words = "The correlation of response_median with goodput omits colour=3: too few trials have values.";
    assert_eq!(result.untested.as_deref(), Some(words));
    let result = correlated("goodput", &json!([{ "colour": ["1", "2", "3", "4", "5"] }]), "> 0.5", 12);
    assert_eq!((result.verdict, result.effects[0].size), (ClaimVerdict::CannotTell, None));
}

#[test]
fn a_correlation_over_fewer_than_five_cells_is_not_tested() {
    let result = correlated("cpu", &json!([{ "colour": ["1", "2", "3", "4", "green", "blue"] }]), "> 0.5", 12);
    let words = "This plan has fewer than 5 cells for colour=1|2|3|4|green|blue in response_median and cpu.";
    assert_eq!((result.verdict, result.untested.as_deref()), (ClaimVerdict::NotTested, Some(words)));
}

fn any_case() -> impl Strategy<Value = ClaimVerdict> {
    prop::sample::select(vec![ClaimVerdict::Holds, ClaimVerdict::DoesNotHold, ClaimVerdict::CannotTell])
}

proptest! {
    /// A claim about all cases has the result of its worst case, a claim about some cases that of its best. A claim
    /// that needs fewer cases never has a worse result, nor has a claim with one better case.
    #[test]
    fn quantifiers_agree_with_each_other(cases in prop::collection::vec(any_case(), 1..12), place in any::<prop::sample::Index>()) {
        let rank = |verdict| match verdict {
            ClaimVerdict::DoesNotHold => 0,
            ClaimVerdict::Holds => 2,
            _ => 1,
        };
        let judged = |cases: &[ClaimVerdict]| {
            [Needs::All, Needs::Most, Needs::Some].map(|needs| rank(judged(needs, cases)))
        };
        let [all, most, some] = judged(&cases);
        prop_assert!(all <= most && most <= some);
        prop_assert_eq!(all, cases.iter().map(|case| rank(*case)).min().unwrap());
        prop_assert_eq!(some, cases.iter().map(|case| rank(*case)).max().unwrap());
        let mut better = cases.clone();
        let case = place.get(&cases);
        let raised = if *case == ClaimVerdict::DoesNotHold { ClaimVerdict::CannotTell } else { ClaimVerdict::Holds };
        better[place.index(cases.len())] = raised;
        prop_assert!(judged(&better).iter().zip(judged(&cases)).all(|(after, before)| *after >= before));
        let turned = |verdict: &ClaimVerdict| match verdict {
            ClaimVerdict::Holds => ClaimVerdict::DoesNotHold,
            ClaimVerdict::DoesNotHold => ClaimVerdict::Holds,
            other => *other,
        };
        let opposite: Vec<_> = cases.iter().map(turned).collect();
        prop_assert_eq!(judged(&opposite)[0], 2 - some);
    }
}

fn judged(needs: Needs, cases: &[ClaimVerdict]) -> ClaimVerdict {
    verdict(cases, needs.least(cases.len()))
}
