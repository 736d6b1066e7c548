//! Browsers that crash, are killed, hang, or lack memory during a load: the blame, the processes and files that they
//! leave, and the continued run. The kernel's counter of kills for lack of memory covers the whole machine, so these
//! tests run alone.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;
use wirelab_testkit::browsers::{browsers, study};
use wirelab_testkit::lab::all_trials;
use wirelab_testkit::page_command::{assert_blamed, assert_nothing_left, only_load, page_command};
use wirelab_testkit::physics::Test;
use wirelab_testkit::servers::{Conduct, Hostile, Place};
use wirelab_testkit::short_of_memory::ShortOfMemory;
use wirelab_testkit::test;
use wirelab_testkit::tree::{Process, descendants};
use wirelab_testkit::{eventually, said, wirelab};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(the_end_of_the_pages_process_is_the_browsers_fault).beside_few().retries(2),
        test!(a_browser_that_ends_or_hangs_while_it_loads_is_blamed).beside_few().retries(2),
        test!(a_page_killed_for_lack_of_memory_is_blamed_on_the_machine).retries(2),
        test!(a_browser_that_is_killed_fails_its_trial_and_the_run_goes_on).beside_few(),
    ]
}

/// A page with an image that never arrives, so the load continues until the test ends it.
const ENDLESS: &str = "<p>text</p><img src=\"/never.png\">";

/// The same page, which also allocates 50 MB per second, up to 400 MB.
const GREEDY: &str = "<p>text</p><img src=\"/never.png\"><script>
let kept = [];
let timer = setInterval(() => { kept.push(new Uint8Array(1 << 20).fill(1)); if (kept.length == 400) clearInterval(timer); }, 20);
</script>";

/// Loads a page in a browser, calls `strike` during the load, and returns the load.
fn load_during(browser: &str, page: &str, timeout: &str, strike: impl FnOnce(&[Process])) -> Value {
    let place = Place::new();
    let document =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{page}", page.len());
    let server = Hostile::secure(&place, "good", Conduct::AnswerThen(document, String::new()));
    let args = ["--browsers", browser, "--protocols", "h1", "--loads", "1", "--timeout", timeout, "--json"];
    let mut command = page_command(&place, server.port, "", &args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the request of the image", || server.heads().iter().any(|head| head.contains("never.png")));
    strike(&descendants(child.id()));
    let load = only_load(&said(child.wait_with_output().unwrap()).with_status(1));
    assert_nothing_left(&place);
    load
}

/// Whether a process is the browser's main process.
fn is_main(process: &Process) -> bool {
    process.line.contains("--remote-debugging-port")
        && !process.line.contains("--type=")
        && !process.line.contains("-contentproc")
}

/// Whether a process contains pages.
fn is_content(process: &Process) -> bool {
    let line = process.line.trim_end();
    line.contains("--type=renderer") || (line.contains("-contentproc") && line.ends_with(" tab"))
}

#[track_caller]
fn chosen(processes: &[Process], which: fn(&Process) -> bool) -> Vec<u32> {
    let chosen: Vec<_> = processes.iter().filter(|process| which(process)).map(|process| process.pid).collect();
    assert!(!chosen.is_empty(), "{processes:?}");
    chosen
}

/// Sends a signal to processes. Some may have ended before; the test checks only the consequences.
fn signal(name: &str, pids: &[u32]) {
    let words = pids.iter().map(u32::to_string);
    let _ = Command::new("kill").arg(format!("-{name}")).args(words).stderr(Stdio::null()).status();
}

/// The message for a page whose process ended. Firefox is configured to end with it, and reports a navigation until a
/// moment after the page's first bytes.
fn page_ended(browser: &str) -> &'static str {
    if browser == "firefox" { "Firefox ended, " } else { "Chromium's process of the page ended while it loaded" }
}

fn the_end_of_the_pages_process_is_the_browsers_fault() {
    for browser in browsers() {
        // The kernel sends KILL if memory is short; ABRT is a crash.
        for name in ["KILL", "ABRT"] {
            let load = load_during(browser, ENDLESS, "2 min", |processes| signal(name, &chosen(processes, is_content)));
            assert_blamed(&load, "client", &[page_ended(browser)]);
        }
    }
}

fn a_browser_that_ends_or_hangs_while_it_loads_is_blamed() {
    // Each waits half a minute, so they run in parallel.
    std::thread::scope(|scope| {
        for browser in browsers() {
            scope.spawn(move || {
                let load =
                    load_during(browser, ENDLESS, "2 min", |processes| signal("KILL", &chosen(processes, is_main)));
                assert_blamed(&load, "client", &["ended, ", ": signal 9"]);
                let load =
                    load_during(browser, ENDLESS, "3 s", |processes| signal("STOP", &chosen(processes, is_main)));
                assert_blamed(&load, "client", &["did not answer within 30 s"]);
            });
        }
    });
}

fn a_page_killed_for_lack_of_memory_is_blamed_on_the_machine() {
    for browser in browsers() {
        let Some(group) = ShortOfMemory::new(32 << 20) else { return };
        let load = load_during(browser, GREEDY, "2 min", |processes| {
            chosen(processes, is_content).into_iter().for_each(|pid| group.take(pid));
        });
        assert_blamed(&load, "runner", &[page_ended(browser), "the kernel killed", "for lack of memory"]);
    }
}

fn a_browser_that_is_killed_fails_its_trial_and_the_run_goes_on() {
    for browser in browsers() {
        let folder = tempdir().unwrap();
        fs::write(
            folder.path().join("study.toml"),
            study("loopback", &[browser], "page = 'small-10'", "protocol = ['h1', 'h2']"),
        )
        .unwrap();
        let mut command = wirelab(folder.path(), &["run", "study.toml", "--quiet"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut mains = Vec::new();
        eventually("the start of a browser", || {
            mains = descendants(child.id()).into_iter().filter(is_main).map(|process| process.pid).collect();
            !mains.is_empty()
        });
        signal("KILL", &mains);
        said(child.wait_with_output().unwrap()).with_status(0);
        let trials = all_trials(folder.path());
        let (failed, others): (Vec<_>, Vec<_>) = trials.iter().partition(|(_, trial)| trial["outcome"] == "failed");
        let [(_, failed)] = failed[..] else { panic!("{trials:?}") };
        assert_eq!(failed["blame"], "client", "{failed}");
        assert!(failed["reason"].as_str().unwrap().contains("signal 9"), "{failed}");
        assert!(others.len() == 2 && others.iter().all(|(_, trial)| trial["outcome"] == "ok"), "{trials:?}");
    }
}
