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

/// Whether a body is written as JSON. The encoding of a message never begins like an object or a list: these bytes
/// would be groups, which no current message has.
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

#[cfg(test)]
mod tests {
    use super::super::fixture::shop;
    use super::super::schema::Schema;
    use super::*;

    fn encoded(method: &str, json: &str) -> Result<(Vec<Vec<u8>>, u64), MessageError> {
        let schema = Schema::read(&shop(&[])).unwrap();
        let (content, size) = encode(&schema.method(&format!("/shop.Cart/{method}")).unwrap(), json)?;
        let Content::Messages(messages) = content else { panic!("{content:?}") };
        Ok((messages.iter().map(|message| STANDARD.decode(message).unwrap()).collect(), size))
    }

    #[test]
    fn json_becomes_the_bytes_of_the_encoding() {
        let (messages, size) =
            encoded("Put", r#"{"count": 7, "items": [{"name": "a", "sku": "9"}], "state": "PAID"}"#).unwrap();
        // Fields 1 (varint), 2 (length-delimited, with its own fields 1 and 2) and 3 (varint).
        assert_eq!(messages, [[0x08, 7, 0x12, 5, 0x0a, 1, b'a', 0x10, 9, 0x18, 1]]);
        assert_eq!(size, 11);
        assert_eq!(encoded("Put", "{}").unwrap(), (vec![vec![]], 0));
    }

    #[test]
    fn a_method_that_takes_a_stream_has_a_list_of_messages() {
        let (messages, size) = encoded("Add", r#"[{"sku": 1}, {}, {"sku": 2}]"#).unwrap();
        assert_eq!((messages, size), (vec![vec![0x10, 1], vec![], vec![0x10, 2]], 4));
        assert_eq!(encoded("Add", "[]").unwrap(), (vec![], 0));
    }

    #[test]
    fn json_that_does_not_fit_is_refused_with_the_path_and_the_expected_type() {
        for (method, json, words) in [
            ("Put", r#"{"count": "many"}"#, &["`shop.Order`", "at `count`", "expected a value of the type int32"][..]),
            ("Put", r#"{"count": 3000000000}"#, &["at `count`", "int32"]),
            ("Put", r#"{"items": [{}, {"sku": true}]}"#, &["at `items[1].sku`", "int64"]),
            (
                "Put",
                r#"{"items": [{"nme": ""}]}"#,
                &["at `items[0]`", "'nme'", "`shop.Item`, whose fields are name, sku"],
            ),
            ("Put", r#"{"state": "LOST"}"#, &["at `state`", "one of OPEN, PAID"]),
            ("Put", r#"{"cout": 1}"#, &["'cout'", "whose fields are count, items, state"]),
            ("Put", "7", &["`shop.Order`", "whose fields are"]),
            ("Put", r#"{"count": 1"#, &["no JSON", "line 1 column 11"]),
            ("Put", "[{}]", &["`shop.Cart.Put` takes one message"]),
            ("Add", "{}", &["`shop.Cart.Add` takes a stream", "as a list"]),
            ("Add", r#"[{}, {"sku": "x"}]"#, &["at `[1].sku`", "int64"]),
        ] {
            let why = encoded(method, json).unwrap_err().to_string();
            assert!(words.iter().all(|word| why.contains(word)), "{json}: {why}");
        }
    }

    #[test]
    fn encoded_messages_are_not_taken_for_json() {
        for json in ["{}", " [1]", "2", "\"a\"", r#"{"sku": {{sku}}}"#] {
            assert!(is_json(json), "{json}");
        }
        for encoded in ["", "\u{8}\u{7}", "\"\u{1}a", "\u{12}\u{5}name"] {
            assert!(!is_json(encoded), "{encoded:?}");
        }
    }
}
