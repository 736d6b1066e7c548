//! Whether real browsers show a report in full: no requests, no cut text, working scripts.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;
use wirelab_browser::Browser;
use wirelab_model::protocol::Protocol;

use crate::browsers::browsers;
use crate::page_command::{only_load, page};
use crate::servers::{Builtin, Place, Serve, serve};

/// JavaScript that unfolds the page, counts the visible elements and lists their faults.
const PROBE: &str = r#"
const headline = document.querySelector(".headline")?.getBoundingClientRect();
const overview = document.querySelector("[id=overview] .facet svg")?.getBoundingClientRect();
const first_screen = {
  headline: headline !== undefined && headline.bottom <= 800,
  overview: overview === undefined || overview.bottom <= 800,
};
const first_fold = document.querySelector("details").getBoundingClientRect().top / 800;
for (const part of document.querySelectorAll("details")) part.open = true;
const seen = (element) => element.getClientRects().length > 0;
const named = (elements) => [...elements].slice(0, 5).map((element) => element.textContent.trim().slice(0, 80));
const drawings = [...document.querySelectorAll("svg")].filter(seen);
const outside = (text) => {
  const [inner, outer] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
  return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
};
const found = {
  drawings: drawings.length,
  without_size: named(drawings.filter((drawing) => drawing.getBoundingClientRect().width < 10)),
  cut_off: named(drawings.flatMap((drawing) => [...drawing.querySelectorAll("text")]).filter(outside)),
  first_screen, first_fold,
  exports: document.querySelectorAll("figure.chart .exports button").length,
  wider_than_the_window: document.documentElement.scrollWidth > window.innerWidth,
  headings_that_do_not_sort: named([...document.querySelectorAll("table.sortable th[scope=col]")].filter((head) => !head.querySelector("button"))),
};
const answer = document.createElement("script");
answer.type = "application/json";
answer.id = "found";
answer.textContent = JSON.stringify(found);
document.body.append(answer);
"#;

/// Checks a report in every installed browser. Each missing browser is a skipped part of the test.
#[track_caller]
pub fn assert_readable(report: &Path) {
    let browsers = browsers();
    let place = Place::new();
    let root = place.path("root");
    fs::create_dir(&root).unwrap();
    fs::copy(report, root.join("report.html")).unwrap();
    let server = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
    for browser in &browsers {
        let args = ["--browsers", browser, "--protocols", "h2", "--loads", "1", "--expect", "1", "--json"];
        let load = only_load(&page(&place, server.port, "report.html", &args).with_status(0));
        assert_eq!((&load["outcome"], &load["warnings"]), (&"ok".into(), &serde_json::json!([])), "{browser}: {load}");
    }
    if browsers.contains(&"chromium") {
        let found = laid_out(&fs::read_to_string(report).unwrap());
        assert!(found["drawings"].as_u64() >= Some(4), "{found}");
        for flaw in ["without_size", "cut_off", "headings_that_do_not_sort"] {
            assert_eq!(found[flaw], serde_json::json!([]), "{flaw}: {found}");
        }
        assert_eq!(found["wider_than_the_window"], false, "{found}");
        assert_eq!(found["first_screen"], serde_json::json!({ "headline": true, "overview": true }), "{found}");
        assert!(found["first_fold"].as_f64() <= Some(3.0), "{found}");
        assert!(found["exports"].as_u64() >= Some(4), "{found}");
    }
}

/// What Chromium finds in a report that is a file, without any network, in a window of 1280 by 800: among others
/// `first_screen`, what is on it, and `first_fold`, the screens before the first folded part.
///
/// # Panics
/// If the page is no report, or Chromium is not installed.
#[must_use]
pub fn laid_out(page: &str) -> Value {
    let folder = tempdir().unwrap();
    let copy = folder.path().join("report.html");
    let end = page.rfind("</body>").expect("the page has an end");
    fs::write(&copy, format!("{}<script>{PROBE}</script>{}", &page[..end], &page[end..])).unwrap();
    let program = Browser::Chromium.find().unwrap();
    let output = Command::new("timeout")
        .arg("120")
        .arg(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--window-size=1280,800",
        ])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", copy.display()))
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.split_once("id=\"found\">").and_then(|(_, rest)| rest.split_once("</script>"));
    let (json, _) =
        answer.unwrap_or_else(|| panic!("the scripts did not run: {}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(json).unwrap()
}
