//! Formats for CI systems, and the schema of the JSON report.

use serde_json::Value;
use wirelab_report::{SCHEMA_VERSION, github, json, junit, openmetrics};

use crate::fixture::Fixture;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/report.schema.json")).unwrap()
}

#[test]
fn every_json_report_is_valid_under_the_published_schema() {
    let schema = schema();
    assert_eq!(schema["properties"]["schema_version"]["const"], SCHEMA_VERSION);
    let validator = jsonschema::validator_for(&schema).unwrap();
    for fixture in [Fixture::tiny(), Fixture::quick(), Fixture::pairs(), Fixture::conditions()] {
        let report: Value = serde_json::from_str(&fixture.report(json)).unwrap();
        let faults: Vec<_> = validator.iter_errors(&report).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

#[test]
fn the_schema_refuses_a_report_without_a_key_and_with_an_unknown_verdict() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let report: Value = serde_json::from_str(&Fixture::quick().report(json)).unwrap();
    let mut without = report.clone();
    without.as_object_mut().unwrap().remove("cells");
    let mut unknown = report;
    unknown["requirements"][0]["verdict"] = "perhaps".into();
    assert!(!validator.is_valid(&without) && !validator.is_valid(&unknown));
}

#[test]
fn the_junit_report_is_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(junit));
}

#[test]
fn the_annotations_for_github_are_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(github));
}

#[test]
fn the_metrics_for_gitlab_are_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(openmetrics));
}

#[test]
fn markup_in_names_stays_text_in_junit() {
    let mut fixture = Fixture::quick();
    fixture.manifest.study.name = "a<b> & \"c\"".to_owned();
    let text = fixture.report(junit);
    assert!(!text.contains("a<b>") && !text.contains("& \""), "{}", &text[..300]);
}
