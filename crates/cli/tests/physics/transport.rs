//! The transport values of the built-in endpoints agree with the lab's link and with the observer `tcp`, and their qlog
//! files are kept. The test of the link is skipped if network namespaces are not available.

use std::fs;
use std::net::{TcpListener, TcpStream};

use serde_json::Value;
use wirelab_testkit::lab::{folder_of, folder_with, trials};
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;
use wirelab_testkit::{only_run, run};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(tcp_and_quic_report_the_round_trip_and_the_losses_of_the_link).beside_few().retries(2),
        test!(on_loopback_only_the_trials_connections_are_counted).side_by_side(),
        test!(a_run_keeps_the_qlog_files_of_both_roles_where_they_are_asked_for).side_by_side(),
    ]
}

const STUDY: &str = r#"
name = "transport"
title = "The link as the transport sees it"
question = "Do TCP and QUIC see the round trip and the losses of the link?"
lab = "netns"
observers = ["tcp"]

[workload]
placement = "multi-az"
round_trip = "20 ms"
exchange = "bytes"
payload = "500 KB"
requests = 3

[factors]
protocol = ["h1", "h3"]
connections = ["per-request", 1]
loss = ["0 %", "3 %"]

[compare]
factor = "protocol"
baseline = "h1"

[blocks]
min = 1
max = 1
"#;

fn tcp_and_quic_report_the_round_trip_and_the_losses_of_the_link() {
    let Some(folder) = folder_with(STUDY, &[]) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    for (cell, trial) in trials(folder.path()) {
        let levels = &cell["levels"];
        let value = |name: &str| {
            let value = &trial["values"][name];
            value.as_f64().unwrap_or_else(|| panic!("{name} is {value}: {levels}"))
        };
        for side in ["client", "server"] {
            // No round trip is below the link's, and the smallest is hardly above it. quinn reads the clock before it
            // asks for received packets. A process that loses the processor in between therefore takes a packet for an
            // earlier one.
            let least = if levels["protocol"] == "h3" { 10.0 } else { 20.0 };
            let smallest = value(&format!("transport_{side}_round_trip_min")) / 1e6;
            assert!((least..25.0).contains(&smallest), "{side}: {smallest} ms: {levels}");
            assert!(value(&format!("transport_{side}_round_trip")) >= 20e6, "{side}: {levels}");
        }
        // 500 kB, at least four times, in packets of at most 1500 bytes.
        assert!(value("transport_server_sent") > 1_300.0, "{levels}");
        if levels["loss"] == "3 %" {
            assert!(value("transport_server_lost") > 0.0, "{levels}");
            let share = value("transport_server_lost_share");
            // More than lost packets may be sent again, and few of the packets are acknowledgements.
            assert!((0.005..0.2).contains(&share), "{share}: {levels}");
            assert!(value("transport_server_lost_bytes") > 1_000.0, "{levels}");
        }
        let events = &trial["values"]["transport_server_congestion_events"];
        assert_eq!(events.is_number(), levels["protocol"] == "h3", "{events}");
        if levels["protocol"] == "h3" {
            let why = trial["values"]["tcp_client_connections"]["not_measured"].as_str().unwrap();
            assert_eq!(why, "the client had no TCP connection in the window");
        } else {
            seen_from_outside(levels, &value);
        }
    }
}

/// The kernel's values for the window, from outside, agree with its values for the endpoints. The servers' values also
/// include check request and warm-up.
fn seen_from_outside(levels: &Value, value: &impl Fn(&str) -> f64) {
    for side in ["client", "server"] {
        let seen = |name: &str| value(&format!("tcp_{side}_{name}"));
        let said = |name: &str| value(&format!("transport_{side}_{name}"));
        let connections = seen("connections");
        if levels["connections"] == "per-request" {
            // The connection of the last request of the warm-up may still be closing.
            assert!((3.0..=5.0).contains(&connections), "{side}: {connections} connections: {levels}");
        } else {
            // The connection of the check request may still be closing.
            assert!((1.0..=2.0).contains(&connections), "{side}: {connections} connections: {levels}");
            if connections < 2.0 && side == "client" {
                assert_eq!(seen("round_trip_min"), said("round_trip_min"), "{levels}");
            }
        }
        assert!(seen("round_trip_min") >= 20e6 && seen("round_trip") >= 20e6, "{side}: {levels}");
    }
    // 500 kB in segments of at most 1448 bytes, with at most one acknowledgement each.
    let (sent, acknowledged) = (value("tcp_server_segments_per_request"), value("tcp_client_segments_per_request"));
    assert!((345.0..500.0).contains(&sent), "{sent} segments: {levels}");
    assert!((1.0..sent).contains(&acknowledged), "{acknowledged} segments: {levels}");
    assert!(sent * 3.0 < value("transport_server_sent"), "{levels}");
    // After loss at least one segment remains.
    assert!(value("tcp_server_window") >= 1448.0, "{levels}");
    // On a stalled machine, a segment that is only late may be sent again without loss.
    if levels["loss"] == "3 %" {
        assert!((1.0..sent).contains(&value("tcp_server_retransmitted")), "{levels}");
        assert!(value("tcp_server_retransmitted_bytes") > 0.0, "{levels}");
    }
}

const SHARED: &str = r#"
name = "shared"
title = "A network that client and server share with others"
question = "Are strangers' connections counted?"
lab = "loopback"
observers = ["tcp"]

[workload]
connections = 3
requests = 30

[factors]
protocol = ["h1", "h2"]

[compare]
factor = "protocol"
baseline = "h1"

[blocks]
min = 1
max = 1
"#;

fn on_loopback_only_the_trials_connections_are_counted() {
    let folder = folder_of(SHARED);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _stranger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    for (cell, trial) in trials(folder.path()) {
        for side in ["client", "server"] {
            let connections = &trial["values"][format!("tcp_{side}_connections")];
            // The check request's connection may still be closing.
            let count = connections.as_f64().unwrap_or_else(|| panic!("{side}: {connections}: {cell}"));
            assert!((3.0..=4.0).contains(&count), "{side}: {count}: {cell}");
        }
    }
}

const LOOPBACK: &str = r#"
name = "logged"
title = "A run with qlog"
question = "Where are the qlog files?"
lab = "loopback"

[workload]
requests = 3

[factors]
protocol = ["h1", "h3"]

[compare]
factor = "protocol"
baseline = "h1"

[blocks]
min = 1
max = 1
"#;

fn a_run_keeps_the_qlog_files_of_both_roles_where_they_are_asked_for() {
    let folder = folder_of(LOOPBACK);
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    assert!(!only_run(folder.path()).join("qlog").exists(), "nobody asked for qlog files");
    let folder = folder_of(LOOPBACK);
    run(folder.path(), &["run", "study.toml", "--keep", "qlog", "--quiet"]).with_status(0);
    for (_, trial) in trials(folder.path()) {
        let logs = only_run(folder.path()).join(format!("qlog/trial-{:06}", trial["number"].as_u64().unwrap()));
        let is_quic = trial["client"]["alpn"] == "h3";
        assert_eq!(logs.exists(), is_quic, "{}", logs.display());
        for role in ["server", "client"].into_iter().filter(|_| is_quic) {
            // The connection of the check request, and the connection of the window.
            let names: Vec<_> = (0..2).map(|number| logs.join(format!("{role}/{role}-{number:06}.sqlog"))).collect();
            assert!(names.iter().all(|name| fs::metadata(name).is_ok_and(|file| file.len() > 500)), "{names:?}");
        }
    }
}
