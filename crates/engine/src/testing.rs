//! Specs for the tests of machines.

use wirelab_contract::spec::ClientSpec;

/// The spec of a client with one connection that asks for ten bytes.
pub fn client_spec(protocol: &str) -> ClientSpec {
    serde_json::from_value(serde_json::json!({
        "contract": 1, "protocol": protocol, "address": "127.0.0.1", "port": 80, "server_name": "server.test",
        "request": {"method": "GET", "path": "/bytes/10", "body_size": 0},
        "connections": {"policy": "persistent", "connections": 1, "streams": 1},
        "schedule": {"loop": "closed", "workers": 1},
        "extent": {"requests": 1},
        "timeouts": {"connect_ns": 5_000_000_000_u64, "request_ns": 5_000_000_000_u64},
        "seed": 1, "recording": "histograms", "results": "/dev/null",
    }))
    .expect("the spec is valid")
}
