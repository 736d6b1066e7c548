//! The payload of the largest UDP datagram to send.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::units::Size;

/// The payload of a UDP datagram in bytes, written as a size: `"1452 B"`, `"16 KB"`. Studies of earlier versions write
/// the number of bytes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatagramPayload(pub u16);

impl fmt::Display for DatagramPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Size(self.0.into()).fmt(f)
    }
}

impl Serialize for DatagramPayload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DatagramPayload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = DatagramPayload;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size of at most 65527 bytes, such as `1452 B` or `16 KB`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<DatagramPayload, E> {
                self.visit_u64(text.parse::<Size>().map_err(E::custom)?.bytes())
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<DatagramPayload, E> {
                self.visit_u64(u64::try_from(bytes).unwrap_or(u64::MAX))
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<DatagramPayload, E> {
                let of = de::Unexpected::Unsigned(bytes);
                u16::try_from(bytes).map(DatagramPayload).map_err(|_| E::invalid_value(of, &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for DatagramPayload {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DatagramPayload".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let size = generator.subschema_for::<Size>();
        schemars::json_schema!({ "anyOf": [size, { "type": "integer" }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_a_size_or_in_older_studies_a_number_of_bytes() {
        let read = |text: &str| serde_json::from_str::<DatagramPayload>(text);
        for (text, bytes, shown) in
            [("\"16 KB\"", 16_000, "\"16 KB\""), ("1452", 1452, "\"1452 B\""), ("\"32 KiB\"", 32_768, "\"32 KiB\"")]
        {
            let payload = read(text).unwrap();
            assert_eq!((payload, serde_json::to_string(&payload).unwrap()), (DatagramPayload(bytes), shown.to_owned()));
        }
        for wrong in ["\"64 KiB\"", "70000", "-1", "\"large\"", "true"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("\"64 KiB\"").unwrap_err().to_string().contains("at most 65527 bytes"));
    }
}
