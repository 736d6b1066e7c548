//! The analysis as JSON, for `--json`.

use serde_json::{Map, Value, json};

use crate::Input;

/// The version of the form of the JSON report, which `docs/report.schema.json` describes. It grows if a key is removed
/// or changes its meaning, not with a further key.
pub const SCHEMA_VERSION: u32 = 1;

/// One JSON object with the requirements, the study, its cells with their estimates, comparisons, contests (the best
/// level by condition), pairs of clients and servers, claims and warnings.
///
/// # Panics
/// Never: every part has string keys and finite numbers.
#[must_use]
pub fn json(input: &Input) -> String {
    let manifest = input.manifest;
    let cells: Vec<_> = manifest
        .plan
        .cells
        .iter()
        .enumerate()
        .map(|(number, cell)| {
            let mut object = Map::new();
            object.insert("cell".to_owned(), number.into());
            object.insert("label".to_owned(), cell.label().into());
            object.insert("levels".to_owned(), value(&cell.levels));
            object.insert("twin_of".to_owned(), value(cell.twin_of));
            if let Value::Object(known) = value(input.cell(number)) {
                object.extend(known);
            }
            let by_request = (input.by_request)(number);
            if !by_request.is_empty() {
                object.insert("by_request".to_owned(), value(by_request));
            }
            Value::Object(object)
        })
        .collect();
    let warnings: Vec<_> = crate::warnings::all(input)
        .into_iter()
        .map(|warning| {
            let mut object = value(warning);
            object["meaning"] = warning.meaning().into();
            object["remedy"] = warning.remedy().into();
            object
        })
        .collect();
    let metrics: Vec<_> = crate::columns::known(input)
        .into_iter()
        .map(|metric| {
            json!({
                "name": metric.name, "title": metric.title, "unit": metric.unit, "side": metric.side,
                "better": metric.better, "vantage": metric.vantage, "meaning": metric.meaning,
            })
        })
        .collect();
    let mut document = json!({
        "schema_version": SCHEMA_VERSION,
        "requirements": input.analysis.requirements,
        "study": manifest.study.name,
        "title": manifest.study.title,
        "created": manifest.created,
        "preset": manifest.preset,
        "set": manifest.set,
        "lab": manifest.lab,
        "seed": manifest.plan.seed,
        "stopped": input.stopped,
        "complete_blocks": input.analysis.complete_blocks,
        "metrics": metrics,
        "cells": cells,
        "comparisons": input.analysis.comparisons,
        "contests": input.analysis.contests,
        "pairs": input.analysis.pairs,
        "claims": input.analysis.claims,
        "planted": input.analysis.planted,
        "warnings": warnings,
        "environment": manifest.environment,
    });
    if !input.analysis.shares.is_empty() {
        document["shares"] = value(&input.analysis.shares);
    }
    if let Some(integrity) = input.integrity {
        document["integrity"] = value(integrity);
    }
    if let Some(table) = input.table {
        for absent in ["created", "lab", "stopped", "environment"] {
            document[absent] = Value::Null;
        }
        document["table"] = value(table);
        document["table"]["limits"] = value(crate::source::limits(input, table));
    }
    let mut text = serde_json::to_string_pretty(&document).expect("every key is a string");
    text.push('\n');
    text
}

fn value(part: impl serde::Serialize) -> Value {
    serde_json::to_value(part).expect("every key is a string")
}
