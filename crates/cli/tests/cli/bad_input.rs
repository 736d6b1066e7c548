//! Wrong input as a newcomer types it: exit status 2, the expectation, the nearest right word, and no file written.

use std::fs;

use tempfile::tempdir;
use wirelab_testkit::run;

/// Runs with these arguments in an empty folder. Expects status 2, these words, and an empty folder afterwards.
#[track_caller]
fn check(args: &[&str], words: &[&str]) {
    let folder = tempdir().unwrap();
    run(folder.path(), args).with_status(2).complains(words);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
}

/// Runs a study file with this text. Expects status 2 and these words.
#[track_caller]
fn check_study(text: &str, words: &[&str]) {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("my.toml"), text).unwrap();
    run(folder.path(), &["run", "my.toml"]).with_status(2).complains(words);
    assert!(!folder.path().join("wirelab-runs").exists(), "a run folder was made");
}

const RIGHT: &str = r#"name = "my"
title = "T"
question = "Q?"
[workload]
payload = "1 KiB"
[factors]
protocol = ["h1", "h2"]
[compare]
factor = "protocol"
baseline = "h1"
"#;

#[test]
fn a_misspelt_study_is_answered_with_the_nearest_one() {
    check(&["run", "quik"], &["quik", "quick"]);
}

#[test]
fn a_study_file_that_is_not_there_is_named() {
    check(&["run", "nowhere/my.toml"], &["nowhere/my.toml"]);
}

#[test]
fn an_unknown_case_of_the_contract_suite_is_refused_with_existing_names() {
    check(&["endpoints", "check", "builtin", "--only", "client h4"], &["client h4", "client h3: the warm-up"]);
}

#[test]
fn a_misspelt_lab_preset_and_level_are_answered_with_the_nearest_ones() {
    check(&["run", "quick", "--lab", "lopback"], &["lopback", "loopback"]);
    check(&["run", "cloud-quic", "--preset", "smok"], &["smok", "smoke"]);
    check(&["run", "quick", "--set", "protocol=h1,h22"], &["h22", "h2"]);
    check(&["run", "quick", "--set", "protocl=h1"], &["protocl", "protocol"]);
}

#[test]
fn a_misspelt_factor_protocol_unit_key_and_metric_are_located() {
    check_study(&RIGHT.replace("protocol = [", "protocoll = ["), &["my.toml:7", "protocoll", "protocol"]);
    check_study(&RIGHT.replace("\"h2\"", "\"http2\""), &["my.toml:7", "http2", "h2"]);
    check_study(&RIGHT.replace("1 KiB", "1 KiBB"), &["my.toml:5", "1 KiBB", "32 KiB"]);
    check_study(&RIGHT.replace("payload", "paylod"), &["my.toml:5", "paylod", "payload"]);
    let metric = RIGHT.replace("baseline = \"h1\"", "baseline = \"h1\"\nmetrics = [\"response_medain\"]");
    check_study(&metric, &["my.toml", "response_medain", "response_median"]);
}

#[test]
fn all_mistakes_of_a_study_are_reported_at_once_each_with_its_place() {
    let text = r#"name = "my"
title = "T"
qestion = "Q?"
lab = "lopback"
observers = ["cpuu"]
[workload]
paylod = "1 KiBB"
requests = 0
[factors]
protocol = ["h1", "http2"]
[compare]
factor = "protocl"
baseline = "h11"
metrics = ["response_medain"]
margin = "500 %"
[blocks]
min = 40
max = 30
[[require]]
that = "response_p99 at most 50"
"#;
    let places =
        ["3:1", "4:7", "5:14", "7:1", "7:10", "8:12", "10:19", "12:10", "13:12", "14:12", "15:10", "18:7", "20:8"];
    let places = places.map(|place| format!("my.toml:{place}: "));
    let mut words: Vec<&str> = places.iter().map(String::as_str).collect();
    words.extend(["`question`?", "`loopback`?", "`payload`?", "`response_median`?", "13 mistakes"]);
    check_study(text, &words);
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("my.toml"), text).unwrap();
    run(folder.path(), &["studies", "check", "my.toml"]).with_status(2).complains(&words);
}

#[test]
fn processors_that_do_not_exist_are_refused_with_the_existing_ones() {
    let with = |value: &str| RIGHT.replace("payload = \"1 KiB\"", &format!("cpus = {value}"));
    check_study(&with("\"splt\""), &["my.toml:5:8", "splt", "`split`?"]);
    check_study(&with("{ clients = \"0\" }"), &["my.toml:5", "clients", "`client`"]);
    check_study(&with("{ client = \"1-\" }"), &["my.toml:5", "`1-` is not a list of processors such as `0`"]);
    check(&["run", "quick", "--set", "cpus=sharde"], &["--set cpus=sharde", "sharde", "`shared`?"]);
    // No machine of these tests has so many.
    let lists = RIGHT.replace("payload = \"1 KiB\"", "cpus = { client = \"1000\", server = \"0\" }");
    check_study(&lists, &["processors 1000 for the client", "but wirelab may use", "`shared` or `split`"]);
}

#[test]
fn a_misspelt_lab_observer_and_bit_rate_of_a_study_file_are_located() {
    let with = |line: &str| RIGHT.replace("[workload]", &format!("{line}\n[workload]"));
    check_study(&with("lab = \"loopbak\""), &["my.toml:4:7", "loopbak", "`loopback`?"]);
    check_study(&with("observers = [\"cpuu\"]"), &["my.toml:4:14", "cpuu", "`cpu`?"]);
    let rate = RIGHT.replace("payload = \"1 KiB\"", "placement = \"home\"\nbandwidth = \"20 Mbits\"");
    check_study(&rate, &["my.toml:6:13", "20 Mbits", "`20 Mbit/s`?"]);
}

#[test]
fn a_placement_that_the_lab_does_not_have_is_refused_before_a_run_is_made() {
    check(&["run", "quick", "--set", "placement=home"], &["home", "loopback", "`local`"]);
}

#[test]
fn empty_broken_and_huge_study_files_are_refused_at_once() {
    check_study("", &["my.toml"]);
    check_study("name = ", &["my.toml:1"]);
    let levels: Vec<_> = (1..=2000).map(|number| number.to_string()).collect();
    let huge = RIGHT.replace("[compare]", &format!("workers = [{0}]\nstreams = [{0}]\n[compare]", levels.join(", ")));
    check_study(&huge, &["my.toml", "cells"]);
    check_study(&format!("{RIGHT}# {}", "x".repeat(2 << 20)), &["1 MiB"]);
}

#[test]
fn an_endpoint_that_is_not_there_is_named() {
    check(&["run", "quick", "--set", "endpoint=go-nethttp", "--quiet"], &["go-nethttp"]);
    check(&["run", "quick", "--set", "endpoint=biultin", "--quiet"], &["biultin", "did you mean `builtin`"]);
}

#[test]
fn a_wrong_url_is_refused_with_the_reason() {
    check(&["load", "localhost:8080"], &["localhost:8080"]);
    check(&["load", "ftp://localhost/"], &["ftp"]);
    check(&["load", "--protocol", "h3", "http://localhost/"], &["h3", "https"]);
    check(&["load", "--protocol", "h4", "https://localhost/"], &["h4"]);
    check(&["probe", "http://localhost/"], &["https"]);
}

#[test]
fn a_run_folder_that_is_none_is_refused() {
    check(&["report", "nowhere"], &["nowhere"]);
    check(&["report"], &["wirelab run quick"]);
    check(&["resume"], &["wirelab run quick"]);
}

#[test]
fn an_unwritable_run_folder_is_named_with_the_remedy() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let said = run(folder.path(), &["run", "quick", "--lab", "fake", "--out", "file/runs", "--quiet"]);
    assert_ne!(said.status, 0);
    said.complains(&["file/runs"]);
}

#[test]
fn a_wrong_requirement_is_located_with_a_remedy() {
    let require = |that: &str| format!("{RIGHT}[[require]]\nthat = \"{that}\"\n");
    for (that, words) in [
        ("respose_p99 at most 50 ms", ["my.toml:12:8", "response_p99"]),
        ("response_p99 at most 50", ["has no unit", "50 ms"]),
        ("response_p99 at most 5 %", ["wrong unit", "a time"]),
        ("response_p99 at most 50 mss", ["50 mss", "`ms`"]),
        ("response_p99 below 50 ms", ["not a requirement", "at most 50 ms"]),
        ("response_p99 no more than 5 ms worse than the baseline", ["`5 ms` is no margin", "5 %"]),
        ("response_p99 no more than 5 % worse than the level h22", ["`h22` is not a level", "did you mean `h2`"]),
        ("errors at most 0 %", ["0 %", "at most 0.01 %"]),
        ("errors no more than 5 % worse than the baseline", ["share", "at most"]),
    ] {
        check_study(&require(that), &words);
    }
    check_study(
        &format!("{RIGHT}[[require]]\nthat = \"p99 at most 1 s\"\ncells = {{ protocl = \"h2\" }}\n"),
        &["my.toml:13", "protocol"],
    );
    check_study(
        &format!("{RIGHT}[[require]]\nthat = \"p99 at most 1 s\"\ninconclusive = \"fial\"\n"),
        &["fial", "`fail`"],
    );
}

#[test]
fn a_wrong_unit_of_a_claim_is_located() {
    let claim = |of: &str, expect: &str| {
        format!(
            "{RIGHT}[[claims]]\nid = \"C\"\ntext = \"T\"\ntests = [{{ metric = \"response_median\", of = [{of}], expect = \"{expect}\" }}]\n"
        )
    };
    let (one, two) = ("{ protocol = \"h1\" }", "{ protocol = \"h1\" }, { protocol = \"h2\" }");
    check_study(&claim(one, "< 5 %"), &["my.toml:14", "wrong unit"]);
    check_study(&claim(two, "< 5 ms"), &["a ratio", "1.5"]);
    check_study(&claim(one, "< 5 mss"), &["5 mss", "`ms`"]);
}

#[test]
fn a_wrong_condition_of_failure_is_answered_with_examples() {
    check(&["run", "quick", "--fail-on", "p99"], &["p99 > 50 ms", "inconclusive"]);
    check(&["run", "quick", "--fail-on", "p9 > 50 ms"], &["unknown metric `p9`", "p90"]);
    check(&["run", "quick", "--fail-on", "p99 > 50"], &["has no unit", "50 ms"]);
    check(&["load", "--fail-on", "p99 5 % worse", "http://localhost:1/"], &["no baseline"]);
}

#[test]
fn redirects_of_several_urls_are_refused() {
    check(&["load", "--follow", "1", "http://localhost:1/a", "http://localhost:1/b"], &["--follow", "one URL"]);
    check(&["load", "--follow", "1", "http://localhost:1/{{a}}"], &["--follow", "placeholders"]);
    check(&["load", "--follow", "99", "http://localhost:1/"], &["--follow", "1..=20"]);
}

#[test]
fn a_requirement_for_which_there_is_no_highest_rate_is_answered_with_examples() {
    let find = |that: &str, words: &[&str]| check(&["load", "--find-rate", that, "http://localhost:1/"], words);
    find("p99 < 50 ms", &["p99 at most"]);
    find("p99 at most 50", &["has no unit", "50 ms"]);
    find("p9 at most 50 ms", &["unknown metric `p9`", "p90"]);
    find("rate at least 900/s", &["--find-rate", "upper bound", "'p99 at most 50 ms'"]);
    let both = ["load", "--find-rate", "p99 at most 1 s", "--fail-on", "p99 > 1 s", "http://localhost:1/"];
    check(&both, &["--find-rate", "--fail-on"]);
}
