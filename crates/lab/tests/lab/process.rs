//! Endpoints that misbehave, as `sh` scripts.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wirelab_lab::{EventError, ExitStatus, LocalProcess, Process, Role};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Command, Event};
use wirelab_testkit::{Skip, skip};

/// Long enough for each script on a loaded machine. Only a failed test waits that long.
const TIMEOUT: Duration = Duration::from_secs(60);

fn soon() -> Instant {
    Instant::now() + TIMEOUT
}

/// A deadline for an event that must not come. A short one cannot make a correct program fail.
fn at_once() -> Instant {
    Instant::now() + Duration::from_millis(50)
}

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn start(&self, script: &str) -> LocalProcess {
        self.start_endpoint(&endpoint(script, self.folder.path())).unwrap()
    }

    fn start_endpoint(&self, endpoint: &Endpoint) -> Result<LocalProcess, wirelab_lab::LabError> {
        LocalProcess::start(endpoint, Role::Server, &self.folder.path().join("spec.json"), &self.log(), None)
    }
}

fn endpoint(script: &str, folder: &Path) -> Endpoint {
    let command = ["/bin/sh", "-c", script, "endpoint"].map(str::to_owned).to_vec();
    let environment = IndexMap::from([("GREETING".to_owned(), "hello".to_owned())]);
    Endpoint { name: "script".to_owned(), command, environment, folder: Some(folder.to_owned()), installation: None }
}

/// Waits until a process has ended, or is a zombie that only its new parent can remove. `false` after the time-out.
fn disappears(pid: &str) -> bool {
    let until = soon();
    while Instant::now() < until {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        if stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z')) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn an_endpoint_gets_role_spec_environment_and_folder_and_its_words_arrive_in_order() {
    let scene = Scene::new();
    let mut process = scene.start(
        r#"echo "$1 $2 $3 $GREETING $PWD" >&2
           echo '{"event":"ready","port":7}'; read word; echo '{"event":"end","window_ns":5}'
           read word; echo "$word" >&2; echo '{"event":"done"}'"#,
    );
    assert!(matches!(process.next_event(soon()), Ok(Event::Ready { port: Some(7), .. })));
    assert_eq!(process.next_event(at_once()), Err(EventError::Deadline));
    process.send(Command::Go).unwrap();
    assert_eq!(process.next_event(soon()), Ok(Event::End { window_ns: 5 }));
    process.send(Command::Stop).unwrap();
    assert!(matches!(process.next_event(soon()), Ok(Event::Done { .. })));
    let exit = process.end(soon());
    assert_eq!(exit.status, ExitStatus::Code(0));
    let folder = scene.folder.path().canonicalize().unwrap();
    let said =
        format!("server --spec {} hello {}\nstop", scene.folder.path().join("spec.json").display(), folder.display());
    assert_eq!(exit.last_words, said);
    let log = std::fs::read_to_string(scene.log()).unwrap();
    let lines: Vec<_> = log.lines().map(|line| line.split_once("Z ").unwrap().1).collect();
    assert_eq!(lines.join("\n"), said);
}

#[test]
fn an_endpoint_and_its_descendants_have_the_shortest_timer_slack() {
    let scene = Scene::new();
    let mut process = scene.start("cat /proc/self/timerslack_ns >&2; exit 3");
    let Err(EventError::Ended(exit)) = process.next_event(soon()) else { panic!("it has ended") };
    // A thread of a real-time class has none at all.
    assert!(["1", "0"].contains(&exit.last_words.as_str()), "{exit:?}");
}

/// A set of rights of a process (proc_pid_status(5)).
fn rights(status: &str, set: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(':')).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

#[test]
fn an_endpoint_that_root_starts_has_rights_over_its_network_but_not_over_the_machine() {
    // Numbers of capabilities(7).
    let (over_files_of_others, to_mount, to_load_modules, to_set_the_clock, to_load_programs) = (1, 21, 16, 25, 39);
    let (to_listen_anywhere, to_change_the_user, over_networks) = (10, 7, 12);
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    if rights(&own, "CapEff") & (1 << to_mount) == 0 {
        let (what, why) = ("rights over the machine", "this user has none to withhold");
        skip(Skip::KernelLacks { what: what.to_owned(), why: why.to_owned() });
        return;
    }
    let scene = Scene::new();
    let mut process = scene.start("grep ^Cap /proc/self/status >&2; exit 3");
    let Err(EventError::Ended(exit)) = process.next_event(soon()) else { panic!("it has ended") };
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        let held = rights(&exit.last_words, set);
        for right in [over_files_of_others, to_mount, to_load_modules, to_set_the_clock, to_load_programs] {
            assert_eq!(held & (1 << right), 0, "{set}: right {right} in {held:x}");
        }
        for right in [to_listen_anywhere, to_change_the_user, over_networks] {
            assert_eq!(held & (1 << right), rights(&own, set) & (1 << right), "{set}: right {right} in {held:x}");
        }
    }
}

#[test]
fn nonsense_is_shown_and_what_follows_is_still_read() {
    let mut process = Scene::new().start(r#"echo 'Listening on port 80'; echo '{"event":"warm"}'"#);
    let Err(EventError::Nonsense(text)) = process.next_event(soon()) else { panic!("nonsense passed for an event") };
    assert!(text.starts_with("`Listening on port 80`"), "{text}");
    assert_eq!(process.next_event(soon()), Ok(Event::Warm { until_steady: None }));
}

#[test]
fn a_flood_and_an_endless_line_are_nonsense_and_both_can_be_ended() {
    for script in [r#"while :; do echo '{"event":"warm"}'; done"#, "cat /dev/zero"] {
        let mut process = Scene::new().start(script);
        let nonsense = std::iter::repeat_with(|| process.next_event(soon())).find(Result::is_err);
        assert!(matches!(nonsense, Some(Err(EventError::Nonsense(text))) if text.contains("more than")));
        assert_eq!(process.end(at_once()).status, ExitStatus::Killed);
    }
}

#[test]
fn an_early_exit_comes_with_status_and_last_words() {
    let scene = Scene::new();
    let mut process = scene.start("echo 'no such certificate' >&2; exit 3");
    let Err(EventError::Ended(exit)) = process.next_event(soon()) else { panic!("it has ended") };
    assert_eq!((exit.status, exit.last_words.as_str()), (ExitStatus::Code(3), "no such certificate"));
    assert!(exit.usage.is_some_and(|usage| usage.peak_memory > 0 && usage.minor_faults > 0));
    assert_eq!(process.end(soon()), exit, "an end does not change");
    assert!(process.send(Command::Go).is_err());
}

#[test]
fn a_foreign_signal_is_distinguished_from_wirelabs_own() {
    let mut process = Scene::new().start("kill -KILL $$");
    let Err(EventError::Ended(exit)) = process.next_event(soon()) else { panic!("it has ended") };
    assert_eq!(exit.status, ExitStatus::Signal(9));
    let mut process = Scene::new().start("trap '' TERM INT; while :; do sleep 1; done");
    assert_eq!(process.next_event(at_once()), Err(EventError::Deadline));
    assert_eq!(process.end(at_once()).status, ExitStatus::Killed);
}

#[test]
fn the_end_of_its_input_lets_an_endpoint_end_by_itself() {
    let mut process = Scene::new().start("while read word; do :; done; exit 5");
    assert_eq!(process.end(soon()).status, ExitStatus::Code(5));
}

#[test]
fn descendants_do_not_outlive_the_end_or_the_drop_of_a_process() {
    let scene = Scene::new();
    let script = r#"sleep 1000 & echo $! > child; sh -c 'sleep 1000 & echo $! > grandchild'; echo '{"event":"warm"}'"#;
    let pids = || ["child", "grandchild"].map(|name| std::fs::read_to_string(scene.folder.path().join(name)).unwrap());
    let mut ended = scene.start(script);
    assert_eq!(ended.next_event(soon()), Ok(Event::Warm { until_steady: None }));
    // Its children hold its standard output and error open; the end must be noticed nevertheless.
    assert_eq!(ended.end(soon()).status, ExitStatus::Code(0));
    assert!(pids().iter().all(|pid| disappears(pid)));

    let mut dropped = scene.start(&format!("{script}; read word"));
    assert_eq!(dropped.next_event(soon()), Ok(Event::Warm { until_steady: None }));
    let leader = dropped.pid().unwrap().to_string();
    drop(dropped);
    assert!(disappears(&leader) && pids().iter().all(|pid| disappears(pid)));
}

#[test]
fn usage_includes_the_children_that_the_process_waited_for() {
    let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let end = |script: &str| Scene::new().start(script).end(soon()).usage.unwrap();
    let (own, childs) = (end(work), end(&format!("sh -c '{work}'; :")));
    assert!(childs.user_ns * 2 > own.user_ns, "{childs:?} should be about {own:?}");
}

#[test]
fn a_log_is_bounded_however_much_is_written() {
    let scene = Scene::new();
    let mut process = scene.start("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo the end >&2");
    let exit = process.end(soon());
    assert!(exit.status == ExitStatus::Code(0) && exit.last_words.ends_with("the end"));
    let log = std::fs::read_to_string(scene.log()).unwrap();
    assert!(log.len() < 1_100_000 && log.ends_with("[wirelab cut the log here, after 1048576 bytes]\n"));
}

#[test]
fn a_failed_start_has_its_reason() {
    let scene = Scene::new();
    let mut broken = endpoint("", scene.folder.path());
    broken.command = vec!["/no/such/program".to_owned()];
    let error = scene.start_endpoint(&broken).unwrap_err().to_string();
    assert!(error.starts_with("cannot start script (server) with `/no/such/program server --spec"), "{error}");
    assert!(error.contains("is it installed"), "{error}");
    broken.command.clear();
    assert!(scene.start_endpoint(&broken).unwrap_err().to_string().contains("`command` is empty"));
}
