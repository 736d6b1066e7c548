//! The observer `packets` in the lab `netns`: its counts equal the packets on the wire, and captures can be decrypted.
//! The tests are skipped if packets cannot be captured.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;
use wirelab_testkit::lab::{folder_with, trials};
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;
use wirelab_testkit::{Skip, eventually, only_run, processes, run, skip_part, wirelab};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(packets_are_those_of_the_wire_whether_super_packets_pass_or_not).retries(2),
        test!(a_lab_whose_interfaces_are_shared_gives_a_reason).side_by_side(),
        test!(captures_contain_the_secrets_that_decrypt_them).side_by_side().retries(2),
        test!(a_killed_run_leaves_no_witness).side_by_side(),
    ]
}

const REQUESTS: f64 = 40.0;
const PAYLOAD: f64 = 102_400.0;

const STUDY: &str = r#"
name = "packets"
title = "Packets"
question = "How many packets is a document?"
lab = "netns"
observers = ["packets"]

[workload]
connections = 1
requests = 40
warm_up = 5
payload = "100 KiB"

[factors]
protocol = ["h1", "h2", "h3"]
# A veth pair with segmentation offload, where super-packets pass, and a link on which nothing above the MTU does.
placement = ["same-node", "single-az"]

[compare]
factor = "protocol"
baseline = "h1"

[blocks]
min = 1
max = 1
"#;

const NEEDS: &[&str] = &["capturing packets"];

/// The levels and the values of each trial.
fn seen(folder: &Path) -> Vec<(Value, Value)> {
    trials(folder).into_iter().map(|(cell, trial)| (cell["levels"].clone(), trial["values"].clone())).collect()
}

fn packets_are_those_of_the_wire_whether_super_packets_pass_or_not() {
    let Some(folder) = folder_with(STUDY, NEEDS) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    let logs = run(folder.path(), &["logs", "--trial", "0"]).with_status(0).out;
    for (helper, words) in [("  fabric    ", "preparing the network"), ("  witness   ", "watching packets")] {
        assert!(logs.lines().any(|line| line.contains(helper) && line.contains(words)), "{helper}{words}:\n{logs}");
    }
    let trials = seen(folder.path());
    // Three protocols and the A/A twin in two placements.
    assert_eq!(trials.len(), 8);
    for (levels, values) in &trials {
        let of = |name: &str| {
            let value = &values[format!("packets_{name}")];
            value.as_f64().unwrap_or_else(|| panic!("{levels}: {name}: {value}"))
        };
        // The link loses no packet, so both ends count the same except for packets in flight when the window begins and
        // ends. These are at most the packets of one response, or one acknowledgement for each of them; the number of
        // acknowledgements varies.
        let (packets, bytes) = (of("client_received_per_request"), of("client_bytes_received_per_request"));
        for [one, other] in [["client_sent", "server_node_received"], ["server_node_sent", "client_received"]] {
            let [one_sees, other_sees] = [one, other].map(|place| of(&format!("{place}_per_request")));
            let difference = (one_sees - other_sees) * REQUESTS;
            assert!(difference.abs() <= packets.ceil(), "{levels}: {one} and {other} differ by {difference} packets");
        }
        assert!((PAYLOAD..1.1 * PAYLOAD).contains(&bytes), "{levels}: {bytes} bytes");
        // A packet of 1500 bytes limits the payload, and hardly any full packet has much less.
        let least = (PAYLOAD / (1500.0 - 40.0)).ceil();
        assert!((least..1.2 * least).contains(&packets), "{levels}: {packets} packets, where {least} is the least");
        let largest = of("client_largest");
        assert!(largest > 1200.0 && largest <= 1500.0 && of("server_node_largest") <= 1500.0, "{levels}: {largest}");
        assert_eq!(of("client_mtu_share"), largest / 1500.0);
        let overhead = of("overhead") * PAYLOAD;
        assert!((overhead - bytes - of("client_bytes_sent_per_request")).abs() < 1.0, "{levels}: {overhead}");
        assert!(values["packets_server_node_inner_bytes_sent_per_request"]["not_measured"].is_string());
    }
}

fn a_lab_whose_interfaces_are_shared_gives_a_reason() {
    let folder = tempdir().unwrap();
    let study = STUDY.replace("\"netns\"", "\"loopback\"").replace("placement = [", "workers = [1]\n# ");
    fs::write(folder.path().join("study.toml"), study).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet", "--set", "requests=5"]).with_status(0);
    for (_, values) in seen(folder.path()) {
        let why = values["packets_client_sent_per_request"]["not_measured"].as_str().unwrap();
        assert!(why.contains("shares its network interfaces"), "{why}");
    }
}

fn captures_contain_the_secrets_that_decrypt_them() {
    // The study lacks the observer; keeping captures adds it.
    let study = STUDY.replace("observers = [\"packets\"]", "observers = []");
    let Some(folder) = folder_with(&study, NEEDS) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet", "--keep", "pcap", "--set", "requests=3"]).with_status(0);
    let captures = only_run(folder.path()).join("captures");
    let names: Vec<_> = fs::read_dir(&captures).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 16, "{names:?}");
    let has_tshark = Command::new("tshark").arg("--version").output().is_ok();
    if !has_tshark {
        skip_part(Skip::MissingProgram { program: "tshark".to_owned(), remedy: "apt-get install tshark".to_owned() });
    }
    for (number, (levels, values)) in seen(folder.path()).iter().enumerate() {
        assert!(values["packets_client_sent_per_request"].is_number(), "{levels}: {values}");
        for place in ["client", "server-node"] {
            let path = captures.join(format!("trial-{number:06}-{place}.pcapng"));
            let bytes = fs::read(&path).unwrap();
            // The secrets of TLS follow the section's header, before any packet.
            assert_eq!(bytes[28..32], 10_u32.to_le_bytes(), "{}", path.display());
            assert!(String::from_utf8_lossy(&bytes).contains("CLIENT_TRAFFIC_SECRET_0 "), "{}", path.display());
            let (requests, what) = match levels["protocol"].as_str().unwrap() {
                "h1" => ("http.request.method == GET", "HTTP/1.1"),
                "h2" => ("http2.headers.method == GET", "HTTP/2"),
                _ => ("http3.frame_type == 1 && frame.cap_len < 1000", "HTTP/3"),
            };
            if !has_tshark {
                continue;
            }
            let said = Command::new("tshark").arg("-r").arg(&path).args(["-Y", requests]).output().unwrap();
            let shown = String::from_utf8_lossy(&said.stdout);
            // The check request, 5 requests of the warm-up, and 3 measured requests.
            assert!(shown.lines().count() >= 9, "{levels}, {what}: {said:?}");
        }
    }
}

fn a_killed_run_leaves_no_witness() {
    let Some(folder) = folder_with(STUDY, NEEDS) else { return };
    let mut child = wirelab(folder.path(), &["run", "study.toml", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok())
    };
    let ours = |child| processes("witness").into_iter().find(|pid| parent(*pid) == Some(child));
    let mut witness = None;
    eventually("a witness", || {
        witness = ours(child.id());
        witness.is_some()
    });
    let witness = witness.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the end of the witness", || !processes("witness").contains(&witness));
}
