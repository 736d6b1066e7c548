//! `wirelab load` calls methods of gRPC: with encoded messages, and with JSON by the descriptors of a server of
//! grpc-go.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::servers::{Builtin, Place, serve};
use wirelab_testkit::{Running, Said, Skip, root, run, skip};

/// The message that holds the number 2, and the method that computes its square root.
const TWO: [u8; 9] = [9, 0, 0, 0, 0, 0, 0, 0, 0x40];
const METHOD: &str = "/wirelab.Heron/SquareRoot";

/// The test service of grpc-go.
const SERVICE: &str = "grpc.testing.TestService";

/// The server of `tests/grpc-server`, built once; `None`, with a skip, without Go.
#[track_caller]
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grpc-server");
        let mut build = Command::new("go");
        build.args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o"]).arg(&path).arg(".");
        build.current_dir(root().join("crates/cli/tests/grpc-server"));
        let status = build.status().ok()?;
        assert!(status.success(), "go build: {status}");
        Some((folder, path))
    });
    if built.is_none() {
        let remedy = "install Go 1.26 or later".to_owned();
        skip(Skip::MissingProgram { program: "go".to_owned(), remedy });
    }
    built.as_ref().map(|(_, path)| path.as_path())
}

/// A server of grpc-go, until drop, and the beginning of its methods' URLs.
#[track_caller]
fn go_server(more: &[&str]) -> Option<(Running, String)> {
    let mut server = Command::new(program()?);
    let server = server.arg("127.0.0.1:0").args(more).stdout(Stdio::piped()).spawn();
    let mut server = Running(server.unwrap());
    let mut address = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut address).unwrap();
    Some((server, format!("http://{}/{SERVICE}/", address.trim())))
}

/// Loads a method of the server with this message.
fn load(place: &Place, url: &str, method: &str, message: &str, more: &[&str]) -> Said {
    let url = format!("{url}{method}");
    run(place.folder(), &[&["load", "-p", "grpcc", "-n", "20", "--body", message, &url], more].concat())
}

#[test]
fn each_request_is_a_call_with_the_message_of_a_file() {
    for (protocol, scheme) in [(Protocol::Grpcc, "http"), (Protocol::Grpc, "https")] {
        let place = Place::new();
        fs::write(place.path("two.bin"), TWO).unwrap();
        let server = Builtin::start(&place, serve(protocol));
        let url = format!("{scheme}://localhost:{}{METHOD}", server.port);
        let args = ["load", &url, "-p", protocol.token(), "--body", "@two.bin", "--ca", "ca.pem", "-c", "2", "-m", "4"];
        let said = run(place.folder(), &[&args[..], &["-n", "400", "--json"]].concat()).with_status(0);
        let found: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!((&found["client"], &found["requests"]), (&json!("engine"), &json!(400)), "{found}");
        assert_eq!(found["errors"], json!({}), "{found}");
    }
}

#[test]
fn a_call_that_the_server_refuses_is_not_measured_and_other_clients_are_refused() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::Grpcc));
    let url = format!("http://localhost:{}/wirelab.Heron/CubeRoot", server.port);
    let load = |args: &[&str]| run(place.folder(), &[&["load", &url, "-p", "grpcc", "-n", "5"], args].concat());
    // UNIMPLEMENTED.
    load(&[]).with_status(1).complains(&["`grpc-status` 12 (UNIMPLEMENTED) instead of 0", "nothing was measured"]);
    load(&["--client", "builtin"]).with_status(2).complains(&["leave out --client builtin"]);
    load(&["--body", "2"]).with_status(2).complains(&["no reflection service", "--protoset FILE"]);
    load(&["--expect-status", "200"]).with_status(2).complains(&["`expect.status` is about HTTP"]);
    let no_method = format!("http://localhost:{}/bytes/10", server.port);
    run(place.folder(), &["load", &no_method, "-p", "grpcc", "-n", "5"]).complains(&["/package.Service/Method"]);
}

#[test]
fn a_message_is_json_by_the_types_that_the_server_reports() {
    let Some((_server, url)) = go_server(&[]) else { return };
    let place = Place::new();
    let right = ["--expect-json", "$.payload.body=AAAA"];
    let unary = load(&place, &url, "UnaryCall", r#"{"responseSize": 3}"#, &right).with_status(0);
    assert!(unary.out.contains("20 succeeded, 0 failed"), "{}", unary.out);
    let saved = [&right[..], &["--save-protoset", "types.pb"]].concat();
    load(&place, &url, "UnaryCall", r#"{"responseSize": 3}"#, &saved).with_status(0);
    let from_file = [&right[..], &["--protoset", "types.pb"]].concat();
    load(&place, &url, "UnaryCall", r#"{"responseSize": 3}"#, &from_file).with_status(0);
    let nowhere = ["--save-protoset", "missing/types.pb"];
    load(&place, &url, "UnaryCall", "{}", &nowhere).with_status(1).complains(&["--save-protoset missing/types.pb"]);
    // Fields with their default are there; sizes are those of messages.
    let default = ["--expect-json", "$.username=\"\"", "--expect-size", "7 B"];
    load(&place, &url, "UnaryCall", r#"{"responseSize": 3}"#, &default).with_status(0);
    let other = load(&place, &url, "UnaryCall", r#"{"responseSize": 4}"#, &right).with_status(1);
    other.complains(&["\"AAAAAA==\" at `$.payload.body` instead of \"AAAA\""]);
    fs::write(place.path("sizes.csv"), "size\n3\n3\n").unwrap();
    let with_data = ["--data", "sizes.csv", "--expect-size", "7 B"];
    load(&place, &url, "UnaryCall", r#"{"responseSize": {{size}}}"#, &with_data).with_status(0);
    fs::write(place.path("sizes.csv"), "size\n3\nthree\n").unwrap();
    let wrong = load(&place, &url, "UnaryCall", r#"{"responseSize": "{{size}}"}"#, &with_data).with_status(2);
    wrong.complains(&["row 2 of the data", "at `responseSize`", "int32"]);
    let refused = r#"{"responseStatus": {"code": 5, "message": "no such item"}}"#;
    load(&place, &url, "UnaryCall", refused, &[]).with_status(1).complains(&["5 (NOT_FOUND)", "`no such item`"]);
}

#[test]
fn streams_of_messages_are_sent_and_counted() {
    let Some((_server, url)) = go_server(&[]) else { return };
    let place = Place::new();
    let three = r#"{"responseParameters": [{"size": 1}, {"size": 2}, {"size": 3}]}"#;
    let found = |said: Said| -> Value { serde_json::from_str(&said.with_status(0).out).unwrap() };
    let of_server = found(load(&place, &url, "StreamingOutputCall", three, &["--json", "-c", "2", "-m", "2"]));
    assert_eq!((&of_server["requests"], &of_server["errors"]), (&json!(20), &json!({})), "{of_server}");
    assert_eq!(of_server["configured"]["messages_per_response"], 3, "{of_server}");
    let last = ["--expect-json", "$[2].payload.body=AAAA", "--expect-messages", "3"];
    load(&place, &url, "StreamingOutputCall", three, &last).with_status(0);
    load(&place, &url, "StreamingOutputCall", three, &["--expect-messages", "4"])
        .with_status(1)
        .complains(&["the answer has 3 messages instead of 4"]);
    let two = r#"[{"payload": {"body": "AAAA"}}, {"payload": {"body": "AAAAAA=="}}]"#;
    load(&place, &url, "StreamingInputCall", two, &["--expect-json", "$.aggregatedPayloadSize=7"]).with_status(0);
    load(&place, &url, "StreamingInputCall", "[]", &["--expect-json", "$.aggregatedPayloadSize=0"]).with_status(0);
    let both = format!("[{three}, {three}]");
    let of_both = found(load(&place, &url, "FullDuplexCall", &both, &["--json", "--expect-json", "$[5].payload"]));
    assert_eq!(of_both["configured"]["messages_per_response"], 6, "{of_both}");
    load(&place, &url, "FullDuplexCall", "", &[]).with_status(1).complains(&["answers with 0 messages", "--protoset"]);
    load(&place, &url, "StreamingOutputCall", three, &["--expect-messages", "any"]).with_status(0);
    load(&place, &url, "StreamingInputCall", "{}", &[]).with_status(2).complains(&["takes a stream", "as a list"]);
    load(&place, &url, "UnaryCall", "[{}]", &[]).with_status(2).complains(&["takes one message"]);
    load(&place, &url, "UnaryCall", "{}", &["--expect-messages", "1"]).with_status(2).complains(&["one message"]);
}

#[test]
fn types_come_from_a_descriptor_set_where_the_server_reports_none() {
    let Some((_server, url)) = go_server(&["plain"]) else { return };
    let place = Place::new();
    let described = Command::new(program().unwrap()).arg("describe").output().unwrap();
    fs::write(place.path("test.pb"), &described.stdout).unwrap();
    let set = ["--protoset", "test.pb"];
    let call = |method: &str, message: &str| load(&place, &url, method, message, &set);
    call("UnaryCall", r#"{"responseSize": 3}"#).with_status(0);
    call("FullDuplexCall", "[]").with_status(0);
    load(&place, &url, "UnaryCall", "{}", &[]).with_status(2).complains(&["no reflection service", "--protoset"]);
    call("UnaryCal", "{}").with_status(2).complains(&["no method `UnaryCal`", "did you mean `UnaryCall`?"]);
    let wrong = call("UnaryCall", r#"{"responseSize": 3, "payload": {"bdy": ""}}"#).with_status(2);
    wrong.complains(&["`grpc.testing.SimpleRequest`", "at `payload`", "bdy", "type, body"]);
    call("UnaryCall", r#"{"responseSize": }"#).with_status(2).complains(&["no JSON", "line 1 column 18"]);
    let elsewhere = url.replace("TestService", "TestServis");
    load(&place, &elsewhere, "UnaryCall", "{}", &set)
        .with_status(2)
        .complains(&["did you mean `grpc.testing.TestService`"]);
    fs::write(place.path("test.pb"), "syntax = \"proto3\";").unwrap();
    call("UnaryCall", "{}").with_status(2).complains(&["`test.pb`: no descriptor set", "protoc --include_imports"]);
    fs::remove_file(place.path("test.pb")).unwrap();
    call("UnaryCall", "{}").with_status(2).complains(&["cannot read `test.pb`"]);
    let get = run(place.folder(), &["load", "-n", "1", "--protoset", "test.pb", &url]).with_status(2);
    get.complains(&["`protoset` is about gRPC"]);
}

#[test]
fn services_and_methods_are_those_that_the_server_reports_in_any_version() {
    let Some((_server, url)) = go_server(&["v1alpha"]) else { return };
    let place = Place::new();
    load(&place, &url, "UnaryCall", "{}", &[]).with_status(0);
    let elsewhere = url.replace("TestService", "TestServis");
    let words = ["no service `grpc.testing.TestServis`", "did you mean `grpc.testing.TestService`?"];
    load(&place, &elsewhere, "UnaryCall", "{}", &[]).with_status(2).complains(&words);
    load(&place, &url, "Unary", "{}", &[]).with_status(2).complains(&["no method `Unary`", "UnaryCall"]);
}

#[test]
fn a_study_makes_the_calls_of_its_requests() {
    let Some(program) = program() else { return };
    let place = Place::new();
    let described = Command::new(program).arg("describe").output().unwrap();
    fs::write(place.path("test.pb"), &described.stdout).unwrap();
    let study = STUDY.replace("PROGRAM", &program.display().to_string());
    fs::write(place.path("calls.toml"), &study).unwrap();
    run(place.folder(), &["run", "calls.toml", "-q"]).with_status(0);
    let full = run(place.folder(), &["report", "--full"]).with_status(0).out;
    for words in ["stream: 4 succeeded, 0 failed", "one: 4 succeeded, 0 failed"] {
        assert!(full.contains(words), "{full}");
    }
    let other = Place::new();
    fs::write(other.path("calls.toml"), &study).unwrap();
    run(other.folder(), &["run", "calls.toml", "-q"]).with_status(2).complains(&["cannot read `test.pb`"]);
    assert!(!other.path("wirelab-runs").exists());
}

const STUDY: &str = r#"
name = "calls"
title = "Calls"
question = "Which?"
[[request]]
name = "stream"
path = "/grpc.testing.TestService/StreamingOutputCall"
protoset = "test.pb"
body = '{"responseParameters": [{"size": 1}, {"size": 2}]}'
expect = { messages = 2, json = { "$[1].payload.body" = "AAA=" } }
[[request]]
name = "one"
path = "/grpc.testing.TestService/UnaryCall"
protoset = "test.pb"
body = '{"responseSize": 3}'
[workload]
requests = 8
server_command = ["PROGRAM", "127.0.0.1:{port}"]
[factors]
protocol = ["grpcc"]
[compare]
factor = "protocol"
baseline = "grpcc"
[blocks]
min = 1
max = 1
"#;
