//! Every format of the report, of a run that was never made. After a deliberate change, look at the difference and accept it
//! with `INSTA_UPDATE=always cargo test -p wirelab-report`.

mod fixture;

use fixture::Fixture;
use wirelab_report::{cells_csv, comparisons_csv, html, json, markdown, terminal};

/// Every format, with a name for messages.
fn formats(fixture: &Fixture) -> Vec<(&'static str, String)> {
    fixture.report(|input| {
        vec![
            ("terminal", terminal(input, 110, false)),
            ("coloured terminal", terminal(input, 110, true)),
            ("markdown", markdown(input)),
            ("html", html(input)),
            ("cells", cells_csv(input)),
            ("comparisons", comparisons_csv(input)),
            ("json", json(input)),
        ]
    })
}

#[test]
fn the_terminal_report_is_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(|input| terminal(input, 110, false)));
}

#[test]
fn the_terminal_report_of_a_narrow_terminal_is_as_agreed() {
    insta::assert_snapshot!(Fixture::tiny().report(|input| terminal(input, 60, false)));
}

#[test]
fn the_markdown_report_is_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(markdown));
}

#[test]
fn the_csv_of_cells_is_as_agreed() {
    insta::assert_snapshot!(Fixture::tiny().report(cells_csv));
}

#[test]
fn the_csv_of_comparisons_is_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(comparisons_csv));
}

#[test]
fn the_json_report_is_as_agreed() {
    insta::assert_snapshot!(Fixture::tiny().report(json));
}

#[test]
fn the_html_report_of_a_tiny_run_is_as_agreed() {
    // Style and script are files of their own; the page is what is looked at here.
    let page = Fixture::tiny().report(html);
    let (head, rest) = page.split_once("<style>").expect("the page has a style");
    let (_, rest) = rest.split_once("</style>").expect("the style ends");
    let (body, _) = rest.split_once("<script>").expect("the page has a script");
    insta::assert_snapshot!(format!("{head}{body}"));
}

#[test]
fn the_same_run_gives_the_same_report() {
    assert_eq!(formats(&Fixture::quick()), formats(&Fixture::quick()));
}

#[test]
fn no_report_shows_a_number_that_is_none() {
    for (name, text) in formats(&Fixture::quick()).into_iter().chain(formats(&Fixture::large())) {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
            assert!(!["NaN", "inf", "Infinity", "nan"].contains(&word), "{name} has {word}");
        }
    }
}

#[test]
fn terminal_lines_fit_the_width() {
    for fixture in [Fixture::quick(), Fixture::tiny()] {
        for width in [60, 80, 100, 120, 200] {
            let text = fixture.report(|input| terminal(input, width, false));
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{} columns of {width}: {line}", line.chars().count());
            }
        }
    }
}

#[test]
fn the_terminal_has_every_column_at_110_columns() {
    let text = Fixture::quick().report(|input| terminal(input, 110, false));
    assert!(text.contains("memory") && !text.contains("Left out"), "{text}");
}

#[test]
fn colours_come_only_when_asked_for() {
    let fixture = Fixture::quick();
    let plain = fixture.report(|input| terminal(input, 110, false));
    let coloured = fixture.report(|input| terminal(input, 110, true));
    assert!(!plain.contains('\u{1b}'));
    assert!(coloured.contains('\u{1b}'));
}

#[test]
fn verdicts_come_before_tables_and_tables_before_warnings() {
    let fixture = Fixture::quick();
    let text = fixture.report(|input| terminal(input, 110, false));
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no `{what}` in {text}"));
    assert!(place("is slower than HTTP/1.1") < place("median   P90"));
    assert!(place("noise floor [") < place("C1 holds"));
    assert!(place("C1 holds") < place("Remedy"));
    let page = fixture.report(html);
    let place = |what: &str| page.find(what).unwrap_or_else(|| panic!("no `{what}`"));
    let order = [
        "id=\"verdicts\"",
        "id=\"results\"",
        "id=\"charts\"",
        "id=\"claims\"",
        "id=\"warnings\"",
        "id=\"method\"",
        "id=\"environment\"",
    ];
    assert!(order.map(place).is_sorted());
}

#[test]
fn a_difference_within_the_noise_floor_is_marked_as_such() {
    let mut fixture = Fixture::tiny();
    let compared = &mut fixture.analysis.comparisons[0];
    compared.verdict = wirelab_stats::analysis::Verdict::Less;
    compared.ratio = Some(0.9);
    compared.interval = Some(wirelab_stats::analysis::Interval { low: 0.88, high: 0.92, confidence: 0.95 });
    compared.noise_floor = Some(wirelab_stats::analysis::Interval { low: 0.85, high: 1.1, confidence: 0.95 });
    for (name, text) in
        fixture.report(|i| [("terminal", terminal(i, 110, false)), ("markdown", markdown(i)), ("html", html(i))])
    {
        assert!(text.contains("within the noise floor"), "{name}: {text}");
    }
}

#[test]
fn a_run_without_any_success_still_has_a_report() {
    let mut fixture = Fixture::tiny();
    for cell in &mut fixture.analysis.cells {
        cell.estimates.clear();
        cell.not_measured.clear();
        (cell.ok, cell.failed) = (0, 10);
        cell.reason = Some("the server did not start".to_owned());
    }
    for compared in &mut fixture.analysis.comparisons {
        (compared.ratio, compared.interval, compared.noise_floor) = (None, None, None);
        let why = wirelab_stats::analysis::CannotTell::NoValues;
        compared.verdict = wirelab_stats::analysis::Verdict::CannotTell { why };
    }
    fixture.pooled.clear();
    for (name, text) in formats(&fixture) {
        assert!(!text.is_empty(), "{name}");
        if name == "terminal" {
            let words: Vec<_> = text.split_whitespace().collect();
            assert!(words.join(" ").contains("the server did not start"), "{text}");
        }
    }
}

#[test]
fn warnings_of_the_manifest_are_shown_and_none_twice() {
    let mut fixture = Fixture::tiny();
    let warning = wirelab_model::warning::Warning::BusyMachine { load: 3.5, cores: 2 };
    fixture.manifest.warnings.push(warning.clone());
    fixture.analysis.warnings.push(warning);
    for (name, text) in formats(&fixture) {
        let expected = usize::from(!["cells", "comparisons"].contains(&name));
        assert_eq!(text.matches("The load average was 3.5").count(), expected, "{name}");
    }
}

#[test]
fn a_run_without_trials_still_has_a_report() {
    let mut fixture = Fixture::tiny();
    fixture.trials.clear();
    fixture.analysis.cells.clear();
    fixture.analysis.comparisons.clear();
    fixture.analysis.complete_blocks = 0;
    for (name, text) in formats(&fixture) {
        assert!(!text.is_empty(), "{name}");
    }
}
