//! Requests as users write them: in tables of a study or a file, or by options of a command.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mix::Expectation;
use crate::units::Size;

/// A request. In `path`, `headers`, `cookies`, `body` and the text of `body_file`, `{{NAME}}` stands for a value of
/// `data`, `{{env.NAME}}` for an environment variable, and `{{file.PATH}}` for the text of a file. wirelab never writes
/// these two into a run folder. `\{{` stands for two braces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenRequest {
    /// The name in reports. Default: method and path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Share of the requests: its weight divided by the sum of all weights. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// The HTTP method. Default: `POST` with a body, otherwise `GET`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Path and query. Values of placeholders are percent-encoded. Default: those of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Header fields, by name. Default: `user-agent`, and `content-type: application/json` if the body is JSON.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<String, FieldValues>,
    /// Cookies, by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub cookies: IndexMap<String, String>,
    /// The text of the body. Within strings of JSON, values of placeholders are escaped. With gRPC, the message as
    /// JSON; for a method that takes a stream, a list of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The file with the body. With gRPC, the message as JSON, or encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_file: Option<PathBuf>,
    /// The size of a generated body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_size: Option<Size>,
    /// With gRPC, the descriptors of the service, as `protoc --include_imports --descriptor_set_out=FILE` writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protoset: Option<PathBuf>,
    /// A file with values: CSV with names in the first row, or JSON lines. Requests take its rows in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// The expected response. Default: a status below 300, or 304.
    #[serde(skip_serializing_if = "Expectation::is_empty")]
    pub expect: Expectation,
}

/// The values of a header field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FieldValues {
    /// One field.
    One(String),
    /// Several fields of the same name.
    Several(Vec<String>),
}

impl FieldValues {
    /// The values in order.
    #[must_use]
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Several(values) => values,
        }
    }

    /// Adds a value.
    pub fn push(&mut self, value: String) {
        let mut values = self.all().to_vec();
        values.push(value);
        *self = Self::Several(values);
    }
}

impl WrittenRequest {
    /// The method, with its default.
    #[must_use]
    pub fn method(&self) -> &str {
        let has_body = self.body.is_some() || self.body_file.is_some() || self.body_size.is_some();
        self.method.as_deref().unwrap_or(if has_body { "POST" } else { "GET" })
    }

    /// Path and query, with their default.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.as_deref().unwrap_or("/")
    }

    /// The name, with its default.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{} {}", self.method(), self.path()))
    }

    /// The weight, with its default.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.weight.unwrap_or(1)
    }

    /// The values of a header field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&FieldValues> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, values)| values)
    }

    /// Adds cookies of the form `NAME=VALUE; NAME=VALUE`. Returns whether all have this form.
    #[must_use]
    pub fn add_cookies(&mut self, cookies: &str) -> bool {
        cookies.split(';').map(str::trim).filter(|cookie| !cookie.is_empty()).all(|cookie| {
            cookie.split_once('=').is_some_and(|(name, value)| {
                self.cookies.insert(name.trim().to_owned(), value.trim().to_owned());
                true
            })
        })
    }

    /// Adds a header field.
    pub fn add_field(&mut self, name: &str, value: String) {
        match self.headers.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, values)) => values.push(value),
            None => {
                self.headers.insert(name.to_owned(), FieldValues::One(value));
            }
        }
    }
}
