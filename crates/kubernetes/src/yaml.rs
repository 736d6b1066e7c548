//! Objects as YAML, for people and for `kubectl`.

use serde::Serialize;
use serde_json::Value;

/// An object as YAML. Every string is quoted, so that none is taken for another type.
pub(crate) fn yaml(object: &impl Serialize) -> String {
    lines(&serde_json::to_value(object).expect("an object of the cluster always serialises"), 0)
}

fn lines(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => fields
            .iter()
            .map(|(key, value)| {
                let nests = match value {
                    Value::Object(fields) => !fields.is_empty(),
                    Value::Array(items) => items.iter().any(Value::is_object),
                    _ => false,
                };
                // JSON is valid YAML.
                if nests {
                    format!("{indent}{key}:\n{}", lines(value, depth + 1))
                } else {
                    format!("{indent}{key}: {value}\n")
                }
            })
            .collect(),
        Value::Array(items) => {
            items.iter().map(|item| format!("{indent}- {}", lines(item, depth + 1).trim_start())).collect()
        }
        flat => format!("{indent}{flat}\n"),
    }
}
