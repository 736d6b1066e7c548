//! Whole trials on loopback over UDP: QUIC, HTTP/3 and bare datagrams, each way of using connections.

use wirelab_contract::event::Event;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ConnectionPolicy, Extent, Pause, Resumption, Schedule};

use crate::support::{Endpoint, Place, echo, get};

const OVER_UDP: [Protocol; 3] = [Protocol::Udp, Protocol::Quic, Protocol::H3];

#[test]
fn every_protocol_over_udp_carries_every_exchange_on_new_persistent_and_shared_connections() {
    let place = Place::new();
    place.document(0);
    place.document(20_000);
    for protocol in OVER_UDP {
        let (server, port) = Endpoint::serving(&place.server_spec(protocol));
        let mut answered = 0;
        for (connections, streams) in [(0, 0), (1, 1), (2, if protocol.multiplexes() { 3 } else { 1 })] {
            for request in [get("/20000.bin", 20_000), get("/0.bin", 0), get("/bytes/100", 100), echo(20_000)] {
                let mut spec = place.client_spec(protocol, port);
                let fresh = connections == 0;
                spec.connections = match connections {
                    0 => ConnectionPolicy::PerRequest,
                    _ => ConnectionPolicy::Persistent { connections, streams },
                };
                spec.schedule = Schedule::Closed { workers: (connections * streams).max(1), pause: Pause::None };
                spec.threads = Some(1);
                spec.request = request.clone();
                let (window, _) = Endpoint::client(&spec).trial();
                let samples = place.samples();
                let what = format!("{protocol} {} {:?}", request.path, spec.connections);
                assert_eq!(samples.len(), 10, "{what}");
                for sample in samples {
                    sample.check().unwrap_or_else(|violation| panic!("{what}: {violation}: {sample:?}"));
                    assert_eq!(sample.error, None, "{what}");
                    assert_eq!(sample.bytes_in, request.expect.as_ref().unwrap().body_size, "{what}");
                    assert_eq!(sample.status, protocol.is_http().then_some(200), "{what}");
                    assert_eq!(sample.connected_ns, None, "{what}");
                    let secure = fresh && protocol.is_secure();
                    assert_eq!(sample.handshake_ns.is_some(), secure, "{what}");
                    assert_eq!(sample.handshake, secure.then_some(Handshake::Full), "{what}");
                    assert!(sample.last_byte_ns <= window, "{what}");
                }
                answered += 11;
            }
        }
        assert_eq!(server.stop(), answered, "{protocol}");
    }
}

#[test]
fn sessions_over_quic_are_resumed_and_early_data_is_accepted_with_proof() {
    let place = Place::new();
    for protocol in [Protocol::Quic, Protocol::H3] {
        for (resumption, expected) in
            [(Resumption::Resume, Handshake::Resumed), (Resumption::ZeroRtt, Handshake::EarlyAccepted)]
        {
            let mut server_spec = place.server_spec(protocol);
            let tls = server_spec.tls.as_mut().unwrap();
            (tls.resumption, tls.early_data) = (true, resumption == Resumption::ZeroRtt);
            let (server, port) = Endpoint::serving(&server_spec);
            for (request, workers) in [(get("/bytes/100", 100), 1), (echo(50_000), 8)] {
                let mut spec = place.client_spec(protocol, port);
                spec.request = request;
                spec.resumption = resumption;
                spec.connections = ConnectionPolicy::PerRequest;
                spec.schedule = Schedule::Closed { workers, pause: Pause::None };
                spec.extent = Extent::Requests(40);
                let (_, done) = Endpoint::client(&spec).trial();
                for sample in place.samples() {
                    sample.check().unwrap();
                    assert_eq!((sample.error, sample.handshake), (None, Some(expected)), "{protocol} {workers}");
                }
                let Event::Done { configured, .. } = done else { unreachable!() };
                assert_eq!(configured["cipher"], "TLS_AES_128_GCM_SHA256");
                assert_eq!(configured["alpn"], protocol.alpn().unwrap());
            }
            server.stop();
        }
    }
}
