//! Requests of users: tables of requests, texts with placeholders, data files, descriptors of gRPC.

use std::io;
use std::path::Path;

use wirelab_model::request::WrittenRequest;
use wirelab_plan::own::{self, Sources};

use crate::Target;
use crate::bytes::{part, text, texts, with_part};

pub const TARGETS: &[Target] = &[
    Target { name: "curl", seeds: commands, read: curl },
    Target { name: "requests", seeds: tables, read: table },
    Target { name: "template", seeds: templates, read: template },
    Target { name: "data", seeds: data_files, read: data },
    Target { name: "schema", seeds: schemas, read: schema },
];

/// Files that requests name: all have this content. No variable is set but one.
struct Files<'a>(&'a [u8]);

impl Sources for Files<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "A").then(|| "a\"b".to_owned())
    }

    fn file(&self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(self.0.to_vec())
    }
}

fn render(requests: &[WrittenRequest], is_grpc: bool, files: &[u8]) {
    if own::check(requests).is_ok() {
        let _ = own::render(requests, is_grpc, &Files(files));
    }
}

fn commands() -> Vec<Vec<u8>> {
    texts(&[
        "curl 'https://shop.test/api/orders?x=1' \\\n  -H 'Accept: */*' -b 'id=7; theme=dark' \\\n  \
         --data-raw '{\"a\":\"it'\\''s\"}' -H 'content-type: application/json' --compressed",
        "curl -sXPUT -d a=1 --data b=2 -u me:pw a.test/x",
        "$ curl -G --json '{}' --url=https://a.test/?p=0 -o x -I",
    ])
}

fn curl(input: &[u8]) {
    if let Ok(found) = own::curl::parse(&text(input)) {
        let _ = own::check(&[found.request]);
    }
}

fn tables() -> Vec<Vec<u8>> {
    texts(&["[[request]]\nname = \"orders\"\nweight = 3\nmethod = \"PUT\"\npath = \"/orders/{{id}}?x={{env.A}}\"\n\
             data = \"rows.csv\"\nbody = '{\"user\": \"{{name}}\"}'\nheaders = { accept = [\"a/b\", \"c/d\"] }\n\
             cookies = { id = \"7\" }\nexpect = { status = 201, json = { \"$.items[0].id\" = 7 }, contains = \"x\" }\n\
             [[request]]\nbody_size = \"1 KiB\"\n[[request]]\nbody_file = \"body.json\"\n"])
}

#[derive(serde::Deserialize)]
struct Written {
    request: Vec<WrittenRequest>,
}

fn table(input: &[u8]) {
    if let Ok(Written { request }) = toml::from_str(&text(input)) {
        for is_grpc in [false, true] {
            render(&request, is_grpc, b"id,name\n1,\"a \"\"b\"\"\"\n2,c\n");
        }
    }
}

fn templates() -> Vec<Vec<u8>> {
    let each =
        [("/a/{{id}}?b={{env.A}}", "{\"a\": \"{{id}}\", \"b\": {{id}}, \"c\": \"\\{{id}}\"}"), ("/", "{{file.x}}")];
    each.map(|(path, body)| with_part(path.as_bytes(), body.as_bytes())).to_vec()
}

fn template(input: &[u8]) {
    let Some((path, body)) = part(input) else { return };
    let mut request = WrittenRequest {
        path: Some(text(path)),
        body: Some(text(body)),
        data: Some("rows.csv".into()),
        ..WrittenRequest::default()
    };
    request.add_field("x-a", text(body));
    render(&[request], false, b"id\n\"1\"\"\"\n");
}

fn data_files() -> Vec<Vec<u8>> {
    texts(&["\u{feff}user, id\n\"a, b\",1\nc,2\n", "{\"user\":\"a\",\"id\":1}\n\n{\"id\":null,\"user\":[\"c\"]}\n"])
}

fn data(input: &[u8]) {
    let request = WrittenRequest {
        path: Some("/{{user}}/{{id}}".to_owned()),
        body: Some("{\"user\": \"{{user}}\"}".to_owned()),
        data: Some("rows".into()),
        ..WrittenRequest::default()
    };
    render(&[request], false, input);
}

/// The descriptors of `shop.Orders` with the unary method `Get`, and of `shop.Order` with a string, a number and
/// itself.
pub fn descriptors() -> Vec<u8> {
    use prost_reflect::prost::Message;
    use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
    use prost_reflect::prost_types::{
        DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto,
        ServiceDescriptorProto,
    };
    let field = |name: &str, number, kind: Type, label: Label| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label.into()),
        r#type: Some(kind.into()),
        type_name: (kind == Type::Message).then(|| ".shop.Order".to_owned()),
        ..FieldDescriptorProto::default()
    };
    let order = DescriptorProto {
        name: Some("Order".to_owned()),
        field: vec![
            field("name", 1, Type::String, Label::Optional),
            field("item_sku", 2, Type::Int64, Label::Repeated),
            field("parts", 3, Type::Message, Label::Repeated),
            field("price", 4, Type::Double, Label::Optional),
            field("note", 5, Type::Bytes, Label::Optional),
        ],
        ..DescriptorProto::default()
    };
    let method = MethodDescriptorProto {
        name: Some("Get".to_owned()),
        input_type: Some(".shop.Order".to_owned()),
        output_type: Some(".shop.Order".to_owned()),
        ..MethodDescriptorProto::default()
    };
    let service = ServiceDescriptorProto { name: Some("Orders".to_owned()), method: vec![method], options: None };
    let file = FileDescriptorProto {
        name: Some("shop.proto".to_owned()),
        package: Some("shop".to_owned()),
        message_type: vec![order],
        service: vec![service],
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}

fn schemas() -> Vec<Vec<u8>> {
    let json = b"{\"name\": \"a\", \"itemSku\": [7, \"8\"], \"parts\": [{\"price\": 1.5}], \"note\": \"AAE=\"}";
    vec![with_part(json, &descriptors())]
}

fn schema(input: &[u8]) {
    let Some((json, descriptors)) = part(input) else { return };
    let request = WrittenRequest {
        path: Some("/shop.Orders/Get".to_owned()),
        body: Some(text(json)),
        protoset: Some("shop.protoset".into()),
        ..WrittenRequest::default()
    };
    render(&[request], true, descriptors);
}
