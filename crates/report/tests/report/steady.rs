//! Where and by how much response times change within the window.

use wirelab_report::{Extent, html, json, markdown, terminal};

use crate::fixture::Fixture;

#[test]
fn each_report_says_where_in_the_window_and_by_how_much() {
    let words = "the first fifth of the window takes 1.31 times as long as the fourth";
    let plain = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let reports = Fixture::quick().report(|input| {
        [("terminal", terminal(input, 110, false, Extent::Full)), ("markdown", markdown(input)), ("html", html(input))]
    });
    for (name, text) in reports {
        let text = plain(text);
        assert!(text.contains(words), "{name}: {text}");
    }
}

#[test]
fn the_json_has_the_two_fifths_and_their_ratio() {
    let report: serde_json::Value = serde_json::from_str(&Fixture::quick().report(json)).unwrap();
    let found = report["cells"].as_array().unwrap().iter().map(|cell| &cell["stationarity"]);
    let wanted = serde_json::json!({ "stationarity": "changes", "slowest": 0, "fastest": 3, "ratio": 1.31 });
    assert!(found.clone().any(|one| *one == wanted), "{:?}", found.collect::<Vec<_>>());
}
