//! The suite can fail: it finds endpoints that deliberately break the contract, for the right reason.

use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

use wirelab_model::endpoint::Endpoint;
use wirelab_suite::{Limits, Report, Verdict, check_within};

/// Longer than the start of a shell on a busy machine; short enough for the tests of hanging endpoints.
const LIMITS: Limits =
    Limits { step: Duration::from_secs(5), whole: Duration::from_secs(600), at_once: NonZero::<usize>::MIN };

const DESCRIPTION: &str = r#"{"contract":1,"name":"broken","library":"sh","version":"1","language":"sh","server":{"protocols":["h1c"],"features":["files"]},"client":{"protocols":["h1c"],"features":["files"]}}"#;

/// Checks an endpoint that describes itself properly and runs this shell script in every role.
fn check_script(script: &str) -> Report {
    check_whole(&format!("if [ $1 = describe ]; then echo '{DESCRIPTION}'; exit 0; fi\n{script}"))
}

fn check_whole(script: &str) -> Report {
    check_with(LIMITS, script)
}

fn check_with(limits: Limits, script: &str) -> Report {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let broken = shell(folder.path(), "broken", script);
    let reference = shell(folder.path(), "reference", &format!("echo '{DESCRIPTION}' | sed s/broken/reference/"));
    check_within(&broken, &reference, folder.path(), limits, &mut |_| {})
}

fn shell(folder: &Path, name: &str, script: &str) -> Endpoint {
    let path = folder.join(format!("{name}.sh"));
    fs::write(&path, script).expect("the script can be written");
    let command = vec!["sh".to_owned(), path.to_string_lossy().into_owned()];
    Endpoint { name: name.to_owned(), command, environment: Default::default(), folder: None, installation: None }
}

/// The reason why a case failed.
fn reason<'a>(report: &'a Report, name: &str) -> &'a str {
    let case = report.cases.iter().find(|case| case.name.contains(name));
    let case = case.unwrap_or_else(|| panic!("no case `{name}` in {report:#?}"));
    match &case.verdict {
        Verdict::Failed(reason) => reason,
        other => panic!("`{name}` should have failed, but {other:?}"),
    }
}

fn assert_reason(report: &Report, name: &str, words: &[&str]) {
    let reason = reason(report, name);
    for word in words {
        assert!(reason.contains(word), "`{word}` is not in: {reason}");
    }
}

#[test]
fn a_program_that_does_not_describe_itself_fails_at_once() {
    let report = check_whole("echo hello");
    assert_eq!((report.cases.len(), report.failed()), (1, 1));
    assert_reason(&report, "describe", &["hello"]);
}

#[test]
fn a_description_with_another_name_is_caught() {
    let report = check_whole(&format!("echo '{}'", DESCRIPTION.replace("broken", "other")));
    assert_reason(&report, "describe", &["`broken`", "`other`"]);
}

#[test]
fn exit_status_0_for_an_unknown_protocol_is_caught() {
    let report = check_script("exit 0");
    assert_reason(&report, "an unknown protocol", &["expected `ready`", "exit status 0"]);
    assert_eq!(report.passed(), 1, "only the description is right: {report:#?}");
}

#[test]
fn going_on_with_an_unknown_protocol_is_caught() {
    let report = check_script("echo '{\"event\":\"ready\",\"port\":1}'; read word; echo '{\"event\":\"done\"}'");
    assert_reason(&report, "an unknown protocol", &["expected `unsupported` and status 127", "it accepted the spec"]);
}

#[test]
fn status_127_without_its_event_and_the_event_without_its_status_are_caught() {
    let report = check_script("exit 127");
    assert_reason(&report, "an unknown protocol", &["exit status 127 without an event"]);
    let report = check_script("echo '{\"event\":\"unsupported\",\"message\":\"no\"}'; exit 3");
    assert_reason(&report, "an unknown protocol", &["expected exit status 127", "exit status 3"]);
}

#[test]
fn a_refusal_of_everything_is_caught_where_the_description_promised() {
    let report = check_script("echo '{\"event\":\"unsupported\",\"message\":\"I would rather not\"}'; exit 127");
    assert_reason(&report, "`ready` means", &["expected the server to accept the spec", "I would rather not"]);
}

#[test]
fn nonsense_is_shown_with_the_log() {
    let report = check_script("echo 'an error, deep in the log' >&2; echo 'Listening on port 80'; sleep 60");
    assert_reason(
        &report,
        "an unknown protocol",
        &["not an event", "Listening on port 80", "an error, deep in the log"],
    );
}

#[test]
fn a_flood_is_cut() {
    let report = check_script("yes '{\"event\":\"warm\"}'");
    assert_reason(&report, "an unknown protocol", &["warm"]);
    let report = check_script("yes | tr -d '\\n'");
    assert_reason(&report, "an unknown protocol", &["not an event", "more than"]);
}

#[test]
fn an_endpoint_that_hangs_is_given_up() {
    let report = check_script("sleep 600");
    assert_reason(&report, "an unknown protocol", &["it hung"]);
    assert_eq!(report.failed(), 3, "the suite tries three times, not a hundred: {report:#?}");
    let untried =
        report.cases.iter().filter(|case| matches!(&case.verdict, Verdict::NotTried(why) if why.contains("hung")));
    assert!(untried.count() > 10);
    assert_eq!(report.not_tried() + report.passed() + report.failed() + report.not_applicable(), report.cases.len());
}

#[test]
fn an_endpoint_that_is_slow_in_every_case_is_given_up_and_that_is_no_pass() {
    let limits = Limits { whole: Duration::ZERO, ..LIMITS };
    let report = check_with(limits, &format!("echo '{DESCRIPTION}'"));
    assert_eq!((report.passed(), report.failed()), (1, 0), "the description is always asked for: {report:#?}");
    assert!(report.not_tried() > 10, "{report:#?}");
}

#[test]
fn a_server_that_reports_ready_too_early_is_caught() {
    let report = check_script("echo '{\"event\":\"ready\",\"port\":1}'; read word; echo '{\"event\":\"done\"}'");
    assert_reason(&report, "`ready` means", &["expected TCP port 1 to accept"]);
    assert_reason(&report, "a port in use", &["expected `error`", "it accepted the spec"]);
}

#[test]
fn a_server_that_does_not_stop_is_caught() {
    let report = check_script("echo '{\"event\":\"ready\",\"port\":1}'; sleep 60");
    assert_reason(&report, "it ends cleanly on `stop`", &["`done`", "hung"]);
}

#[test]
fn a_report_of_more_packets_lost_than_sent_is_caught() {
    let transport = r#"{"connections":1,"packets_sent":1,"packets_lost":2}"#;
    let script =
        format!(r#"echo '{{"event":"ready","port":1}}'; read word; echo '{{"event":"done","transport":{transport}}}'"#);
    let report = check_script(&script);
    assert_reason(&report, "it ends cleanly on `stop`", &["`done.transport`", "2 packets were lost of 1"]);
}
