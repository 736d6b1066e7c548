//! Requirements and the exit status 3, from the command line.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use wirelab_model::protocol::Protocol;
use wirelab_testkit::servers::{Builtin, Place, serve};
use wirelab_testkit::{Said, run, said, wirelab};

const STUDY: &str = r#"
name = "gate"
title = "Two protocols"
question = "Is one too slow?"
lab = "fake"
[factors]
protocol = ["h1", "h2"]
[compare]
factor = "protocol"
baseline = "h1"
[blocks]
min = 10
max = 10
"#;

/// A folder with the study file `gate.toml`, which ends with this text.
fn folder(require: &str) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("gate.toml"), format!("{STUDY}{require}")).unwrap();
    folder
}

#[track_caller]
fn gate(folder: &Path, args: &[&str]) -> Said {
    let mut all = vec!["run", "gate.toml", "--quiet"];
    all.extend(args);
    run(folder, &all)
}

#[test]
fn a_requirement_that_is_met_keeps_the_status_0_and_comes_first() {
    let folder = folder("[[require]]\nthat = \"response_median at most 1 h\"\n");
    let said = gate(folder.path(), &["--fail-on", "inconclusive"]).with_status(0);
    let lines: Vec<_> = said.out.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[1].contains("✓ Requirement met: Median response time at most 1 h"), "{}", said.out);
    for format in ["markdown", "html"] {
        let report = run(folder.path(), &["report", "--format", format]).with_status(0).out;
        let [requirement, verdict] = ["Requirement met", "HTTP/2"].map(|words| report.find(words));
        assert!(requirement.is_some() && requirement < verdict, "{format}");
    }
    let json = run(folder.path(), &["report", "--format", "json"]).with_status(0).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["requirements"][0]["verdict"], "met");
    assert_eq!(json["requirements"][0]["tests"].as_array().unwrap().len(), 2);
}

#[test]
fn a_violated_requirement_gives_status_3_from_run_and_report() {
    let folder = folder("[[require]]\nthat = \"median at most 1 ns\"\ncells = { protocol = \"h2\" }\n");
    gate(folder.path(), &[]).with_status(3).complains(&["not met", "protocol=h2", "1 ns"]);
    let report = run(folder.path(), &["report"]).with_status(3).complains(&["not met", "protocol=h2"]);
    assert!(report.out.contains("✗ Requirement not met"), "{}", report.out);
}

#[test]
fn the_flag_adds_a_requirement_and_report_accepts_none() {
    let folder = folder("");
    gate(folder.path(), &["--fail-on", "median > 1 ns"]).with_status(3).complains(&["2 of 2 cells"]);
    run(folder.path(), &["report", "--fail-on", "median > 1 s"])
        .with_status(2)
        .complains(&["before its data", "[[require]]"]);
}

#[test]
fn an_inconclusive_requirement_fails_only_on_request() {
    let few = ["--set", "blocks.min=2", "--set", "blocks.max=2", "--fail-on", "median > 1 ns"];
    let folder = folder("");
    let said = gate(folder.path(), &few).with_status(0);
    assert!(said.out.contains("? Requirement inconclusive"), "{}", said.out);
    run(folder.path(), &["report", "--fail-on", "inconclusive"]).with_status(3).complains(&["2 of 10 blocks"]);
    gate(folder.path(), &[&few[..], &["--fail-on", "inconclusive"]].concat()).with_status(3);
}

#[test]
fn a_claim_that_does_not_hold_fails_only_on_request() {
    let claim = r#"
[[claims]]
id = "C1"
text = "A request takes a nanosecond"
tests = [{ metric = "response_median", of = [{ protocol = "h1" }], expect = "< 1 ns" }]
"#;
    let folder = folder(claim);
    gate(folder.path(), &[]).with_status(0);
    run(folder.path(), &["report", "--fail-on", "claims"]).with_status(3).complains(&["C1", "does not hold"]);
}

#[test]
fn a_bound_of_a_claim_without_a_unit_is_read_and_named() {
    let claim = r#"
[[claims]]
id = "C1"
text = "A request takes less than a second"
tests = [{ metric = "response_median", of = [{ protocol = "h1" }], expect = "< 1000000" }]
"#;
    let folder = folder(claim);
    run(folder.path(), &["studies", "check", "gate.toml"])
        .with_status(0)
        .complains(&["C1", "1000000", "1.00 ms", "unit"]);
}

#[test]
fn a_load_is_judged_as_it_is() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H1c));
    let load = |path: &str, args: &[&str]| {
        let url = format!("http://localhost:{}{path}", server.port);
        let mut all = vec!["load", "--protocol", "h1c", "-n", "50", &url];
        all.extend(args);
        run(place.folder(), &all)
    };
    load("/bytes/10", &["--fail-on", "max > 1 h", "--fail-on", "errors > 0.1 %"]).with_status(0);
    load("/bytes/10", &["--fail-on", "median>1ns"]).with_status(3).complains(&["response_median at most 1 ns"]);
    // 50 requests are too few for a P99, so nothing shows that it is small.
    load("/bytes/10", &["--fail-on", "p99 > 1 h"]).with_status(3).complains(&["not measured"]);
}

#[test]
fn pipelines_get_the_requirements_as_tests_annotations_and_a_summary() {
    let folder = folder("[[require]]\nthat = \"median at most 1 ns\"\n");
    gate(folder.path(), &[]).with_status(3);
    let junit = run(folder.path(), &["report", "--format", "junit"]).with_status(3).out;
    assert!(junit.starts_with("<?xml") && junit.matches("<failure ").count() == 2, "{junit}");
    let summary = folder.path().join("summary.md");
    fs::write(&summary, "before\n").unwrap();
    let mut github = wirelab(folder.path(), &["report", "--format", "github"]);
    let github = said(github.env("GITHUB_STEP_SUMMARY", &summary).output().unwrap()).with_status(3).out;
    assert!(github.starts_with("::error title=gate"), "{github}");
    let summary = fs::read_to_string(summary).unwrap();
    assert!(summary.starts_with("before\n## Two protocols") && summary.contains("Requirement not met"), "{summary}");
    let metrics = run(folder.path(), &["report", "--format", "gitlab"]).with_status(3).out;
    assert!(metrics.contains("wirelab_response_median_seconds{study=\"gate\",protocol=\"h1\"} "), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
}

/// The script of the action for GitHub, as its shell runs it.
#[track_caller]
fn action(folder: &Path, arguments: &str) -> Said {
    let action = fs::read_to_string(wirelab_testkit::root().join("deploy/ci/action.yml")).unwrap();
    let (_, script) = action.split_once("run: |\n").unwrap();
    let script: String = script.lines().map(|line| format!("{}\n", line.trim_start_matches("        "))).collect();
    let program = wirelab_testkit::program();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script]).current_dir(folder).env("PATH", path);
    command.env("STUDY", "gate.toml").env("ARGUMENTS", arguments).env("OUT", "runs");
    said(command.env_remove("GITHUB_STEP_SUMMARY").output().unwrap())
}

#[test]
fn the_action_ends_with_the_status_of_the_run() {
    let folder = folder("[[require]]\nthat = \"median at most 1 h\"\n");
    action(folder.path(), "").with_status(0);
    assert!(fs::read_to_string(folder.path().join("runs/junit.xml")).unwrap().starts_with("<?xml"));
    let failed = action(folder.path(), "--quiet --fail-on 'median > 1 ns'").with_status(3);
    assert!(failed.out.contains("::error title=gate"), "{}", failed.out);
    action(folder.path(), "--fail-on 'median > nothing'").with_status(2);
    let open = action(folder.path(), "--fail-on 'median > 1 ns").complains(&["quote"]);
    assert_ne!(open.status, 0);
}

#[test]
fn two_builds_are_compared_in_one_run() {
    let folder = tempdir().unwrap();
    let place = folder.path().join("endpoints/other");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("endpoint.toml"), "name = \"other\"\ncommand = [\"sh\", \"server.sh\"]\n").unwrap();
    fs::write(place.join("server.sh"), "exit 1\n").unwrap();
    let ab = |args: &[&str]| {
        let all = [&["ab", "--lab", "fake", "--quiet", "--set", "duration=100ms", "--max-duration", "1 s"], args];
        let mut command = wirelab(folder.path(), &all.concat());
        said(command.env_remove("WIRELAB_ENDPOINTS").env("XDG_DATA_HOME", folder.path()).output().unwrap())
    };
    let both = ["--base", "builtin", "--head", "other"];
    let said = ab(&[&both[..], &["--fail-on", "median 10000 % worse", "--margin", "6 %"]].concat()).with_status(2);
    said.complains(&["10000 %", "no margin"]);
    let said = ab(&[&both[..], &["--fail-on", "median > 1 h"]].concat()).with_status(0);
    assert!(said.out.contains("other (head) against builtin (base)"), "{}", said.out);
    assert!(said.out.contains("✓ Requirement met: Median response time at most 1 h"), "{}", said.out);
    ab(&[&both[..], &["--fail-on", "median > 1 ns"]].concat()).with_status(3).complains(&["build=head"]);
}

#[test]
fn a_build_is_not_compared_with_itself() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["ab", "--base", "builtin", "--head", "builtin"])
        .with_status(2)
        .complains(&["same build", "A/A"]);
    run(folder.path(), &["ab", "--base", "builtin", "--head", "bultin"])
        .with_status(2)
        .complains(&["bultin", "`builtin`"]);
}

#[test]
fn a_run_ends_after_its_time() {
    let folder = folder("");
    let args = ["--set", "blocks.max=1000", "--set", "blocks.precision=0.01 %", "--max-duration", "1 ms"];
    let said = gate(folder.path(), &args).with_status(0);
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("its time budget was used up"), "{text}");
}

#[test]
fn a_window_too_short_for_its_percentiles_is_named_before_the_run() {
    let folder = tempdir().unwrap();
    let args = ["run", "quick", "--lab", "netns", "--set", "placement=home", "--plan"];
    let said = run(folder.path(), &args).with_status(0).complains(&["`response_p99` needs 100 requests", "`duration`"]);
    assert!(said.out.contains("Expected time: ") && said.out.contains("are assumed to take 0.5 s"), "{}", said.out);
    let study = STUDY.replace("[factors]", "[workload]\nrequests = 50\n[factors]")
        + "[[require]]\nthat = \"p99 at most 1 s\"\n";
    fs::write(folder.path().join("short.toml"), study).unwrap();
    let said = run(folder.path(), &["studies", "check", "short.toml"]).with_status(0).complains(&["at most 50"]);
    assert!(said.out.contains("Some windows end with their last request"), "{}", said.out);
}

#[test]
fn a_copied_study_has_its_own_name() {
    let folder = tempdir().unwrap();
    let copy = run(folder.path(), &["studies", "show", "quick", "--name", "my-study"]).with_status(0).out;
    let original = run(folder.path(), &["studies", "show", "quick"]).with_status(0).out;
    assert_eq!(copy, original.replacen("name = \"quick\"", "name = \"my-study\"", 1));
    assert_ne!(copy, original);
    run(folder.path(), &["studies", "show", "quick", "--name", "My Study"]).with_status(2).complains(&["my-study"]);
}
