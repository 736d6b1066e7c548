//! A service of gRPC for tests, as its descriptors.

use prost_reflect::prost::Message;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto,
};

/// `service shop.Cart` in the file `shop.proto`, which imports these files:
///
/// ```text
/// message Order { int32 count = 1; repeated Item items = 2; State state = 3; }
/// message Item  { string name = 1; int64 sku = 2; }
/// enum State    { OPEN = 0; PAID = 1; }
/// service Cart  { rpc Put(Order) returns (Item); rpc Add(stream Item) returns (stream Order); }
/// ```
pub(super) fn shop(imports: &[&str]) -> Vec<u8> {
    let order = DescriptorProto {
        name: Some("Order".to_owned()),
        field: vec![
            field("count", 1, Type::Int32, None),
            FieldDescriptorProto {
                label: Some(Label::Repeated.into()),
                ..field("items", 2, Type::Message, Some("Item"))
            },
            field("state", 3, Type::Enum, Some("State")),
        ],
        ..DescriptorProto::default()
    };
    let item = DescriptorProto {
        name: Some("Item".to_owned()),
        field: vec![field("name", 1, Type::String, None), field("sku", 2, Type::Int64, None)],
        ..DescriptorProto::default()
    };
    let value = |(number, name): (i32, &str)| EnumValueDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        options: None,
    };
    let state = EnumDescriptorProto {
        name: Some("State".to_owned()),
        value: [(0, "OPEN"), (1, "PAID")].map(value).into(),
        ..EnumDescriptorProto::default()
    };
    let cart = ServiceDescriptorProto {
        name: Some("Cart".to_owned()),
        method: vec![method("Put", "Order", "Item", false), method("Add", "Item", "Order", true)],
        options: None,
    };
    let file = FileDescriptorProto {
        name: Some("shop.proto".to_owned()),
        package: Some("shop".to_owned()),
        dependency: imports.iter().map(|&import| import.to_owned()).collect(),
        message_type: vec![order, item],
        enum_type: vec![state],
        service: vec![cart],
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}

fn field(name: &str, number: i32, kind: Type, type_name: Option<&str>) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        type_name: type_name.map(|name| format!(".shop.{name}")),
        ..FieldDescriptorProto::default()
    }
}

fn method(name: &str, input: &str, output: &str, streams: bool) -> MethodDescriptorProto {
    MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(format!(".shop.{input}")),
        output_type: Some(format!(".shop.{output}")),
        client_streaming: Some(streams),
        server_streaming: Some(streams),
        options: None,
    }
}
