//! Studies whose client is a program of the user.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use wirelab_testkit::lab::{all_trials, trials};
use wirelab_testkit::{Said, run};

/// Sends requests one after the other, and prints what it measured as load generators do.
const CLIENT: &str = r#"
import http.client, ssl, sys, time, urllib.parse

url, requests = urllib.parse.urlsplit(sys.argv[1]), int(sys.argv[2])
times = []
if url.scheme == "https":
    context = ssl.create_default_context(cafile=sys.argv[3])
    connection = http.client.HTTPSConnection(url.netloc, context=context)
else:
    connection = http.client.HTTPConnection(url.netloc)
for _ in range(requests):
    begun = time.monotonic()
    connection.request("GET", url.path)
    response = connection.getresponse()
    response.read()
    assert response.status == 200, response.status
    times.append(time.monotonic() - begun)
times.sort()
print(f"{requests} requests, 0 failed")
print(f"  50%  {times[len(times) // 2] * 1e6:.2f}us")
print(f'{{"max": {times[-1]}}}')
"#;

const OUTPUT: &str = r#"client_output = { requests = '(\d+) requests', failed = '(\d+) failed', response_median = '50% +(\S+)', response_max = '"max": (?<s>[0-9.e-]+)' }"#;

/// The interpreter itself: `python3` may be a script whose children end in the window.
fn python() -> String {
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

/// Runs a study of one block with these settings beside `requests = 30`.
fn run_study(settings: &str, more: &[&str]) -> (TempDir, Said) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("client.py"), CLIENT).unwrap();
    let study = format!(
        "name = \"own\"\ntitle = \"A program as the client\"\nquestion = \"Which document is slower?\"\nlab = \
         \"loopback\"\n[workload]\nrequests = 30\n{settings}\n[factors]\npayload = [\"1 KiB\", \"2 KiB\"]\n[compare]\n\
         factor = \"payload\"\nbaseline = \"1 KiB\"\nmetrics = [\"response_median\", \
         \"cpu_client_per_request\"]\n[blocks]\nmin = 1\nmax = 1\n"
    );
    fs::write(folder.path().join("study.toml"), study).unwrap();
    let said = run(folder.path(), &[&["run", "study.toml", "--quiet"], more].concat());
    (folder, said)
}

#[test]
fn a_program_is_measured_and_what_it_prints_are_its_response_times() {
    let python = python();
    for (protocol, more) in [("h1c", ""), ("h1", ", \"{ca}\"")] {
        let settings = format!(
            "protocol = \"{protocol}\"\nwarm_up = 5\nclient_command = [\"{python}\", \"client.py\", \"{{url}}\", \
             \"{{requests}}\"{more}]\n{OUTPUT}"
        );
        let (folder, said) = run_study(&settings, &[]);
        said.with_status(0);
        for (_, trial) in trials(folder.path()) {
            let values = &trial["values"];
            let number = |name: &str| values[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", values[name]));
            assert_eq!((number("requests"), number("error_share")), (30.0, 0.0));
            assert!(number("response_median") <= number("response_max"), "{values}");
            // The window is the life of the program, its start included.
            assert!(number("total_time") > 30.0 * number("response_median") / 2.0, "{values}");
            // Python alone takes some milliseconds to start.
            assert!(number("cpu_client_per_request") > 1e5, "{values}");
            assert_eq!(values["memory_client_peak"]["code"], "no-peak");
            assert_eq!(values["response_p99"]["code"], "not-printed");
        }
        let report = run(folder.path(), &["report", "--full"]).with_status(0).out;
        for words in ["cannot check the response times", "Not planted: the client is your program"] {
            assert!(report.contains(words), "`{words}` is missing in:\n{report}");
        }
    }
}

/// The reason why each trial of a program with these words failed.
#[track_caller]
fn failed(words: &Value, output: &str, wanted: &[&str]) {
    let settings = format!("protocol = \"h1c\"\nclient_command = {words}\n{output}");
    let (folder, _) = run_study(&settings, &[]);
    let trials = all_trials(folder.path());
    assert!(!trials.is_empty());
    for (_, trial) in trials {
        assert_eq!((&trial["outcome"], &trial["blame"]), (&json!("failed"), &json!("client")), "{trial}");
        let reason = trial["reason"].to_string();
        assert!(wanted.iter().all(|words| reason.contains(words)), "{reason}");
    }
}

#[test]
fn a_program_that_fails_or_says_what_is_not_so_fails_the_trial() {
    let python = |url: &str, requests: &str| json!(["python3", "client.py", url, requests]);
    failed(&json!(["sh", "-c", "exit 3 # {url} {requests}"]), "", &["ended with exit status: 3"]);
    failed(&python("{url}/missing", "{requests}"), OUTPUT, &["ended with exit status: 1"]);
    failed(&python("{url}", "{requests}"), "client_output = { failed = 'errors: (.)' }", &["printed no", "errors"]);
    failed(&python("{url}", "2{requests}"), OUTPUT, &["230"]);
    // The server has counted fewer requests than the program says by its silence.
    failed(&json!(["sh", "-c", "true {url} {requests}"]), "", &["30"]);
}

#[test]
fn a_wrong_command_is_refused_before_anything_starts() {
    let refused = |settings: &str, more: &[&str], words: &[&str]| {
        run_study(&format!("protocol = \"h1c\"\n{settings}"), more).1.with_status(2).complains(words)
    };
    refused(
        "client_command = [\"./missing\", \"{port}\", \"{requests}\"]\nclient = \"engine\"",
        &[],
        &["`client` is set"],
    );
    refused("client_command = [\"a\", \"{url}\"]", &[], &["the cell `payload=1 KiB`", "{requests}"]);
    refused(
        "client_command = [\"a\", \"{url}\", \"{requests}\"]\nclient_output = { p50 = \"(.)\" }",
        &[],
        &["p50", "response_median"],
    );
}
