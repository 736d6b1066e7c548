use serde_json::{Value as Json, json};
use wirelab_model::plan::{OwnServers, Target};

use super::*;
use crate::fixture::{plan, records, study};

/// The warnings if every trial of a cell reports `fact(cell)` for `key`.
fn warned(study: &Study, key: &str, fact: fn(usize) -> Json) -> Vec<Warning> {
    let mut records = records(2, [1.0; 4]);
    for record in &mut records {
        record.server.insert(key.to_owned(), fact(record.trial.cell));
    }
    parity(study, &plan(), &Trials::of(&plan(), &records, &[]))
}

fn is_blue(cell: usize) -> Json {
    json!(if cell % 2 == 1 && cell < 4 { 2 } else { 1 })
}

fn pairs(values: &[(&str, &str)]) -> Vec<(String, String)> {
    values.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn a_difference_without_an_explaining_factor_gives_one_warning_for_all_cells() {
    let expected = Warning::Parity {
        what: "server threads".to_owned(),
        values: pairs(&[("colour=red", "1"), ("colour=blue", "2")]),
    };
    assert_eq!(warned(&study(&json!({})), "threads", is_blue), [expected]);
}

#[test]
fn cells_are_named_if_the_level_alone_does_not_decide() {
    let values = [("colour=red size=small", "1"), ("colour=blue size=small", "2")];
    let only_small = |cell| json!(if cell == 1 { 2 } else { 1 });
    let expected = Warning::Parity { what: "server threads".to_owned(), values: pairs(&values) };
    assert_eq!(warned(&study(&json!({})), "threads", only_small), [expected]);
}

#[test]
fn only_the_deciding_factors_are_named() {
    let with_third = json!({ "factors": { "colour": { "red": {}, "blue": {} }, "size": { "small": {}, "large": {} }, "mood": { "good": {} } } });
    let mut plan = plan();
    for cell in &mut plan.cells {
        cell.levels.insert("mood".to_owned(), "good".to_owned());
    }
    let mut records = records(2, [1.0; 4]);
    for record in &mut records {
        record.server.insert("threads".to_owned(), json!(if record.trial.cell == 1 { 2 } else { 1 }));
    }
    let [Warning::Parity { values, .. }] = &parity(&study(&with_third), &plan, &Trials::of(&plan, &records, &[]))[..]
    else {
        panic!()
    };
    assert_eq!(*values, pairs(&[("colour=red size=small", "1"), ("colour=blue size=small", "2")]));
}

#[test]
fn factors_and_defining_facts_are_no_lack_of_parity() {
    let by_name = json!({ "factors": { "colour": { "red": {}, "blue": {} }, "threads": [1, 2] } });
    assert_eq!(warned(&study(&by_name), "threads", is_blue), []);
    let by_level = json!({ "factors": { "colour": { "red": {}, "blue": { "gso": true } } } });
    assert_eq!(warned(&study(&by_level), "gso", is_blue), []);
    assert_eq!(warned(&study(&json!({})), "alpn", is_blue), []);
    let by_cause = json!({ "factors": { "colour": { "red": {}, "blue": {} }, "max_udp_payload": [1300, "16 KB"] } });
    assert_eq!(warned(&study(&by_cause), "udp_payload", is_blue), []);
}

#[test]
fn a_setting_of_one_endpoint_is_a_lack_of_parity_unless_the_other_level_sets_it_too() {
    let warned = |red: Json, blue: Json, endpoints: [&str; 2]| {
        let study = study(&json!({ "factors": { "colour": { "red": red, "blue": blue } } }));
        let (mut plan, mut records) = (plan(), records(2, [1.0; 4]));
        for (cell, endpoint) in plan.cells.iter_mut().zip(endpoints.into_iter().cycle()) {
            cell.job.target = Target::Servers(OwnServers::one(endpoint));
        }
        for record in &mut records {
            record.server.insert("congestion".to_owned(), is_blue(record.trial.cell));
        }
        parity(&study, &plan, &Trials::of(&plan, &records, &[])).len()
    };
    let reno = || json!({ "congestion": "reno" });
    assert_eq!(warned(json!({}), reno(), ["a", "b"]), 1);
    assert_eq!(warned(json!({}), reno(), ["a", "a"]), 0);
    assert_eq!(warned(json!({ "congestion": "cubic" }), reno(), ["a", "b"]), 0);
}

#[test]
fn equal_facts_and_facts_of_one_side_only_give_no_warning() {
    assert_eq!(warned(&study(&json!({})), "threads", |_| json!("auto")), []);
    let mut records = records(2, [1.0; 4]);
    records.iter_mut().filter(|r| r.trial.cell == 1).for_each(|r| {
        r.client.insert("gso".to_owned(), json!(true));
    });
    assert_eq!(parity(&study(&json!({})), &plan(), &Trials::of(&plan(), &records, &[])), []);
}
