//! The model of bytes on the wire, in every report for people.

use crate::fixture::Fixture;
use wirelab_model::link::Link;
use wirelab_model::plan::{Requests, Work};
use wirelab_report::{Extent, html, markdown, terminal};

/// Two cells on a link with an MTU of 1500; the first one has measured packets, too.
fn observed() -> Fixture {
    let mut fixture = Fixture::tiny();
    for cell in &mut fixture.manifest.plan.cells {
        cell.job.topology.link = Some(Link::wire());
        cell.job.work = Work::Requests(Requests::document(wirelab_model::units::Size(100_000)));
    }
    let estimates = &mut fixture.analysis.cells[0].estimates;
    let mut estimate = estimates["response_median"].clone();
    for (direction, bytes) in [("received", 107_000.0), ("sent", 3_000.0)] {
        estimate.median = bytes;
        estimates.insert(format!("packets_client_bytes_{direction}_per_request"), estimate.clone());
    }
    fixture
}

#[test]
fn the_model_stands_beside_the_measured_bytes_in_every_report() {
    let fixture = observed();
    // 70 packets of up to 1448 bytes (100000 / 1448 = 69.1), each with 66 bytes of headers.
    for (name, text) in [
        ("terminal", fixture.report(|input| terminal(input, 200, false, Extent::Full))),
        ("markdown", fixture.report(markdown)),
        ("html", fixture.report(html)),
    ] {
        assert_eq!(text.matches("104620").count(), 1, "{name}: {text}");
        assert!(text.contains("110000") && text.contains("1.05"), "{name}: {text}");
    }
}

#[test]
fn a_run_without_observed_packets_has_no_such_table() {
    let fixture = Fixture::quick();
    for text in [
        fixture.report(|input| terminal(input, 110, false, Extent::Full)),
        fixture.report(markdown),
        fixture.report(html),
    ] {
        assert!(!text.contains("Bytes on the wire"));
    }
}
