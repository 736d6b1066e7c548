//! The transport reports of endpoints, and the qlog files of QUIC.

use std::fs;
use std::path::Path;

use serde_json::Value;
use wirelab_contract::event::Event;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ConnectionPolicy, Extent, Pause, Schedule};
use wirelab_contract::transport::TransportReport;

use crate::support::{Endpoint, OVER_TCP, Place, get};

#[track_caller]
fn report(done: Event) -> TransportReport {
    let Event::Done { transport: Some(report), .. } = done else { panic!("no report: {done:?}") };
    report.check().unwrap_or_else(|why| panic!("{why}: {report:?}"));
    *report
}

/// Checks a report on loopback: a round trip exists and no packet is lost. On a busy machine a packet may be late
/// enough to count as lost.
#[track_caller]
fn check(report: &TransportReport, protocol: Protocol, connections: u64) {
    assert_eq!(report.connections, connections, "{protocol}: {report:?}");
    let smallest = report.round_trip_min_ns.unwrap();
    // Far below QUIC's initial assumption of 333 ms.
    assert!(smallest > 0 && smallest < 200_000_000, "{protocol}: {report:?}");
    assert!(report.round_trip_ns.unwrap() > 0, "{protocol}: {report:?}");
    let (lost, sent) = (report.packets_lost.unwrap(), report.packets_sent.unwrap());
    assert!(lost * 10 <= sent && sent >= 2 * connections, "{protocol}: {report:?}");
    assert_eq!(lost == 0, report.bytes_lost == Some(0), "{protocol}: {report:?}");
    assert!(report.congestion_window.unwrap() > 1000, "{protocol}: {report:?}");
    assert_eq!(report.congestion_events.is_some(), protocol.uses_quic(), "{protocol}: {report:?}");
}

#[test]
fn both_roles_count_each_connection_and_its_round_trip_over_loopback() {
    let place = Place::new();
    for protocol in OVER_TCP.into_iter().chain([Protocol::Quic, Protocol::H3]) {
        let (server, port) = Endpoint::serving(&place.server_spec(protocol));
        let mut spec = place.client_spec(protocol, port);
        spec.connections = ConnectionPolicy::PerRequest;
        spec.warm_up = Some(Extent::Requests(3));
        let (_, done) = Endpoint::client(&spec).trial();
        check(&report(done), protocol, 10);
        // The check request, the warm-up and the window.
        check(&report(server.stopped()), protocol, 1 + 3 + 10);
    }
}

#[test]
fn a_client_reports_what_its_kept_connections_did_since_the_warm_up() {
    let place = Place::new();
    for (protocol, threads) in [(Protocol::H1c, 1), (Protocol::H2, 2), (Protocol::H3, 2)] {
        let (server, port) = Endpoint::serving(&place.server_spec(protocol));
        let mut spec = place.client_spec(protocol, port);
        spec.threads = Some(threads);
        spec.connections = ConnectionPolicy::Persistent { connections: 4, streams: 1 };
        spec.schedule = Schedule::Closed { workers: 4, pause: Pause::None };
        spec.warm_up = Some(Extent::Requests(2_000));
        let (_, done) = Endpoint::client(&spec).trial();
        let of_client = report(done);
        check(&of_client, protocol, 4);
        // A request takes at least one packet. Ten requests with acknowledgements take far fewer than the warm-up.
        let sent = of_client.packets_sent.unwrap();
        assert!((10..500).contains(&sent), "{protocol}: {sent}");
        let of_server = report(server.stopped());
        check(&of_server, protocol, 5);
        assert!(of_server.packets_sent.unwrap() >= 2_000, "{protocol}: {of_server:?}");
    }
}

#[test]
fn a_server_reports_connections_that_are_still_open_when_it_stops() {
    let place = Place::new();
    for protocol in [Protocol::H1, Protocol::H3] {
        let (server, port) = Endpoint::serving(&place.server_spec(protocol));
        let mut client = Endpoint::client(&place.client_spec(protocol, port));
        assert!(matches!(client.event(), Event::Ready { .. }));
        client.say("go");
        assert_eq!(client.event(), Event::Warm { until_steady: None });
        // After answered requests the server knows that the handshake is complete.
        client.say("go");
        assert!(matches!(client.event(), Event::End { .. }));
        check(&report(server.stopped()), protocol, 2);
        client.say("stop");
        assert_eq!(client.status.join().unwrap(), 1);
    }
}

#[test]
fn bare_udp_has_no_transport_to_report_on() {
    let place = Place::new();
    let (server, port) = Endpoint::serving(&place.server_spec(Protocol::Udp));
    let (_, of_client) = Endpoint::client(&place.client_spec(Protocol::Udp, port)).trial();
    for done in [of_client, server.stopped()] {
        assert!(matches!(done, Event::Done { transport: None, .. }), "{done:?}");
    }
}

/// The records of each qlog file in a folder, by file name.
fn qlogs(folder: &Path) -> Vec<(String, Vec<Value>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        // A JSON text sequence (RFC 7464): each record between a record separator and a line feed.
        let records = text.split('\u{1e}').skip(1).map(|record| {
            assert!(record.ends_with('\n'), "a torn record in {}: {record}", path.display());
            serde_json::from_str(record).unwrap()
        });
        (path.file_name().unwrap().to_string_lossy().into_owned(), records.collect())
    };
    let mut files: Vec<_> = entries.map(read).collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

#[test]
fn every_quic_connection_has_a_qlog_file_of_each_role() {
    let place = Place::new();
    for protocol in [Protocol::Quic, Protocol::H3] {
        let folders = ["server", "client"].map(|role| place.path(&format!("{protocol}/{role}")));
        let mut server_spec = place.server_spec(protocol);
        server_spec.qlog_dir = Some(folders[0].clone());
        let (server, port) = Endpoint::serving(&server_spec);
        let mut spec = place.client_spec(protocol, port);
        spec.qlog_dir = Some(folders[1].clone());
        spec.connections = ConnectionPolicy::PerRequest;
        spec.schedule = Schedule::Closed { workers: 4, pause: Pause::None };
        spec.threads = Some(2);
        spec.request = get("/bytes/100000", 100_000);
        Endpoint::client(&spec).trial();
        server.stop();
        for (folder, role) in folders.iter().zip(["server", "client"]) {
            let files = qlogs(folder);
            let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
            let expected: Vec<_> = (0..11).map(|number| format!("{role}-{number:06}.sqlog")).collect();
            assert_eq!(names, expected, "{protocol}");
            for (name, records) in files {
                assert_eq!(records[0]["qlog_format"], "JSON-SEQ", "{name}");
                let of = |event: &str| records.iter().filter(|record| record["name"] == event).count();
                assert!(of("transport:packet_sent") >= 3, "{name}");
                assert!(of("transport:packet_received") >= 3 && of("recovery:metrics_updated") >= 1, "{name}");
            }
        }
    }
}
