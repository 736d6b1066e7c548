//! The guard of a wirelab that is killed. This program plays guard, wirelab and test in turn.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wirelab_lab::{Guard, LocalProcess, Process, Role};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::Event;
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;

/// Time-out of a failed test.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server with a child, a grandchild, and a descendant outside its process group and session; all of them ignore
/// polite signals.
const FAMILY: &str = r#"trap '' TERM INT HUP
    sleep 1000 & echo $! >> pids
    sh -c 'sleep 1000 & echo $! >> pids'
    setsid sh -c 'echo $$ >> pids; exec sleep 1000' &
    while [ "$(wc -l < pids)" -lt 3 ]; do sleep 0.01; done
    echo $$ >> pids
    echo '{"event":"ready","port":1}'
    read word"#;

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(nothing_is_left_after_wirelab_was_killed),
        test!(nothing_is_left_after_wirelab_was_killed_with_its_group),
        test!(a_guard_that_is_dropped_ends_what_escaped),
        test!(a_program_that_is_no_guard_is_refused),
    ]
}

fn nothing_is_left_after_wirelab_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut wirelab = start_wirelab(folder.path());
    wirelab.kill().unwrap();
    wirelab.wait().unwrap();
    assert_all_gone(folder.path());
}

fn nothing_is_left_after_wirelab_was_killed_with_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut wirelab = start_wirelab(folder.path());
    // A signal to the whole process group of wirelab, as a terminal or `timeout` sends it.
    let group = format!("-{}", wirelab.id());
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
    wirelab.wait().unwrap();
    assert_all_gone(folder.path());
}

fn a_guard_that_is_dropped_ends_what_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let guard = Arc::new(Guard::start(&std::env::current_exe().unwrap()).unwrap());
    let mut server = start_family(folder.path(), &guard);
    assert!(matches!(server.next_event(Instant::now() + TIMEOUT), Ok(Event::Ready { .. })));
    drop(server);
    drop(guard);
    assert_all_gone(folder.path());
}

fn a_program_that_is_no_guard_is_refused() {
    for (program, why) in [
        ("/bin/true", "it ended at once"),
        ("/bin/echo", "it printed `guard\\n`"),
        ("/no/such", "deleted"),
        ("/usr/bin/yes", "it printed `guard\\n"),
    ] {
        let error = Guard::start(Path::new(program)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// Starts a guard and a server, prints their ids, and waits to be killed.
pub fn play_wirelab(folder: &Path) -> ExitCode {
    let guard = Arc::new(Guard::start(&std::env::current_exe().unwrap()).unwrap());
    let mut server = start_family(folder, &guard);
    let ready = server.next_event(Instant::now() + TIMEOUT);
    println!("{}", if matches!(ready, Ok(Event::Ready { .. })) { "running" } else { "broken" });
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
    ExitCode::SUCCESS
}

fn start_wirelab(folder: &Path) -> Child {
    use std::os::unix::process::CommandExt;
    let mut wirelab = Command::new(std::env::current_exe().unwrap())
        .arg("play-wirelab")
        .arg(folder)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(wirelab.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "running\n");
    wirelab
}

fn start_family(folder: &Path, guard: &Arc<Guard>) -> LocalProcess {
    let endpoint = Endpoint {
        name: "family".to_owned(),
        command: ["/bin/sh", "-c", FAMILY, "endpoint"].map(str::to_owned).to_vec(),
        environment: IndexMap::new(),
        folder: Some(folder.to_owned()),
        installation: None,
    };
    std::fs::write(folder.join("pids"), "").unwrap();
    let (spec, log) = (folder.join("spec.json"), folder.join("log"));
    LocalProcess::start(&endpoint, Role::Server, &spec, &log, Some(Arc::clone(guard))).unwrap()
}

fn assert_all_gone(folder: &Path) {
    let pids = std::fs::read_to_string(folder.join("pids")).unwrap();
    assert_eq!(pids.lines().count(), 4, "{pids}");
    let until = Instant::now() + TIMEOUT;
    for pid in pids.lines() {
        while is_running(pid) {
            assert!(Instant::now() < until, "process {pid} is left");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Whether a process exists and is no zombie. Its new parent removes zombies.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
