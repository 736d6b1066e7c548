//! `wirelab load` calls methods of gRPC.

use std::fs;

use serde_json::{Value, json};
use wirelab_model::protocol::Protocol;
use wirelab_testkit::run;
use wirelab_testkit::servers::{Builtin, Place, serve};

/// The message that holds the number 2, and the method that computes its square root.
const TWO: [u8; 9] = [9, 0, 0, 0, 0, 0, 0, 0, 0x40];
const METHOD: &str = "/wirelab.Heron/SquareRoot";

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
fn a_call_that_the_server_refuses_fails_with_its_status_and_other_clients_are_refused() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::Grpcc));
    let url = format!("http://localhost:{}/wirelab.Heron/CubeRoot", server.port);
    let load = |args: &[&str]| run(place.folder(), &[&["load", &url, "-p", "grpcc", "-n", "5"], args].concat());
    // UNIMPLEMENTED.
    load(&[]).with_status(1).complains(&["`grpc-status` 12 (UNIMPLEMENTED) instead of 0"]);
    load(&["--client", "builtin"]).with_status(2).complains(&["leave out --client builtin"]);
    let no_method = format!("http://localhost:{}/bytes/10", server.port);
    run(place.folder(), &["load", &no_method, "-p", "grpcc", "-n", "5"]).complains(&["/package.Service/Method"]);
}
