//! The published schemas and the examples of the contract agree with the types.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wirelab_model::endpoint::{Description, Manifest};
use wirelab_model::event::Event;
use wirelab_model::histogram::Histograms;
use wirelab_model::sample::Sample;
use wirelab_model::spec::{ClientSpec, ControlPlaneSpec, ServerSpec, SidecarSpec};
use wirelab_suite::schema;

fn contract() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    for published in schema::all() {
        let committed = read(&contract().join("schema").join(&published.file));
        assert!(
            committed == published.text(),
            "contract/schema/{} is not what the types say; update it: cargo run -p wirelab-suite --example schemas",
            published.file
        );
    }
    let files = fs::read_dir(contract().join("schema")).expect("contract/schema is a folder").count();
    assert_eq!(files, schema::all().len(), "contract/schema has a file that no type stands for");
}

/// The values must satisfy the schema, and serde must read them and write the same values again.
fn check<T: Serialize + DeserializeOwned>(schema_name: &str, values: &[Value]) {
    let file = format!("{schema_name}.schema.json");
    let published = schema::all().into_iter().find(|s| s.file == file).expect("the schema is published");
    let validator = jsonschema::validator_for(&published.schema).expect("the schema is one");
    assert!(!values.is_empty(), "no example of {schema_name}");
    for value in values {
        if let Err(error) = validator.validate(value) {
            panic!("{schema_name} does not allow {value}: {error}");
        }
        let typed: T = serde_json::from_value(value.clone())
            .unwrap_or_else(|error| panic!("serde does not read {value} as {schema_name}: {error}"));
        let again = serde_json::to_value(&typed).expect("it can be written");
        assert_eq!(&again, value, "{schema_name} does not survive reading and writing");
    }
}

fn object(name: &str) -> Vec<Value> {
    vec![serde_json::from_str(&read(&contract().join("examples").join(name))).expect("the example is JSON")]
}

fn lines(name: &str) -> Vec<Value> {
    let text = read(&contract().join("examples").join(name));
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

#[test]
fn the_examples_are_valid_and_read_back_equal() {
    check::<Description>("description", &object("description.json"));
    check::<ServerSpec>("server-spec", &object("server-spec.json"));
    check::<ClientSpec>("client-spec", &object("client-spec.json"));
    check::<SidecarSpec>("sidecar-spec", &object("sidecar-spec.json"));
    check::<ControlPlaneSpec>("control-plane-spec", &object("control-plane-spec.json"));
    check::<Event>("event", &lines("server-events.jsonl"));
    check::<Event>("event", &lines("sidecar-events.jsonl"));
    check::<Event>("event", &lines("control-plane-events.jsonl"));
    check::<Event>("event", &lines("client-events.jsonl"));
    check::<Event>("event", &lines("refusals.jsonl"));
    check::<Sample>("sample", &lines("samples.jsonl"));
    check::<Histograms>("histograms", &object("histograms.json"));
    let manifest = contract().join("../endpoints/_template/endpoint.toml");
    check::<Manifest>("endpoint-manifest", &[toml::from_str(&read(&manifest)).expect("the manifest is TOML")]);
}

#[test]
fn a_schema_refuses_an_unknown_field() {
    let published = schema::all().into_iter().find(|s| s.file == "client-spec.schema.json").expect("it is published");
    let validator = jsonschema::validator_for(&published.schema).expect("the schema is one");
    let mut spec = object("client-spec.json").remove(0);
    assert!(validator.is_valid(&spec));
    spec["colour"] = "blue".into();
    assert!(!validator.is_valid(&spec));
}
