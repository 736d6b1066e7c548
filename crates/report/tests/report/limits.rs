//! The section "Whose limit" in every format that has it.

use wirelab_model::protocol::Protocol;
use wirelab_model::reference::NotReferenced;
use wirelab_report::{Extent, cells_csv, html, json, markdown, terminal};
use wirelab_stats::analysis::{CannotTell, Interval, Verdict};
use wirelab_stats::client_share::{Share, Shares, WhyNot};

use crate::fixture::Fixture;

/// A run with shares of every kind, and a verdict that the client's share explains.
fn with_references(mut fixture: Fixture) -> Fixture {
    let measured = |share, [low, high]: [f64; 2]| Share::Measured {
        share,
        interval: Some(Interval { low, high, confidence: 0.95 }),
    };
    let plain = |share| Share::Measured { share, interval: None };
    let kinds = [
        Shares {
            reference: Some(212_000.0),
            trials: 10,
            client: measured(0.264, [0.251, 0.28]),
            server: measured(0.736, [0.72, 0.749]),
            network: Share::Missing(WhyNot::NoLink),
        },
        Shares {
            reference: Some(640_000.0),
            trials: 6,
            client: plain(0.71),
            server: plain(0.29),
            network: plain(0.055),
        },
        Shares {
            reference: Some(230_000.0),
            trials: 1,
            client: Share::Missing(WhyNot::TooFewTrials { trials: 1, needed: 5 }),
            server: Share::Missing(WhyNot::TooFewTrials { trials: 1, needed: 5 }),
            network: Share::Missing(WhyNot::LinkNotMeasured),
        },
        Shares {
            reference: None,
            trials: 0,
            client: Share::Missing(WhyNot::NotReferenced(NotReferenced::Protocol { protocol: Protocol::Udp })),
            server: Share::Missing(WhyNot::NotReferenced(NotReferenced::Protocol { protocol: Protocol::Udp })),
            network: Share::Missing(WhyNot::NoLink),
        },
    ];
    // A twin repeats the shares of its cell.
    let mut next = kinds.into_iter().cycle();
    let cells = &fixture.manifest.plan.cells;
    let mut shares: Vec<Shares> = Vec::new();
    for cell in cells {
        let of_cell = cell.twin_of.and_then(|twin| shares.get(twin).cloned()).or_else(|| next.next());
        shares.extend(of_cell);
    }
    fixture.analysis.shares = shares;
    let compared = fixture.analysis.comparisons.iter_mut().find(|compared| !compared.aa).expect("a comparison");
    compared.verdict = Verdict::CannotTell { why: CannotTell::ClientBound };
    fixture
}

/// The text from the heading of the section to the next heading.
fn section<'a>(text: &'a str, heading: &str, next: &str) -> &'a str {
    let start = text.find(heading).unwrap_or_else(|| panic!("no `{heading}` in {text}"));
    let rest = &text[start + heading.len()..];
    &text[start..start + heading.len() + rest.find(next).unwrap_or(rest.len())]
}

#[test]
fn whose_limit_is_in_the_terminal_as_agreed() {
    let text = with_references(Fixture::tiny()).report(|input| terminal(input, 110, false, Extent::Full));
    insta::assert_snapshot!(section(&text, "Whose limit\n", "\n\n"));
}

#[test]
fn whose_limit_is_in_markdown_as_agreed() {
    let text = with_references(Fixture::tiny()).report(markdown);
    insta::assert_snapshot!(section(&text, "### Whose limit", "\n#"));
}

#[test]
fn whose_limit_is_in_html_as_agreed() {
    let text = with_references(Fixture::tiny()).report(html);
    insta::assert_snapshot!(section(&text, "<section id=\"limits\">", "</section>"));
}

#[test]
fn whose_limit_is_in_csv_as_agreed() {
    let text = with_references(Fixture::tiny()).report(cells_csv);
    let shares = |line: &&str| ["cell,", "_share,"].iter().any(|word| line.contains(word));
    insta::assert_snapshot!(text.lines().filter(shares).collect::<Vec<_>>().join("\n"));
}

#[test]
fn whose_limit_is_in_json_as_agreed() {
    let report: serde_json::Value = serde_json::from_str(&with_references(Fixture::tiny()).report(json)).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&report["shares"]).unwrap());
}

#[test]
fn a_withheld_verdict_names_the_client_in_every_report() {
    let words = "the client's own time may explain the difference";
    let plain = |text: String| text.replace("&#39;", "'").split_whitespace().collect::<Vec<_>>().join(" ");
    let reports = with_references(Fixture::tiny()).report(|input| {
        [("terminal", terminal(input, 110, false, Extent::Full)), ("markdown", markdown(input)), ("html", html(input))]
    });
    for (name, text) in reports {
        let text = plain(text);
        assert!(text.contains(words), "{name}: {text}");
    }
}
