//! Studies of pages in browsers: which browsers there are, what a study of them is, and what it recorded.
#![allow(dead_code, reason = "each test file uses what it needs")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use wirelab_browser::Browser;

use crate::support::only_run;

/// The browsers that can be tested; says of each other one why not.
pub fn browsers() -> Vec<&'static str> {
    let certutil = Command::new("certutil").arg("-H").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if certutil.is_err() {
        eprintln!("NOT tested: certutil is not installed, so no browser trusts the tests' certificates");
        return Vec::new();
    }
    let is_there = |browser: &Browser| browser.find().inspect_err(|missing| eprintln!("NOT tested: {missing}")).is_ok();
    Browser::ALL.into_iter().filter(is_there).map(Browser::token).collect()
}

/// A study of these browsers, with further lines for its workload and its factors.
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
