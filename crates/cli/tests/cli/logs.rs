//! The log: on standard error, in the run folder, and through `wirelab logs`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;
use wirelab_testkit::servers::interrupt;
use wirelab_testkit::{eventually, only_run, run, said, wirelab};

const STUDY: &str = r#"
    name = "logged"
    title = "t"
    question = "q"
    [workload]
    client = "talking"
    server = "talking"
    requests = 3
    [factors]
    protocol = ["h1c", "h2c"]
    [compare]
    factor = "protocol"
    baseline = "h1c"
    [blocks]
    min = 1
    max = 1
"#;

/// An endpoint that writes to standard error, and otherwise does what the built-in one does.
const TALKING: &str = r#"
[ "$1" = describe ] && { "$WIRELAB" endpoint describe | sed 's/"builtin"/"talking"/'; exit; }
echo "hello from the $1" >&2
exec "$WIRELAB" endpoint "$@"
"#;

/// The same, but the client of a trial starts only after a line in the named pipe `$GATE`.
const WAITING: &str = r#"
[ "$1" = describe ] && { "$WIRELAB" endpoint describe | sed 's/"builtin"/"talking"/'; exit; }
echo "hello from the $1" >&2
case "$1 $3" in */unknown-client.json) ;; client*) read -r line < "$GATE" ;; esac
exec "$WIRELAB" endpoint "$@"
"#;

/// A run of the study with an endpoint `talking`.
fn logged(folder: &Path, script: &str) -> Command {
    fs::write(folder.join("logged.toml"), STUDY).unwrap();
    let talking = folder.join("endpoints/talking");
    fs::create_dir_all(&talking).unwrap();
    fs::write(talking.join("endpoint.toml"), "name = \"talking\"\ncommand = [\"sh\", \"talking.sh\"]\n").unwrap();
    fs::write(talking.join("talking.sh"), script).unwrap();
    let mut command = wirelab(folder, &["run", "logged.toml", "--quiet"]);
    command.env("WIRELAB", wirelab_testkit::program());
    command
}

const FAKE: [&str; 6] = ["run", "null", "--preset", "smoke", "--lab", "fake"];

/// The objects in lines of JSON.
fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Names of the spans of a line, outermost first.
fn spans(line: &Value) -> Vec<&str> {
    line["spans"].as_array().into_iter().flatten().filter_map(|span| span["name"].as_str()).collect()
}

#[test]
fn without_an_option_nothing_of_the_log_is_shown_but_the_run_keeps_it() {
    let folder = tempdir().unwrap();
    let quiet = run(folder.path(), &[&FAKE[..], &["--quiet"]].concat()).with_status(0);
    assert_eq!(quiet.err, "");
    let kept = fs::read_to_string(only_run(folder.path()).join("log.jsonl")).unwrap();
    let lines = objects(&kept);
    assert!(lines.iter().all(|line| line["level"] != "DEBUG"), "{kept}");
    let started = lines.iter().filter(|line| line["message"] == "trial started").count();
    let ended = lines.iter().filter(|line| line["message"] == "trial succeeded").count();
    assert!(started > 1 && started == ended, "{kept}");
}

#[test]
fn more_letters_v_show_spans_and_then_messages() {
    let folder = tempdir().unwrap();
    let once = run(folder.path(), &[&FAKE[..], &["-v", "--quiet"]].concat()).with_status(0).err;
    let line = once.lines().find(|line| line.ends_with("trial started")).unwrap_or_else(|| panic!("{once}"));
    for span in ["run{study=", ":block{number=0}:", "trial{number=0 cell="] {
        assert!(line.contains(span), "`{span}` is not in {line}");
    }
    assert!(once.contains(":role{role=\"server\"") && !once.contains("DEBUG"), "{once}");
    let twice = run(folder.path(), &[&FAKE[..], &["-vv", "--quiet"]].concat()).with_status(0).err;
    assert!(twice.contains("DEBUG") && twice.contains("sent command=\"go\""), "{twice}");
}

#[test]
fn a_filter_selects_and_lines_of_json_name_all_spans() {
    let folder = tempdir().unwrap();
    let mut command = wirelab(folder.path(), &[&FAKE[..], &["--log-format", "json", "--quiet"]].concat());
    let text = said(command.env("WIRELAB_LOG", "off,wirelab_run=debug").output().unwrap()).with_status(0).err;
    let lines = objects(&text);
    let go = lines.iter().find(|line| line["command"] == "go").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(spans(go), ["run", "block", "trial", "role"]);
    assert!(lines.iter().all(|line| line["target"].as_str().unwrap().starts_with("wirelab_run")), "{text}");

    let wrong = said(wirelab(folder.path(), &["studies"]).env("WIRELAB_LOG", "debgu").output().unwrap());
    wrong.with_status(2).complains(&["WIRELAB_LOG: `debgu` is not a level, did you mean `debug`"]);
}

#[test]
fn a_trial_shows_wirelab_and_its_processes_in_the_order_of_time() {
    let folder = tempdir().unwrap();
    said(logged(folder.path(), TALKING).output().unwrap()).with_status(0);

    let shown = run(folder.path(), &["logs", "--trial", "1"]).with_status(0).out;
    let place = |words: &str| shown.find(words).unwrap_or_else(|| panic!("`{words}` is not in:\n{shown}"));
    let own = [
        "INFO  trial started",
        "INFO  server 0: started",
        "INFO  client 0: started",
        "INFO  client 0: ended status=Code(0)",
        "INFO  server 0: ended status=Code(0)",
        "INFO  trial succeeded",
    ];
    assert!(own.map(place).is_sorted(), "{shown}");
    // A process may speak before wirelab logs that it was started.
    for said in ["hello from the server", "hello from the client"] {
        assert!(["INFO  trial started", said, "INFO  trial succeeded"].map(place).is_sorted(), "{shown}");
    }
    assert!(shown.lines().all(|line| line.contains("  trial 1 ")), "{shown}");

    let all = objects(&run(folder.path(), &["logs", "--json"]).with_status(0).out);
    let said = |line: &&Value| line["message"] == "hello from the client" && line["source"] == "client";
    let trials: Vec<_> = all.iter().filter(said).map(|line| line["trial"].as_u64().unwrap()).collect();
    // Two cells, and the A/A twin of the baseline.
    assert_eq!(trials, [0, 1, 2]);
    assert!(all.iter().map(|line| line["timestamp"].as_str().unwrap()).is_sorted());
}

/// A process whose standard output is read line by line.
struct Printing {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Printing {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Its lines up to and including the first one with these words.
    fn until(&mut self, words: &str) -> Vec<String> {
        let mut read = Vec::new();
        while !read.last().is_some_and(|line: &String| line.contains(words)) {
            let next = self.lines.next().unwrap_or_else(|| panic!("`{words}` is not in {read:?}"));
            read.push(next.unwrap());
        }
        read
    }
}

/// A run in progress whose clients wait at this gate.
fn waiting(folder: &Path, gate: &Path) -> Child {
    assert!(Command::new("mkfifo").arg(gate).status().unwrap().success());
    let child = logged(folder, WAITING).env("GATE", gate).stdout(Stdio::null()).spawn().unwrap();
    let manifest = || {
        let run = fs::read_dir(folder.join("wirelab-runs")).ok()?.flatten().next()?;
        Some(run.path().join("manifest.json"))
    };
    eventually("the manifest of the run", || manifest().is_some_and(|path| path.exists()));
    child
}

#[test]
fn the_guard_of_a_killed_run_logs_what_it_ended() {
    let folder = tempdir().unwrap();
    let mut in_progress = waiting(folder.path(), &folder.path().join("gate"));
    let mut logs = Printing::start(wirelab(folder.path(), &["logs", "--follow"]));
    logs.until("hello from the client");
    in_progress.kill().unwrap();
    in_progress.wait().unwrap();
    assert!(logs.child.wait().unwrap().success());
    let of_guard = || -> Vec<String> {
        let shown = run(folder.path(), &["logs", "--trial", "0"]).with_status(0).out;
        let ended = "  guard      WARN wirelab ended before it ended this process group group=";
        shown.lines().filter(|line| line.contains(ended)).map(str::to_owned).collect()
    };
    // The server and the client.
    eventually("the log of the guard", || of_guard().len() == 2);
}

#[test]
fn lines_of_a_run_in_progress_are_printed_as_they_come_until_it_ends() {
    let folder = tempdir().unwrap();
    let gate = folder.path().join("gate");
    let mut in_progress = waiting(folder.path(), &gate);
    let mut all = Printing::start(wirelab(folder.path(), &["logs", "--follow"]));
    let mut first = Printing::start(wirelab(folder.path(), &["logs", "-f", "--trial", "0"]));
    let mut printed = Vec::new();
    for trial in 0..3 {
        // The client waits, so the run cannot have ended.
        printed.extend(all.until("hello from the client"));
        assert!(printed.last().unwrap().contains(&format!("  trial {trial} ")), "{printed:#?}");
        if trial == 0 {
            first.until("hello from the client");
        }
        let mut opened = None;
        eventually("the client at the gate", || {
            opened = File::options().write(true).custom_flags(libc::O_NONBLOCK).open(&gate).ok();
            opened.is_some()
        });
        writeln!(opened.unwrap()).unwrap();
        if trial == 1 {
            // Ctrl-C ends the reader, and not the run.
            interrupt(&first.child);
            assert_eq!(first.child.wait().unwrap().code(), Some(0));
        }
    }
    assert!(in_progress.wait().unwrap().success());
    printed.extend(all.lines.map(Result::unwrap));
    assert!(all.child.wait().unwrap().success());
    let mut kept: Vec<_> = run(folder.path(), &["logs"]).with_status(0).out.lines().map(str::to_owned).collect();
    printed.sort();
    kept.sort();
    assert_eq!(printed, kept);
    // The end of the run is known, so a trial that it does not have is a fault.
    run(folder.path(), &["logs", "--follow", "--trial", "3"])
        .with_status(2)
        .complains(&["no trial 3; did you mean 2?"]);
}

#[test]
fn an_unknown_run_or_trial_names_the_nearest_one() {
    let folder = tempdir().unwrap();
    run(folder.path(), &[&FAKE[..], &["--quiet"]].concat()).with_status(0);
    let name = only_run(folder.path()).file_name().unwrap().to_string_lossy().into_owned();
    let misspelt = format!("wirelab-runs/{}", name.replace("null", "nul"));
    let meant = format!("did you mean wirelab-runs/{name}?");
    for command in ["logs", "report"] {
        run(folder.path(), &[command, &misspelt]).with_status(2).complains(&["no run folder", &meant]);
    }
    run(folder.path(), &["logs", "--trial", "4711"]).with_status(2).complains(&["no trial 4711; did you mean "]);
}
