//! The messages of gRPC responses as JSON, by the descriptors of their type. Only the clients of wirelab have them;
//! other programs do without the library.

use serde_json::Value;
use wirelab_contract::mix::Method;

use crate::refusal::Refusal;

/// Reads the messages of a method's responses.
#[derive(Debug)]
pub(super) struct Reader {
    is_stream: bool,
    #[cfg(feature = "load")]
    descriptor: prost_reflect::MessageDescriptor,
}

#[cfg(feature = "load")]
impl Reader {
    /// Reads the descriptors of a method.
    pub fn of(method: &Method) -> Result<Self, Refusal> {
        let wrong = |why: String| Refusal::failed(format!("the descriptors of `{}`: {why}", method.response_type));
        let bytes = crate::payload::decoded(&method.descriptors)?;
        let pool = prost_reflect::DescriptorPool::decode(bytes.as_slice()).map_err(|error| wrong(error.to_string()))?;
        let descriptor = pool
            .get_message_by_name(&method.response_type)
            .ok_or_else(|| wrong("they do not contain this type".to_owned()))?;
        Ok(Self { is_stream: method.streams_response, descriptor })
    }

    /// The response as JSON: its message, or the list of its messages if the method streams them. `None` if a message
    /// is not of the type.
    pub fn json(&self, messages: &[&[u8]]) -> Option<Value> {
        let mut values = messages.iter().map(|message| self.message(message));
        if self.is_stream { values.collect() } else { values.next()? }
    }

    /// A message in the JSON of protocol buffers, with the fields that have their default.
    fn message(&self, message: &[u8]) -> Option<Value> {
        let message = prost_reflect::DynamicMessage::decode(self.descriptor.clone(), message).ok()?;
        let options = prost_reflect::SerializeOptions::new().skip_default_fields(false);
        message.serialize_with_options(serde_json::value::Serializer, &options).ok()
    }
}

#[cfg(not(feature = "load"))]
impl Reader {
    /// Refuses every method.
    pub fn of(method: &Method) -> Result<Self, Refusal> {
        let name = &method.response_type;
        Err(Refusal::unsupported(format!("JSON of the type `{name}`: this endpoint reads no messages")))
    }

    /// Reads nothing: no reader is ever created.
    pub fn json(&self, _: &[&[u8]]) -> Option<Value> {
        let _ = self.is_stream;
        None
    }
}

#[cfg(all(test, feature = "load"))]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use prost_reflect::prost::Message;
    use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
    use prost_reflect::prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};
    use serde_json::json;

    use super::*;

    /// `message Item { string name = 1; int64 item_sku = 2; }`, as responses of a method.
    fn method(streams_response: bool) -> Method {
        let field = |name: &str, number, kind: Type| FieldDescriptorProto {
            name: Some(name.to_owned()),
            number: Some(number),
            label: Some(Label::Optional.into()),
            r#type: Some(kind.into()),
            ..FieldDescriptorProto::default()
        };
        let item = DescriptorProto {
            name: Some("Item".to_owned()),
            field: vec![field("name", 1, Type::String), field("item_sku", 2, Type::Int64)],
            ..DescriptorProto::default()
        };
        let file = FileDescriptorProto {
            name: Some("item.proto".to_owned()),
            message_type: vec![item],
            syntax: Some("proto3".to_owned()),
            ..FileDescriptorProto::default()
        };
        let descriptors = STANDARD.encode(FileDescriptorSet { file: vec![file] }.encode_to_vec());
        Method { streams_response, response_type: "Item".to_owned(), descriptors }
    }

    #[test]
    fn a_message_has_all_its_fields_and_a_stream_is_a_list() {
        let one = Reader::of(&method(false)).unwrap();
        assert_eq!(one.json(&[&[0x0a, 1, b'a']]), Some(json!({"name": "a", "itemSku": "0"})));
        assert_eq!(one.json(&[&[0x0a, 9, b'a']]), None);
        assert_eq!(one.json(&[]), None);
        let stream = Reader::of(&method(true)).unwrap();
        let two = json!([{"name": "", "itemSku": "7"}, {"name": "", "itemSku": "0"}]);
        assert_eq!(stream.json(&[&[0x10, 7], &[]]), Some(two));
        assert_eq!(stream.json(&[]), Some(json!([])));
    }

    #[test]
    fn descriptors_without_the_type_are_refused() {
        let unknown = Method { response_type: "Order".to_owned(), ..method(false) };
        let damaged = Method { descriptors: "AAAA".to_owned(), ..method(false) };
        for wrong in [unknown, damaged] {
            assert!(Reader::of(&wrong).is_err(), "{wrong:?}");
        }
    }
}
