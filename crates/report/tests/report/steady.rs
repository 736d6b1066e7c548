//! Where and by how much response times change within the window.

use wirelab_report::{Extent, html, json, markdown, terminal};

use wirelab_stats::ages::{Ages, ByAge, NotTested};

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

#[test]
fn each_report_says_whether_response_times_change_with_age_and_what_is_not_tested() {
    let mut fixture = Fixture::tiny();
    let server = ByAge::NotTested { why: NotTested::StartedByTrial };
    for (number, cell) in fixture.analysis.cells.iter_mut().enumerate() {
        let connections = match number {
            0 => ByAge::Stationary,
            1 => ByAge::Changes { slowest: 0, fastest: 4, ratio: 1.42 },
            _ => ByAge::NotTested { why: NotTested::AsOldAsWindow },
        };
        cell.ages = Some(Ages { connections, server });
    }
    let report = fixture.report(|input| terminal(input, 110, false, Extent::Full));
    let text = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "Response times against the age of connections: stationary in 1 of 3 cells, a change in `protocol=h2` \
                 (the first fifth of their lives takes 1.42 times as long as the last), not tested in 1 cell (no \
                 connection was opened within the window, so that its age is that of the window).";
    assert!(text.contains(words), "{text}");
    // A kind of age that no cell tests is in the JSON only.
    assert!(!text.contains("the server's process"), "{text}");
}
