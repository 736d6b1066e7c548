//! `wirelab ab --bisect` in a git repository of a test.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use wirelab_testkit::servers::Place;
use wirelab_testkit::{Said, eventually, processes, run, said, wirelab};

/// A server whose answers take so many milliseconds.
fn server(delay: u32) -> String {
    format!(
        r#"
import sys, time, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    def do_GET(self):
        time.sleep({delay} / 1000)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#
    )
}

#[track_caller]
fn git(place: &Place, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=n", "-c", "user.email=n@example"]).args(args).current_dir(place.folder());
    said(command.output().unwrap()).with_status(0).out
}

/// A repository whose second commit makes the server slower, and whose third one changes only a comment of nothing.
fn repository() -> Place {
    let place = Place::new();
    git(&place, &["init", "--quiet"]);
    for (subject, delay, note) in [("begin", 1, "one"), ("sleep longer", 15, "two"), ("write a note", 15, "three")] {
        fs::write(place.path("server.py"), server(delay)).unwrap();
        fs::write(place.path("note"), note).unwrap();
        git(&place, &["add", "server.py", "note"]);
        git(&place, &["commit", "--quiet", "--message", subject]);
    }
    place
}

const START: &str = "python3 {tree}/server.py {port}";

#[track_caller]
fn bisect(place: &Place, range: &str, build: &str, more: &[&str]) -> Said {
    run(place.folder(), &[&["ab", "--quiet", "--bisect", range, "--build", build, "--start", START], more].concat())
}

#[test]
fn the_first_slow_commit_is_found_and_its_working_trees_are_removed() {
    let place = repository();
    let short = ["requests=8", "warm_up=0", "blocks.max=10", "planted=0 %"].map(|set| ["--set", set]).concat();
    let found = bisect(&place, "HEAD~2..", "true", &[&short[..], &["--json"]].concat()).with_status(3);
    let found = found.complains(&["the first bad build is", "sleep longer"]);
    let found: Value = serde_json::from_str(&found.out).unwrap();
    assert!(found["suspects"][0].as_str().unwrap().ends_with(" sleep longer"), "{found}");
    assert_eq!((&found["suspects"][1], &found["confirmed"]), (&Value::Null, &Value::Bool(true)));
    // The third commit starts the same program as the second one.
    assert_eq!(found["steps"][1]["result"]["verdict"], "same", "{found}");
    assert_eq!(git(&place, &["worktree", "list"]).lines().count(), 1);
}

#[test]
#[ignore = "minutes of processor time in all: make test-slow"]
fn the_first_slow_build_of_a_list_is_found_though_it_takes_many_times_as_long() {
    let place = Place::new();
    for (name, delay) in [("one", 1), ("two", 15), ("three", 16)] {
        fs::write(place.path(&format!("{name}.py")), server(delay)).unwrap();
    }
    let [one, two, three] = ["one", "two", "three"].map(|name| format!("python3 {name}.py {{port}}"));
    let mut words = vec!["ab", "--quiet", "--json", "--base", &one, "--bisect", &two, "--head", &three];
    words.extend(["requests=8", "warm_up=0", "blocks.max=10", "planted=0 %"].iter().flat_map(|set| ["--set", set]));
    let found = run(place.folder(), &words).with_status(3).complains(&["the first bad build is", "two.py"]);
    let found: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(found["suspects"], serde_json::json!([two]), "{found}");
}

#[test]
fn ranges_and_builds_that_cannot_be_searched_start_nothing() {
    let place = repository();
    for (range, words) in [
        ("HEAD", "GOOD..BAD"),
        ("HEAD~2...HEAD", "GOOD..BAD"),
        ("nothing..HEAD", "`nothing` is no commit"),
        ("HEAD..HEAD~1", "GOOD is not among the commits before BAD"),
        ("HEAD..HEAD", "GOOD is not among the commits before BAD"),
    ] {
        bisect(&place, range, "true", &[]).with_status(2).complains(&["--bisect", words]);
    }
    let words = ["ab", "--bisect", "HEAD~1..HEAD", "--build", "true", "--start", "./server {port}"];
    run(place.folder(), &words).with_status(2).complains(&["{tree}"]);
    run(place.folder(), &["ab", "--bisect", "HEAD~1..HEAD"]).with_status(2).complains(&["--base"]);
    let failed = bisect(&place, "HEAD~1..HEAD", "echo no compiler; exit 7", &[]).with_status(1);
    failed.complains(&["cannot be used", "exit status: 7", "no compiler"]);
    assert!(!place.path("wirelab-runs").exists());
    assert_eq!(git(&place, &["worktree", "list"]).lines().count(), 1);
    let elsewhere = Place::new();
    bisect(&elsewhere, "HEAD~1..HEAD", "true", &[]).with_status(2).complains(&["git repository"]);
}

#[test]
fn ctrl_c_ends_a_build_and_removes_its_working_tree() {
    let place = repository();
    let mark = format!("98{}", std::process::id());
    let build = format!("sleep {mark}");
    let words = ["ab", "--bisect", "HEAD~1..HEAD", "--build", &build, "--start", START];
    let mut command = wirelab(place.folder(), &words);
    let mut bisecting = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let sleeping = format!("sleep\0{mark}");
    eventually("the start of the build", || !processes(&sleeping).is_empty());
    let sent = Command::new("kill").args(["-INT", &bisecting.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(bisecting.wait().unwrap().code(), Some(130));
    // The killed process may need a processor to end.
    eventually("the end of the build", || processes(&sleeping).is_empty());
    assert_eq!(git(&place, &["worktree", "list"]).lines().count(), 1);
}
