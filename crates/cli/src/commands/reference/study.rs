//! Settings and tables of a study file, from the schema of the types that it is read into.

use serde_json::Value;

use crate::commands::reference::page::{Page, code};

fn schema() -> Value {
    let published = wirelab_suite::schema::all().into_iter().find(|schema| schema.file == "study.schema.json");
    published.map(|schema| schema.schema).unwrap_or_default()
}

/// The page of the keys of `[workload]` and `[factors]`.
pub fn settings() -> String {
    let schema = schema();
    let mut page = Page::new(
        "Settings",
        "The keys of `[workload]`. A factor of the same name gives a key several values. `wirelab studies keys` prints this list.",
    );
    page.section("Keys");
    table(&mut page, &schema, &schema["$defs"]["Settings"]);
    words(&mut page, &schema, &schema["$defs"]["Settings"]);
    page.finish()
}

/// The page of everything else in a study file.
pub fn tables() -> String {
    let schema = schema();
    let mut page = Page::new(
        "Study file",
        "The tables of a study file and their keys. [Settings](settings.md) has the keys of `[workload]`.",
    );
    page.section("Top level");
    table(&mut page, &schema, &schema);
    let definitions = schema["$defs"].as_object().into_iter().flatten();
    for (name, definition) in
        definitions.filter(|(name, definition)| *name != "Settings" && definition["properties"].is_object())
    {
        page.section(name);
        page.text(text(definition));
        table(&mut page, &schema, definition);
    }
    page.finish()
}

fn text(definition: &Value) -> &str {
    definition["description"].as_str().unwrap_or_default()
}

fn table(page: &mut Page, schema: &Value, definition: &Value) {
    let properties = definition["properties"].as_object().into_iter().flatten();
    let rows: Vec<_> =
        properties.map(|(key, property)| [code(key), kind(schema, property), text(property).to_owned()]).collect();
    page.table(["key", "value", "meaning"], &rows);
}

/// The type of a value in a few words; a type with words of its own is a link to them.
fn kind(schema: &Value, property: &Value) -> String {
    if let Some(path) = property["$ref"].as_str() {
        let name = path.trim_start_matches("#/$defs/");
        let definition = &schema["$defs"][name];
        if let Some(example) = definition["examples"][0].as_str() {
            return format!("such as `{example}`");
        }
        let words = tokens(definition);
        if !words.is_empty() {
            return words.iter().map(|(word, _)| code(word)).collect::<Vec<_>>().join(", ");
        }
        return match name {
            "Settings" => "[settings](settings.md)".to_owned(),
            _ if definition["properties"].is_object() => format!("[{name}](#{})", name.to_lowercase()),
            "Connections" => "`per-request`, or a number".to_owned(),
            "PageName" => "a name, or a path".to_owned(),
            "Selector" => "levels by factor".to_owned(),
            _ => name.to_lowercase(),
        };
    }
    if let Some(choices) = property["anyOf"].as_array() {
        let kinds = choices.iter().filter(|choice| choice["type"] != "null").map(|choice| kind(schema, choice));
        return kinds.collect::<Vec<_>>().join(" or ");
    }
    let of = match &property["type"] {
        Value::Array(types) => types[0].as_str().unwrap_or_default(),
        other => other.as_str().unwrap_or_default(),
    };
    match of {
        "array" => format!("list: {}", kind(schema, &property["items"])),
        "object" => format!("table: {}", kind(schema, &property["additionalProperties"])),
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "`true`, `false`".to_owned(),
        other => other.to_owned(),
    }
}

/// The words of an enumeration with what they mean.
fn tokens(definition: &Value) -> Vec<(&str, &str)> {
    let choices = definition["oneOf"].as_array().into_iter().flatten();
    choices.filter_map(|choice| Some((choice["const"].as_str()?, choice["description"].as_str()?))).collect()
}

/// A section for each enumeration that the keys have.
fn words(page: &mut Page, schema: &Value, definition: &Value) {
    let all = definition.to_string();
    for (name, enumeration) in schema["$defs"].as_object().into_iter().flatten() {
        let words = tokens(enumeration);
        if words.is_empty() || !all.contains(&format!("#/$defs/{name}\"")) {
            continue;
        }
        page.section(name);
        page.text(text(enumeration));
        let rows: Vec<_> = words.into_iter().map(|(word, meaning)| [code(word), meaning.to_owned()]).collect();
        page.table(["value", "meaning"], &rows);
    }
}
