//! The results of several requests of the user, in every report.

use wirelab_model::metric::Value;
use wirelab_report::{Extent, OfRequest, html, json, markdown, terminal};

use crate::fixture::Fixture;

fn of(name: &str, weight: u32, requests: u64, failed: u64, median: f64) -> OfRequest {
    let values = [("response_median".to_owned(), Value::Measured(median))].into_iter().collect();
    OfRequest { name: name.to_owned(), weight, requests, failed, values }
}

#[test]
fn each_request_has_its_results_in_every_report() {
    let mut fixture = Fixture::tiny();
    fixture.requests.insert(0, vec![of("GET /items", 9, 4500, 0, 171e3), of("POST /<orders>", 1, 497, 3, 2.07e6)]);
    for (name, text) in [
        ("terminal", fixture.report(|input| terminal(input, 110, false, Extent::Full))),
        ("markdown", fixture.report(markdown)),
        ("html", fixture.report(html)),
    ] {
        for words in ["Requests", "GET /items", "4,500", "171", "497", "2.07"] {
            assert!(text.contains(words), "`{words}` is missing in {name}: {text}");
        }
    }
    assert!(!fixture.report(html).contains("<orders>"));
    let report: serde_json::Value = serde_json::from_str(&fixture.report(json)).unwrap();
    assert_eq!(report["cells"][0]["by_request"][1]["failed"], 3);
    assert!(report["cells"][1].get("by_request").is_none());
}

#[test]
fn a_run_with_one_request_has_no_such_table() {
    let fixture = Fixture::tiny();
    for text in [
        fixture.report(|input| terminal(input, 110, false, Extent::Full)),
        fixture.report(markdown),
        fixture.report(html),
    ] {
        assert!(!text.contains("without intervals; verdicts are about all requests"));
    }
}
