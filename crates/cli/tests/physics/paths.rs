//! Measured paths between the hosts of real sshd's.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;
use wirelab_testkit::physics::Test;
use wirelab_testkit::ssh::SshHosts;
use wirelab_testkit::test;
use wirelab_testkit::{only_run, said};

use crate::ssh::{PAIR, command, is_clean, measure, study};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(a_run_reports_the_paths_between_its_hosts).side_by_side(),
        test!(a_measured_path_becomes_a_placement_that_netns_emulates).retries(2),
    ]
}

/// The entries of the run's journal that measured links.
fn checks(folder: &Path) -> Vec<Value> {
    let journal = fs::read_to_string(only_run(folder).join("journal.jsonl")).unwrap();
    let entries = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.filter(|entry| entry["entry"] == "links").collect()
}

fn a_run_reports_the_paths_between_its_hosts() {
    let Some(hosts) = SshHosts::start(&["near", "far"]) else { return };
    let folder = tempdir().unwrap();
    study(folder.path());
    let more = ["--hosts", PAIR, "--set", "placement=same-node,other-node"];
    measure(&hosts, folder.path(), &more).with_status(0);
    let checks = checks(folder.path());
    assert_eq!(checks.len(), 2, "before and after the only block: {checks:?}");
    for check in &checks {
        let paths: Vec<_> = check["paths"].as_array().unwrap().iter().collect();
        let named: Vec<_> = paths.iter().map(|path| ["placement", "client", "server"].map(|key| &path[key])).collect();
        assert_eq!(json!(named), json!([["same-node", "near", "near"], ["other-node", "near", "far"]]));
        assert_eq!(paths[1]["reading"]["up"]["mtu"], 1500, "{check}");
        assert!(paths[1]["reading"]["round_trip"]["median_ns"].as_u64().is_some_and(|ns| ns > 0), "{check}");
    }
    for format in [&["--full"][..], &["--format", "markdown"], &["--format", "html"]] {
        let args = [&["report"], format].concat();
        let text = said(command(&hosts, folder.path(), &args).output().unwrap()).with_status(0).out;
        // The terminal breaks lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("other-node (near → far)") && text.contains("ECN kept, DSCP kept"), "{format:?}: {text}");
    }
    is_clean(&hosts, &[0, 1]);
}

/// The path from the second host has losses, a smaller MTU, and no ECN.
fn a_measured_path_becomes_a_placement_that_netns_emulates() {
    let Some(hosts) = SshHosts::start(&["near", "far"]) else { return };
    hosts.shape(
        1,
        &[
            "ip link set eth0 mtu 1400",
            "nft add table netdev t",
            "nft add chain netdev t out { type filter hook egress device eth0 priority 0 ; }",
            "nft add rule netdev t out meta l4proto udp numgen random mod 100 < 10 drop",
            "nft add rule netdev t out ip ecn set not-ect",
        ],
    );
    let folder = tempdir().unwrap();
    let labs = |args: &[&str]| {
        let args = [&["labs", "measure"], args].concat();
        said(command(&hosts, folder.path(), &args).output().unwrap())
    };
    let measured = labs(&["--hosts", PAIR, "--as-placement", "cloud", "--json"]).with_status(0);
    let paths: Value = serde_json::from_str(&measured.out).unwrap();
    let reading = &paths[0]["reading"];
    let lost = |side: &str| reading[side]["delivery"]["lost"].as_u64().unwrap();
    assert!(lost("down") > 0 && lost("down") > lost("up"), "{reading}");
    assert_eq!(reading["down"]["mtu"], 1400, "{reading}");
    assert_eq!(reading["up"]["load"]["code"], "load-not-allowed", "{reading}");
    let ect0 = reading["down"]["marks"].as_array().unwrap().iter().find(|mark| mark["sent"] == 2).unwrap();
    assert_eq!(ect0["arrived"], json!([0]), "{reading}");
    let placement = fs::read_to_string(folder.path().join("cloud.toml")).unwrap();
    assert!(placement.contains("# bandwidth is not limited; not measured: it needs load"), "{placement}");
    // A file that is there is not replaced.
    labs(&["--hosts", PAIR, "--as-placement", "cloud"])
        .with_status(1)
        .complains(&["cloud.toml", "choose another name"]);
    is_clean(&hosts, &[0, 1]);

    let emulated = labs(&["--placements", "cloud.toml", "--set", "placement=cloud", "--json"]).with_status(0);
    let links: Value = serde_json::from_str(&emulated.out).unwrap();
    let (link, repeated) = (&links[0], &links[0]["reading"]);
    assert_eq!((&link["placement"], &repeated["mtu"]), (&json!("cloud"), &json!(1400)));
    // The loss of both directions is emulated in each.
    let share = |loss: &Value| loss["lost"].as_f64().unwrap() / loss["of"].as_f64().unwrap();
    let found = (lost("up") + lost("down")) as f64 / 480.0;
    for side in ["loss", "loss_up"] {
        assert!((share(&repeated[side]) - found).abs() < 0.03, "{found}: {link}");
    }
    let ns = |value: &Value| value.as_f64().unwrap();
    let difference = ns(&repeated["round_trip_ns"]) - ns(&reading["round_trip"]["median_ns"]);
    assert!(difference.abs() < 1e6, "{difference}: {link} {reading}");
}
