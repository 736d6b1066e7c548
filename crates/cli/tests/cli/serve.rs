//! `wirelab serve` in a real browser, over real run folders.

use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::{TempDir, tempdir};
use wirelab_browser::Browser;
use wirelab_testkit::browsers::is_here;
use wirelab_testkit::devtools::{Page, axe_core};
use wirelab_testkit::{only_run, run, wirelab};

/// A server over a folder; killed if it is dropped without [`Served::end`].
struct Served {
    child: Child,
    /// `http://127.0.0.1:PORT`, and the same with the token.
    origin: String,
    address: String,
}

impl Served {
    fn start(folder: &Path) -> Self {
        let mut child = wirelab(folder, &["serve", ".", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["address"].as_str().unwrap().to_owned();
        let origin = address.split_once("/?").unwrap().0.to_owned();
        Self { child, origin, address }
    }

    /// Ends it as Ctrl-C does, and returns the exit status.
    fn end(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder `runs` with the finished run `done`.
fn with_run() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    let runs = folder.path().join("runs");
    fs::create_dir(&runs).unwrap();
    fs::rename(only_run(folder.path()), runs.join("done")).unwrap();
    (folder, runs)
}

/// Adds a run whose journal has the first `lines` lines of that of `done`; returns the journal and its other lines.
fn add_unfinished(runs: &Path, name: &str, lines: usize) -> (File, Vec<String>) {
    let (done, unfinished) = (runs.join("done"), runs.join(name));
    fs::create_dir(&unfinished).unwrap();
    fs::copy(done.join("manifest.json"), unfinished.join("manifest.json")).unwrap();
    let journal = fs::read_to_string(done.join("journal.jsonl")).unwrap();
    let all: Vec<_> = journal.split_inclusive('\n').map(str::to_owned).collect();
    let mut file = File::create(unfinished.join("journal.jsonl")).unwrap();
    file.write_all(all[..lines].concat().as_bytes()).unwrap();
    (file, all[lines..].to_vec())
}

/// The expression for a field of the progress of a run's page.
fn field(name: &str) -> String {
    format!("document.querySelector('[data-field={name}]')?.textContent")
}

#[test]
fn a_browser_sees_a_run_grow_and_end_and_may_be_reloaded_in_between() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let (_folder, runs) = with_run();
    let (mut journal, rest) = add_unfinished(&runs, "growing", 60);
    let served = Served::start(&runs);
    let mut page = Page::open(&served.address);
    page.until("document.querySelectorAll('tbody tr').length === 2");
    assert_eq!(page.eval("location.search"), "", "the address keeps no token");

    page.go(&format!("{}/runs/growing", served.origin));
    page.until(&format!("{} === 'stopped'", field("state")));
    let before: u64 = page.eval(&field("trials")).as_str().unwrap().parse().unwrap();
    let (some, others) = rest.split_at(rest.len() / 2);
    journal.write_all(some.concat().as_bytes()).unwrap();
    page.until(&format!("Number({}) > {before}", field("trials")));
    page.until("document.getElementById('report').contentDocument?.querySelector('.headline') !== null");

    page.eval("location.reload()");
    journal.write_all(others.concat().as_bytes()).unwrap();
    page.until(&format!("{} === 'ended'", field("state")));
    let whole = page.eval(&field("trials"));
    page.go(&format!("{}/runs/done", served.origin));
    page.until(&format!("{} === '{}'", field("trials"), whole.as_str().unwrap()));
    assert_eq!(served.end(), Some(0));
}

#[test]
fn the_pages_can_be_used_by_keyboard_and_by_screen_readers() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let Some(axe) = axe_core() else { return };
    let (_folder, runs) = with_run();
    let served = Served::start(&runs);
    let mut page = Page::open(&served.address);
    page.until("document.querySelectorAll('tbody tr').length === 1");
    assert_eq!(page.controls_without_name(), [""; 0]);
    for is_dark in [false, true] {
        page.look([400, 800], is_dark);
        assert_eq!(page.violations(&axe), [""; 0], "dark: {is_dark}");
    }
    let is_at_run = "document.activeElement?.textContent === 'done'";
    for _ in 0..20 {
        if page.eval(is_at_run) == true {
            break;
        }
        page.press("Tab");
    }
    assert_eq!(page.eval(is_at_run), true, "Tab leads to the run");
    page.press("Enter");
    page.until(&format!("location.pathname === '/runs/done' && {} === 'ended'", field("state")));
    assert_eq!(page.controls_without_name(), [""; 0]);
    page.until("document.getElementById('report').contentDocument?.querySelector('.headline') !== null");
    assert_eq!(page.violations(&axe), [""; 0]);
}

#[test]
fn a_thousand_runs_have_pages_and_a_filter_and_no_name_leads_out_of_the_folder() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let (folder, runs) = with_run();
    fs::create_dir(folder.path().join("outside")).unwrap();
    fs::hard_link(runs.join("done/manifest.json"), folder.path().join("outside/manifest.json")).unwrap();
    for number in 1..1000 {
        let copy = runs.join(format!("copy-{number:03}"));
        fs::create_dir(&copy).unwrap();
        fs::hard_link(runs.join("done/manifest.json"), copy.join("manifest.json")).unwrap();
    }
    fs::create_dir(runs.join("<img src=x onerror=alert(1)>")).unwrap();
    fs::write(runs.join("<img src=x onerror=alert(1)>/manifest.json"), "{}").unwrap();
    let served = Served::start(&runs);
    let mut page = Page::open(&served.address);
    page.until("document.body?.textContent.includes('1001 of 1001 runs, page 1 of 11')");
    page.go(&format!("{}/?q=copy-99", served.origin));
    page.until("document.body?.textContent.includes('10 of 1001 runs')");
    page.go(&format!("{}/?q=unreadable", served.origin));
    page.until("document.querySelector('tbody th')?.textContent === '<img src=x onerror=alert(1)>'");
    let status = |path: &str| format!("fetch('{path}').then((answer) => answer.status)");
    for path in ["/runs/..%2Foutside", "/runs/..%2Foutside/report", "/runs/%2E%2E/events", "/runs/absent/report.csv"] {
        assert_eq!(page.eval(&status(path)), 404, "{path}");
    }
    assert_eq!(page.eval(&status("/runs/done/report.csv")), 200);
}

#[test]
fn two_runs_are_compared_and_a_study_has_a_history() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let (_folder, runs) = with_run();
    add_unfinished(&runs, "other", 100);
    let served = Served::start(&runs);
    let mut page = Page::open(&served.address);
    page.until("document.querySelectorAll('tbody tr').length === 2");
    page.eval("document.querySelector('input[name=first][value=done]').click()");
    page.eval("document.querySelector('input[name=second][value=other]').click()");
    page.eval("document.querySelector('form[action=\"/compare\"] button').click()");
    page.until("document.querySelector('h1')?.textContent === 'done and other'");
    page.until("document.querySelector('pre')?.textContent.includes('not interleaved')");
    page.go(&format!("{}/history?study=quick&metric=response_p90", served.origin));
    page.until("document.querySelector('pre')?.textContent.includes('over 2 runs')");
}

#[test]
fn a_missing_folder_and_a_taken_port_are_wrong_input() {
    let folder = tempdir().unwrap();
    let said = run(folder.path(), &["serve"]).with_status(2);
    assert!(said.err.contains("wirelab-runs is no folder. Name the folder"), "{}", said.err);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = run(folder.path(), &["serve", ".", "--port", &port]).with_status(2);
    assert!(said.err.contains("another program has it. Leave --port out"), "{}", said.err);
}
