//! Warm-ups that last until response times are steady, in a run.

use std::fs;

use tempfile::tempdir;
use wirelab_testkit::lab::all_trials;
use wirelab_testkit::{program, run};

const STUDY: &str = r#"
name = "steady"
title = "Warm-ups until steady"
question = "Which clients can do it?"
lab = "loopback"
observers = []
planted = "0 %"
references = "0 %"
[workload]
protocol = "h1c"
connections = 1
requests = 8
warm_up = "until steady within 1 s"
[factors]
client = ["builtin", "old"]
[compare]
factor = "client"
baseline = "builtin"
[blocks]
min = 1
max = 1
"#;

/// The built-in client, whose description lacks the ability.
const OLD_CLIENT: &str = r#"
import json, os, subprocess, sys
wirelab = [os.environ["WIRELAB"], "endpoint"]
if sys.argv[1] != "describe":
    os.execv(wirelab[0], [*wirelab, *sys.argv[1:]])
description = json.loads(subprocess.check_output([*wirelab, "describe"]))
description["name"] = "old"
del description["client"]["until_steady"]
print(json.dumps(description))
"#;

#[test]
fn a_trial_records_the_end_of_its_warm_up_and_a_client_without_the_ability_is_unsupported() {
    let folder = tempdir().unwrap();
    let endpoint = folder.path().join("endpoints/old");
    fs::create_dir_all(&endpoint).unwrap();
    let wirelab = program();
    let command = "command = [\"python3\", \"-B\", \"old.py\"]";
    let manifest = format!("name = \"old\"\n{command}\nenvironment = {{ WIRELAB = {wirelab:?} }}\n");
    fs::write(endpoint.join("endpoint.toml"), manifest).unwrap();
    fs::write(endpoint.join("old.py"), OLD_CLIENT).unwrap();
    fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet"]);
    let trials: Vec<_> = all_trials(folder.path()).into_iter().map(|(_, trial)| trial).collect();
    assert_eq!(trials.len(), 3, "{trials:?}");
    let (old, builtin): (Vec<_>, Vec<_>) = trials.iter().partition(|trial| trial["outcome"] == "unsupported");
    let [old] = old[..] else { panic!("{trials:?}") };
    let reason = old["reason"].to_string();
    assert!(reason.contains("the client `old` cannot warm up until response times are steady"), "{old}");
    for trial in builtin {
        let end = &trial["warmed_up"];
        // A busy machine may keep it from a steady state.
        let is_known = ["steady", "changing", "cannot_tell"].iter().any(|known| end["steadiness"] == *known);
        let took_ns = end["took_ns"].as_u64().unwrap_or_default();
        assert!(trial["outcome"] == "ok" && is_known && took_ns >= 500_000_000, "{trial}");
    }
}
