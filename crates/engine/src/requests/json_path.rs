//! Paths into JSON documents (RFC 9535). Only the clients of wirelab have them; other programs do without the library.

use serde_json::Value;

use crate::refusal::Refusal;

/// A path, prepared for repeated use.
#[derive(Debug)]
pub(super) struct JsonPath {
    text: String,
    #[cfg(feature = "load")]
    query: jsonpath_rust::parser::model::JpQuery,
}

#[cfg(feature = "load")]
impl JsonPath {
    /// Reads a path.
    pub fn of(text: &str) -> Result<Self, Refusal> {
        let query = jsonpath_rust::parser::parse_json_path(text)
            .map_err(|error| Refusal::unsupported(format!("`{text}` is no JSON path: {error}")))?;
        Ok(Self { text: text.to_owned(), query })
    }

    /// The values that it leads to.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let found = jsonpath_rust::query::js_path_process(&self.query, value).unwrap_or_default();
        found.into_iter().map(jsonpath_rust::query::QueryRef::val).collect()
    }
}

#[cfg(not(feature = "load"))]
impl JsonPath {
    /// Refuses every path.
    pub fn of(text: &str) -> Result<Self, Refusal> {
        Err(Refusal::unsupported(format!("the JSON path `{text}`: this endpoint reads no JSON")))
    }

    /// Finds nothing: no path is ever created.
    pub fn find<'a>(&self, _: &'a Value) -> Vec<&'a Value> {
        Vec::new()
    }
}

impl JsonPath {
    /// The path as written.
    pub fn text(&self) -> &str {
        &self.text
    }
}
