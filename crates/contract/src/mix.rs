//! Requests that a user wrote: several with weights, each with a body, and with what its response must be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::Request;

/// One of the requests of a client, with its share of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixedRequest {
    /// The name in reports and messages.
    pub name: String,
    /// Share of the requests: its weight divided by the sum of all weights. The client sends the requests in rounds.
    /// Each round has every request as often as its weight says, in a random order by `seed`.
    pub weight: u32,
    /// The request, once for each row of its data, at least one. The client takes them in turn.
    pub variants: Vec<Request>,
    /// The expected response.
    #[serde(default, skip_serializing_if = "Expectation::is_empty")]
    pub expect: Expectation,
    /// The method of gRPC that the request calls. Absent: the request is none of gRPC, or calls a unary method whose
    /// messages are bytes without a known meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
}

/// A method of gRPC, as its service describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// Whether a response is a stream of any number of messages; otherwise it is one message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams_response: bool,
    /// The full name of the type of these messages.
    pub response_type: String,
    /// The descriptors of that type and of all that it imports: a `FileDescriptorSet` in base64.
    pub descriptors: String,
}

/// The bytes of a request body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// Text, sent as UTF-8.
    Text(String),
    /// Bytes in base64 (RFC 4648, with padding).
    Base64(String),
    /// The messages of a call of gRPC, without their prefixes, each in base64.
    Messages(Vec<String>),
}

/// Demands on a response. The client checks every response, after it has taken the time of its last byte. An absent
/// field is not checked. Without `status`, a status below 300 is right, and 304.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes of response body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// SHA-256 of the response body, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// A text in the response body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Paths into the response body, which is JSON, with the value of each: `{ "$.items[0].id" = 7 }` (RFC 9535).
    /// `null` as the value only demands that the path leads to a value. With gRPC, the body is the response's message
    /// in JSON; for a method that streams responses, a list of messages.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub json: serde_json::Map<String, serde_json::Value>,
    /// Number of messages, for a method of gRPC that streams responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

impl Expectation {
    /// Whether nothing is expected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the body of the response is needed for the check, not only its size.
    #[must_use]
    pub fn reads_body(&self) -> bool {
        self.sha256.is_some() || self.contains.is_some() || !self.json.is_empty()
    }
}
