//! Endpoints that expose their counters during and after their work.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;

use wirelab_contract::exposition::{BOUNDS, Exposed, Exposition};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientSpec, Extent, Recording, ServerSpec};

use crate::support::{Endpoint, Place};

fn exposition(place: &Place, role: &str) -> Exposition {
    Exposition { socket: place.path(&format!("{role}.sock")), labels: [("role".to_owned(), role.to_owned())].into() }
}

fn told(exposition: &Exposition) -> Exposed {
    let mut text = String::new();
    UnixStream::connect(&exposition.socket).unwrap().read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn left(exposition: &Exposition) -> Exposed {
    assert!(!exposition.socket.exists());
    serde_json::from_slice(&fs::read(exposition.last()).unwrap()).unwrap()
}

#[test]
fn both_sides_tell_what_the_results_then_have() {
    let place = Place::new();
    let (of_server, of_client) = (exposition(&place, "server"), exposition(&place, "client"));
    for (protocol, recording) in [
        (Protocol::Tcp, Recording::Samples),
        (Protocol::H1c, Recording::Histograms),
        (Protocol::H2, Recording::Samples),
        (Protocol::H3, Recording::Samples),
        (Protocol::Udp, Recording::Samples),
    ] {
        let shown = Some(of_server.clone());
        let (server, port) = Endpoint::serving(&ServerSpec { exposition: shown, ..place.server_spec(protocol) });
        let connections = (protocol != Protocol::Udp).then_some(0);
        let none = Exposed { labels: of_server.labels.clone(), connections, ..Exposed::default() };
        assert_eq!(told(&of_server), none, "{protocol}");
        let spec = ClientSpec {
            extent: Extent::Requests(30),
            // Only the server counts requests before the window.
            warm_up: Some(Extent::Requests(5)),
            recording,
            exposition: Some(of_client.clone()),
            ..place.client_spec(protocol, port)
        };
        Endpoint::client(&spec).trial();
        let client = left(&of_client);
        assert_eq!((client.requests, client.failed, &client.labels), (30, Some(0), &of_client.labels), "{protocol}");
        let response = client.response.unwrap();
        assert_eq!((response.counts.len(), response.counts.iter().sum::<u64>()), (BOUNDS + 1, 30), "{protocol}");
        if recording == Recording::Samples {
            let sum: u64 = place.samples().iter().map(|sample| sample.response_ns()).sum();
            assert_eq!(response.sum_ns, sum, "{protocol}");
        }
        // The server also counts the check request.
        assert_eq!(told(&of_server).requests, 36, "{protocol}");
        server.stop();
        assert_eq!((left(&of_server).requests, left(&of_server).connections), (36, connections), "{protocol}");
    }
}
