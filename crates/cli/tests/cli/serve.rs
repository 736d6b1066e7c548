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
use wirelab_testkit::tab::{Key, Tab, in_each_browser};
use wirelab_testkit::{eventually, only_run, processes, run, wirelab};

/// A server over a folder; killed if it is dropped without [`Served::end`].
struct Served {
    child: Child,
    /// `http://127.0.0.1:PORT`, and the same with the token.
    origin: String,
    address: String,
}

impl Served {
    /// A server over the runs in `folder`, whose pages only read.
    fn start(folder: &Path) -> Self {
        Self::with(folder, &["serve", ".", "--json"])
    }

    /// A server over the runs in `folder/wirelab-runs`, whose pages save study files in `folder` and start runs.
    fn writing(folder: &Path) -> Self {
        Self::with(folder, &["serve", "--write", "--json"])
    }

    fn with(folder: &Path, args: &[&str]) -> Self {
        let mut child = wirelab(folder, args).stdout(Stdio::piped()).spawn().unwrap();
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
fn each_browser_sees_a_run_grow_and_end_and_may_be_reloaded_in_between() {
    let (_folder, runs) = with_run();
    let served = Served::start(&runs);
    for (browser, mut page) in in_each_browser(&served.address) {
        let (mut journal, rest) = add_unfinished(&runs, browser.token(), 60);
        page.until("document.querySelectorAll('tbody tr').length > 0");
        assert_eq!(page.eval("location.search"), "", "the address keeps no token");

        page.go(&format!("{}/runs/{}", served.origin, browser.token()));
        page.until(&format!("{} === 'stopped'", field("state")));
        let before: u64 = page.eval(&field("trials")).as_str().unwrap().parse().unwrap();
        let (some, others) = rest.split_at(rest.len() / 2);
        journal.write_all(some.concat().as_bytes()).unwrap();
        page.until(&format!("Number({}) > {before}", field("trials")));
        page.until("document.getElementById('report').contentDocument?.querySelector('.headline') != null");

        page.eval("location.reload()");
        journal.write_all(others.concat().as_bytes()).unwrap();
        page.until(&format!("{} === 'ended'", field("state")));
        let whole = page.eval(&field("trials"));
        page.go(&format!("{}/runs/done", served.origin));
        page.until(&format!("{} === '{}'", field("trials"), whole.as_str().unwrap()));
    }
    assert_eq!(served.end(), Some(0));
}

#[test]
fn the_pages_can_be_used_by_screen_readers() {
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
    page.go(&format!("{}/runs/done", served.origin));
    page.until("document.getElementById('report')?.contentDocument?.querySelector('.headline') != null");
    assert_eq!(page.controls_without_name(), [""; 0]);
    assert_eq!(page.violations(&axe), [""; 0]);
}

#[test]
fn tab_and_enter_lead_to_a_run_in_each_browser() {
    let (_folder, runs) = with_run();
    let served = Served::start(&runs);
    for (browser, mut page) in in_each_browser(&served.address) {
        page.until("document.querySelectorAll('tbody tr').length === 1");
        let is_at_run = "document.activeElement?.textContent === 'done'";
        for _ in 0..20 {
            if page.eval(is_at_run) == true {
                break;
            }
            page.press(Key::Tab);
        }
        assert_eq!(page.eval(is_at_run), true, "{browser:?}: Tab leads to the run");
        page.press(Key::Enter);
        page.until(&format!("location.pathname === '/runs/done' && {} === 'ended'", field("state")));
    }
}

#[test]
fn a_thousand_runs_have_pages_and_a_filter_and_no_name_leads_out_of_the_folder() {
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
    for (_, mut page) in in_each_browser(&served.address) {
        page.until("document.body?.textContent.includes('1001 of 1001 runs, page 1 of 11')");
        page.go(&format!("{}/?q=copy-99", served.origin));
        page.until("document.body?.textContent.includes('10 of 1001 runs')");
        page.go(&format!("{}/?q=unreadable", served.origin));
        page.until("document.querySelector('tbody th')?.textContent === '<img src=x onerror=alert(1)>'");
        let status = |path: &str| format!("fetch('{path}').then((answer) => answer.status)");
        for path in
            ["/runs/..%2Foutside", "/runs/..%2Foutside/report", "/runs/%2E%2E/events", "/runs/absent/report.csv"]
        {
            assert_eq!(page.eval(&status(path)), 404, "{path}");
        }
        assert_eq!(page.eval(&status("/runs/done/report.csv")), 200);
    }
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
    page.until("document.querySelector('iframe').contentDocument?.body?.textContent.includes('not interleaved')");
    page.go(&format!("{}/claims", served.origin));
    page.until("document.body?.textContent.includes('No ended run of this folder has a study with claims.')");
    page.go(&format!("{}/history?study=quick&metric=response_p90", served.origin));
    let history = "document.querySelector('iframe')?.contentDocument?.querySelector('h1')?.textContent";
    page.until(&format!("{history} === 'P90 response time of quick'"));
}

/// The expression that selects the first `text` after `before` in the editor, and returns whether it did.
fn select(before: &str, text: &str) -> String {
    format!(
        "(() => {{
            const study = document.getElementById('study');
            const begin = study.value.indexOf({before:?} + {text:?}) + {before:?}.length;
            study.focus();
            study.setSelectionRange(begin, begin + {text:?}.length);
            return study.value.slice(begin, study.selectionEnd) === {text:?};
        }})()"
    )
}

/// The expression for whether an element has a text.
fn says(id: &str, text: &str) -> String {
    format!("document.getElementById({id:?})?.textContent.includes({text:?})")
}

fn click(page: &mut dyn Tab, selector: &str) {
    page.until(&format!("document.querySelector({selector:?}) !== null"));
    page.eval(&format!("document.querySelector({selector:?}).click()"));
}

#[test]
fn each_browser_edits_a_study_with_suggestions_saves_starts_and_tags_it() {
    let folder = tempdir().unwrap();
    let served = Served::writing(folder.path());
    for (browser, mut page) in in_each_browser(&served.address) {
        click(&mut *page, "nav a[href='/new']");
        click(&mut *page, "a[href='/edit?builtin=quick']");
        page.until(&says("plan", " blocks."));

        assert_eq!(page.eval(&select("\nla", "b")), true);
        page.write("bb");
        page.until(&says("mistakes", "did you mean lab?"));
        page.press(Key::Backspace);
        page.until(&says("plan", " blocks."));
        assert_eq!(page.eval(&select("lab = ", "\"loopback\"")), true);
        page.write("\"fa");
        page.until(&says("suggestions", "\"fake\""));
        page.press(Key::ArrowDown);
        page.until("document.getElementById('study').getAttribute('aria-activedescendant') === 'suggestion-0'");
        page.press(Key::Enter);
        page.until("document.getElementById('study').value.includes('lab = \"fake\"')");
        page.until("document.getElementById('suggestions').hidden");
        page.until("document.querySelectorAll('#preset option').length > 1");
        page.eval("document.getElementById('preset').value = 'smoke'");

        let file = format!("{}.toml", browser.token());
        page.eval(&format!("document.getElementById('file').value = {file:?}"));
        click(&mut *page, "#save");
        page.until(&says("answer", &format!("Saved as {file}.")));
        assert!(fs::read_to_string(folder.path().join(&file)).unwrap().contains("lab = \"fake\""));
        fs::write(folder.path().join(&file), "theirs").unwrap();
        click(&mut *page, "#start");
        page.until(&says("answer", "exists with another text"));
        click(&mut *page, "#replace");
        // The page of an ended run cannot stop it.
        page.until("location.pathname.startsWith('/runs/my-quick') && document.readyState === 'complete'");
        page.until(&format!("{} === 'ended' && document.getElementById('stop') === null", field("state")));

        page.until("document.getElementById('report').contentDocument?.querySelector('.headline') != null");
        page.eval("document.querySelector('input[name=tag]').focus()");
        page.write(browser.token());
        page.press(Key::Enter);
        click(&mut *page, &format!("a[href='/?q=tag%3A{}']", browser.token()));
        page.until("document.querySelectorAll('tbody tr').length === 1");
    }
    assert_eq!(served.end(), Some(0));
}

/// A study that takes minutes.
const LONG: &str = r#"
name = "long"
title = "Long"
question = "How long?"
lab = "loopback"
[workload]
duration = "1 s"
[factors]
protocol = ["h1", "h2"]
[compare]
factor = "protocol"
baseline = "h1"
metrics = ["response_median"]
[blocks]
min = 90
max = 90
"#;

#[test]
fn a_run_that_a_page_started_is_stopped_resumed_and_ends_with_the_server() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("long.toml"), LONG).unwrap();
    let served = Served::writing(folder.path());
    let mut page = Page::open(&served.address);
    click(&mut page, "nav a[href='/new']");
    click(&mut page, "a[href='/edit?file=long.toml']");
    // The script of the page has checked the study, so it hears clicks.
    page.until(&says("plan", " blocks."));
    click(&mut page, "#start");
    page.until(&format!("location.pathname.startsWith('/runs/long') && Number({}) > 0", field("trials")));
    let again = "fetch('/start', { method: 'POST', body: '{\"file\": \"long.toml\"}' }).then((said) => said.text())";
    let refused = page.eval(again);
    assert!(refused.as_str().unwrap().contains("runs disturb the measurements of each other"), "{refused}");

    click(&mut page, "#stop button");
    // The page loads itself again to offer it.
    page.until(&format!("{} === 'stopped' && document.getElementById('resume') !== null", field("state")));
    let words = "document.querySelector('[aria-label=\"Last words of the run\"]')?.textContent ?? ''";
    assert!(page.eval(words).as_str().unwrap().contains("wirelab resume"), "{}", page.eval(words));
    let trials = page.eval(&field("trials"));
    click(&mut page, "#resume button");
    page.until(&format!("{} === 'running'", field("state")));
    page.until(&format!("Number({}) > {}", field("trials"), trials.as_str().unwrap()));
    let name = only_run(folder.path()).file_name().unwrap().to_str().unwrap().to_owned();
    assert!(!processes(&name).is_empty(), "`wirelab resume` has the run's name in its command line");
    assert_eq!(served.end(), Some(0));
    eventually("the end of the run", || processes(&name).is_empty());
    run(folder.path(), &["report", "--format", "markdown"]).with_status(0);
}

#[test]
fn pages_that_may_write_can_be_used_by_screen_readers() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let Some(axe) = axe_core() else { return };
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    let served = Served::writing(folder.path());
    let mut page = Page::open(&served.address);
    click(&mut page, "tbody th a");
    page.until("document.querySelector('input[name=tag]') !== null");
    let run = page.eval("location.pathname");
    for path in ["/new", "/edit?builtin=quick", "/", run.as_str().unwrap()] {
        page.go(&format!("{}{path}", served.origin));
        page.until(&format!("location.pathname + location.search === '{path}' && document.readyState === 'complete'"));
        for is_dark in [false, true] {
            page.look([400, 800], is_dark);
            assert_eq!(page.violations(&axe), [""; 0], "{path}, dark: {is_dark}");
        }
        assert_eq!(page.controls_without_name(), [""; 0], "{path}");
    }
}

#[test]
fn claims_of_studies_have_the_verdict_of_their_newest_ended_run() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let folder = tempdir().unwrap();
    let claim = "[[claims]]\nid = 'C1'\ntext = 'It is so.'\nuntested = 'It needs another machine.'\n";
    let text = LONG.replace("\"loopback\"", "\"fake\"").replace("90", "1") + claim;
    fs::write(folder.path().join("claimed.toml"), text).unwrap();
    run(folder.path(), &["run", "claimed.toml", "--quiet"]).with_status(0);
    let served = Served::start(&folder.path().join("wirelab-runs"));
    let mut page = Page::open(&served.address);
    click(&mut page, "a[href='/claims']");
    page.until("document.querySelector('h2')?.textContent === 'long, lab fake'");
    page.until("document.querySelector('tbody tr')?.textContent.startsWith('C1not tested')");
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
