//! Studies of pages in browsers: the browsers that can be tested, their studies and records.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex};

use serde_json::Value;
use wirelab_browser::Browser;

use crate::{Skip, only_run, skip, skip_part};

/// The turns of tests with browsers. With more such tests at once, a browser may not answer before its time-out.
static FREE: Mutex<u32> = Mutex::new(2);
static CHANGED: Condvar = Condvar::new();

/// A turn of a test; dropping it lets the next test begin.
struct Turn;

impl Turn {
    fn wait() -> Self {
        let free = FREE.lock().expect("no test panics here");
        *CHANGED.wait_while(free, |free| *free == 0).expect("no test panics here") -= 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *FREE.lock().expect("no test panics here") += 1;
        CHANGED.notify_one();
    }
}

thread_local! {
    /// The turn of the test that this thread runs: until the thread ends, because each test has one of its own.
    static TURN: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

/// The browsers that can be tested, once it is this test's turn to use browsers. Every other browser is a skipped part
/// of the test; with none, the whole test is skipped.
#[track_caller]
pub fn browsers() -> Vec<&'static str> {
    TURN.with_borrow_mut(|turn| turn.is_none().then(|| *turn = Some(Turn::wait())));
    let certutil = Command::new("certutil").arg("-H").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if certutil.is_err() {
        skip(Skip::MissingProgram {
            program: "certutil".to_owned(),
            remedy: "apt-get install libnss3-tools".to_owned(),
        });
        return Vec::new();
    }
    let (there, missing): (Vec<_>, Vec<_>) = Browser::ALL.into_iter().partition(|browser| browser.find().is_ok());
    let skip = if there.is_empty() { skip } else { skip_part };
    for browser in missing {
        let why = browser.find().expect_err("it is missing").to_string();
        skip(Skip::NoBrowser { browser: browser.token().to_owned(), why });
    }
    there.into_iter().map(Browser::token).collect()
}

/// Whether a browser can be tested; if not, the test is skipped.
#[track_caller]
pub fn is_here(browser: Browser) -> bool {
    let is_here = browsers().contains(&browser.token());
    if !is_here {
        skip(Skip::NoBrowser { browser: browser.token().to_owned(), why: "it is not installed".to_owned() });
    }
    is_here
}

/// A study of these browsers, with additional lines for its workload and its factors.
pub fn study(lab: &str, browsers: &[&str], workload: &str, factors: &str) -> String {
    format!(
        r#"
name = "pages"
title = "Pages"
question = "Do browsers load pages?"
lab = "{lab}"
[workload]
request_timeout = "30 s"
{workload}
[factors]
client = {browsers:?}
{factors}
[compare]
factor = "protocol"
baseline = "h1"
metrics = ["page_onload", "page_net"]
[blocks]
min = 1
max = 1
"#
    )
}

/// The loads of a trial, from the run folder.
pub fn loads(folder: &Path, trial: &Value) -> Vec<Value> {
    let path = only_run(folder).join(trial["results"].as_str().unwrap());
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
