//! Differences between two values of the same type, field by field.

use serde::Serialize;
use serde_json::Value;

/// A field with two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The path of the field: `sysctls.net.ipv4.tcp_rmem`.
    pub field: String,
    /// Its values as text; `None` where the field is absent.
    pub values: [Option<String>; 2],
}

/// The fields that differ between two values, in the order of the first. A list is one field.
#[must_use]
pub fn differences<T: Serialize>(first: &T, second: &T) -> Vec<Difference> {
    let [first, second] = [first, second].map(|value| serde_json::to_value(value).unwrap_or_default());
    let mut found = Vec::new();
    compare("", Some(&first), Some(&second), &mut found);
    found
}

fn compare(field: &str, first: Option<&Value>, second: Option<&Value>, found: &mut Vec<Difference>) {
    if let (Some(Value::Object(first)), Some(Value::Object(second))) = (first, second) {
        let only_second = second.keys().filter(|key| !first.contains_key(*key));
        for key in first.keys().chain(only_second) {
            let field = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
            compare(&field, first.get(key), second.get(key), found);
        }
        return;
    }
    // An absent value is written as null, or not at all.
    let [first, second] = [first, second].map(|value| value.filter(|value| !value.is_null()));
    if first != second {
        found.push(Difference { field: field.to_owned(), values: [first, second].map(|value| value.map(text)) });
    }
}

/// A text without its quotation marks; anything else as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_fields_that_differ_are_listed_with_their_path() {
        let first = json!({ "a": 1, "b": { "c": "x", "d": [1, 2] }, "e": null, "f": true });
        let second = json!({ "a": 1, "b": { "c": "y", "d": [1, 3] }, "g": "new" });
        let found = differences(&first, &second);
        let found: Vec<_> =
            found.iter().map(|one| (one.field.as_str(), one.values[0].as_deref(), one.values[1].as_deref())).collect();
        let expected = [
            ("b.c", Some("x"), Some("y")),
            ("b.d", Some("[1,2]"), Some("[1,3]")),
            ("f", Some("true"), None),
            ("g", None, Some("new")),
        ];
        assert_eq!(found, expected);
        assert_eq!(differences(&first, &first), []);
    }
}
