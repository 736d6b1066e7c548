//! Messages of gRPC from JSON, in the mapping of protocol buffers.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use serde::de::DeserializeSeed;
use serde_json::Value;
use serde_path_to_error::{Deserializer, Path, Segment, Track};
use wirelab_model::mix::{Content, Method};

use super::schema::listed;

/// Why JSON is no message of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageError {
    /// The text is no JSON.
    NoJson {
        /// What is wrong, with line and column.
        why: String,
    },
    /// A value does not fit the type of the message.
    Value {
        /// The full name of the type.
        message: String,
        /// The path to the value; empty: the whole message.
        path: String,
        /// What is wrong there.
        why: String,
        /// What the type has there.
        expected: String,
    },
    /// The method takes a stream, but the JSON is no list.
    NoList {
        /// The full name of the method.
        method: String,
    },
    /// The method takes one message, but the JSON is a list.
    List {
        /// The full name of the method.
        method: String,
    },
}

/// Whether a body is written as JSON. The encoding of a message never begins like an object or a list: these bytes would
/// be groups, which no current message has.
pub(super) fn is_json(body: &str) -> bool {
    body.trim_start().starts_with(['{', '[']) || serde_json::from_str::<Value>(body).is_ok()
}

/// The types of messages whose JSON may be a list.
const LISTS: [&str; 2] = ["google.protobuf.ListValue", "google.protobuf.Value"];

/// Encodes the messages of a call. Returns their size in bytes, too.
pub(super) fn encode(method: &MethodDescriptor, json: &str) -> Result<(Content, u64), MessageError> {
    let value: Value = serde_json::from_str(json).map_err(|error| MessageError::NoJson { why: error.to_string() })?;
    let input = method.input();
    let name = || method.full_name().to_owned();
    let encoded = match (method.is_client_streaming(), &value) {
        (true, Value::Array(values)) => {
            let place = |number: usize| format!("[{number}]");
            let each = values.iter().enumerate().map(|(number, value)| one(&input, value, &place(number)));
            each.collect::<Result<Vec<_>, _>>()?
        }
        (true, _) => return Err(MessageError::NoList { method: name() }),
        (false, Value::Array(_)) if !LISTS.contains(&input.full_name()) => {
            return Err(MessageError::List { method: name() });
        }
        (false, value) => vec![one(&input, value, "")?],
    };
    let size = encoded.iter().map(|message| message.len() as u64).sum();
    Ok((Content::Messages(encoded.iter().map(|message| STANDARD.encode(message)).collect()), size))
}

/// What clients need to know of a method.
pub(super) fn described(method: &MethodDescriptor) -> Method {
    let output = method.output();
    Method {
        streams_response: method.is_server_streaming(),
        response_type: output.full_name().to_owned(),
        descriptors: STANDARD.encode(method.parent_pool().encode_to_vec()),
    }
}

fn one(descriptor: &MessageDescriptor, value: &Value, place: &str) -> Result<Vec<u8>, MessageError> {
    let mut track = Track::new();
    let message: Result<DynamicMessage, _> = descriptor.clone().deserialize(Deserializer::new(value, &mut track));
    message.map(|message| message.encode_to_vec()).map_err(|error| {
        let within = track.path();
        let path = match (place, within.to_string().as_str()) {
            (place, ".") => place.to_owned(),
            ("", within) => within.to_owned(),
            (place, within) => format!("{place}.{within}"),
        };
        let (message, expected) = (descriptor.full_name().to_owned(), expected(descriptor, &within));
        MessageError::Value { message, path, why: error.to_string(), expected }
    })
}

/// What a message has at a path: the type of the field, or the fields of the message.
fn expected(descriptor: &MessageDescriptor, path: &Path) -> String {
    let mut message = descriptor.clone();
    let mut found: Option<FieldDescriptor> = None;
    for segment in path {
        let Segment::Map { key } = segment else { continue };
        found = match &found {
            // The key of a map, which is a message of a key and a value.
            Some(map) if map.is_map() => map.kind().as_message().map(MessageDescriptor::map_entry_value_field),
            _ => message.get_field_by_json_name(key).or_else(|| message.get_field_by_name(key)),
        };
        match found.as_ref().map(FieldDescriptor::kind) {
            Some(Kind::Message(inner)) => message = inner,
            Some(_) => {}
            None => break,
        }
    }
    match found.as_ref().map(FieldDescriptor::kind) {
        Some(Kind::Enum(values)) => {
            let names: Vec<_> = values.values().map(|value| value.name().to_owned()).collect();
            format!("one of {}", listed(&names))
        }
        Some(kind) if kind.as_message().is_none() => format!("a value of the type {kind:?}"),
        _ => {
            let names: Vec<_> = message.fields().map(|field| field.json_name().to_owned()).collect();
            format!("`{}`, whose fields are {}", message.full_name(), listed(&names))
        }
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoJson { why } => write!(f, "the message is no JSON: {why}"),
            Self::Value { message, path, why, expected } => {
                let at = if path.is_empty() { String::new() } else { format!("at `{path}`: ") };
                write!(f, "the JSON is no message of the type `{message}`: {at}{why}; expected {expected}")
            }
            Self::NoList { method } => {
                write!(f, "`{method}` takes a stream of messages; write them as a list, such as `[{{}}, {{}}]`")
            }
            Self::List { method } => write!(f, "`{method}` takes one message, but the JSON is a list of several"),
        }
    }
}

impl std::error::Error for MessageError {}
