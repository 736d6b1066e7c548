//! The JSON Schemas of `contract/schema/`, generated from the types of `wirelab_model`.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use wirelab_model::endpoint::{Description, Manifest};
use wirelab_model::event::Event;
use wirelab_model::exposition::Exposed;
use wirelab_model::histogram::Histograms;
use wirelab_model::sample::Sample;
use wirelab_model::spec::{ClientSpec, ControlPlaneSpec, ServerSpec, SidecarSpec};
use wirelab_model::study::Study;
use wirelab_model::totals::Totals;

/// One published schema.
#[derive(Debug, Clone)]
pub struct Published {
    /// Name of the file below `contract/schema/`.
    pub file: String,
    /// The schema (JSON Schema, draft 2020-12).
    pub schema: serde_json::Value,
}

impl Published {
    /// The content of the file.
    ///
    /// # Panics
    /// Never: a JSON value can be written as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.schema).expect("a JSON value is text");
        text.push('\n');
        text
    }
}

/// All published schemas, in the order of the contract.
#[must_use]
pub fn all() -> Vec<Published> {
    vec![
        published::<Description>("description"),
        published::<Manifest>("endpoint-manifest"),
        published::<ServerSpec>("server-spec"),
        published::<ClientSpec>("client-spec"),
        published::<SidecarSpec>("sidecar-spec"),
        published::<ControlPlaneSpec>("control-plane-spec"),
        published::<Event>("event"),
        published::<Sample>("sample"),
        published::<Histograms>("histograms"),
        published::<Totals>("totals"),
        published::<Exposed>("exposed"),
        published::<Study>("study"),
    ]
}

fn published<T: JsonSchema>(name: &str) -> Published {
    let generator: SchemaGenerator = SchemaSettings::draft2020_12().into_generator();
    Published { file: format!("{name}.schema.json"), schema: generator.into_root_schema_for::<T>().to_value() }
}
