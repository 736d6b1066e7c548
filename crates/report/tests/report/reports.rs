//! Every format of the report of a synthetic run. After a deliberate change, look at the difference and accept it
//! with `INSTA_UPDATE=always cargo test -p wirelab-report`.

use crate::fixture::Fixture;
use wirelab_model::film::{Film, Picture};
use wirelab_model::metric::Value;
use wirelab_model::outcome::Outcome;
use wirelab_model::page::{PageLoad, PageResource};
use wirelab_report::{Extent, cells_csv, comparisons_csv, contests_csv, html, json, markdown, pairs_csv, terminal};

/// Every format with its name, for messages.
fn formats(fixture: &Fixture) -> Vec<(&'static str, String)> {
    fixture.report(|input| {
        vec![
            ("terminal", terminal(input, 110, false, Extent::Full)),
            ("coloured terminal", terminal(input, 110, true, Extent::Full)),
            ("markdown", markdown(input)),
            ("html", html(input)),
            ("cells", cells_csv(input)),
            ("comparisons", comparisons_csv(input)),
            ("contests", contests_csv(input)),
            ("pairs", pairs_csv(input)),
            ("json", json(input)),
            ("latex", wirelab_report::latex(input)),
        ]
    })
}

#[test]
fn the_terminal_report_is_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(|input| terminal(input, 110, false, Extent::Full)));
}

#[test]
fn the_terminal_report_of_a_narrow_terminal_is_as_agreed() {
    insta::assert_snapshot!(Fixture::tiny().report(|input| terminal(input, 60, false, Extent::Full)));
}

#[test]
fn the_brief_terminal_report_is_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(|input| terminal(input, 100, false, Extent::Brief)));
}

#[test]
fn a_brief_report_has_at_most_forty_lines() {
    let fixtures = [Fixture::quick(), Fixture::tiny(), Fixture::large(), Fixture::conditions(), Fixture::pairs()];
    for (number, fixture) in fixtures.into_iter().enumerate() {
        for width in [80, 110, 200] {
            let text = fixture.report(|input| terminal(input, width, false, Extent::Brief));
            let lines = text.lines().count();
            assert!((5..=40).contains(&lines), "{lines} lines of fixture {number} at {width} columns:\n{text}");
        }
    }
}

#[test]
fn a_brief_report_counts_the_conditions_that_it_omits() {
    let text = Fixture::conditions().report(|input| terminal(input, 110, false, Extent::Brief));
    assert!(text.contains("more conditions in the full report."), "{text}");
}

#[test]
fn every_report_begins_with_the_same_answer() {
    let answer = "HTTP/3 is slower than HTTP/1.1 in ";
    for (name, text) in Fixture::quick().report(|input| {
        [
            ("brief", terminal(input, 200, false, Extent::Brief)),
            ("full", terminal(input, 200, false, Extent::Full)),
            ("html", html(input)),
        ]
    }) {
        let place = text.find(answer).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(text.find("Verdicts").or(text.find("All verdicts")).is_none_or(|verdicts| place < verdicts), "{name}");
    }
}

#[test]
fn a_missing_number_has_the_number_of_its_reason() {
    let text = Fixture::quick().report(|input| terminal(input, 110, false, Extent::Full));
    let notes = text.lines().filter(|line| line.contains("Not measured ("));
    assert!(notes.clone().count() > 0, "{text}");
    for note in notes {
        let number = note.trim_start().split(' ').next().unwrap();
        assert!(["¹", "²", "³"].contains(&number) && text.contains(&format!("n/m{number}")), "{note}");
    }
}

#[test]
fn before_the_end_the_answer_says_so() {
    let mut fixture = Fixture::quick();
    fixture.analysis.moment = wirelab_stats::analysis::Moment::Underway;
    for text in fixture.report(|input| [terminal(input, 200, false, Extent::Brief), html(input)]) {
        assert!(text.contains("The run has not reached its planned end; brackets are"), "{text}");
    }
}

#[test]
fn the_markdown_report_is_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(markdown));
}

#[test]
fn the_latex_table_is_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(wirelab_report::latex));
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
    // Style and script are separate files; this snapshot is the page.
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
fn no_report_shows_nan_or_infinity() {
    for (name, text) in
        formats(&Fixture::quick()).into_iter().chain(formats(&Fixture::large())).chain(formats(&Fixture::pairs()))
    {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
            assert!(!["NaN", "inf", "Infinity", "nan"].contains(&word), "{name} has {word}");
        }
    }
}

#[test]
fn terminal_lines_fit_the_width() {
    for fixture in [Fixture::quick(), Fixture::tiny(), Fixture::conditions(), Fixture::pairs()] {
        for width in [60, 80, 100, 120, 200] {
            for extent in [Extent::Brief, Extent::Full] {
                let text = fixture.report(|input| terminal(input, width, false, extent));
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{} columns of {width}: {line}", line.chars().count());
                }
            }
        }
    }
}

#[test]
fn the_terminal_has_every_column_at_110_columns() {
    let text = Fixture::quick().report(|input| terminal(input, 110, false, Extent::Full));
    assert!(text.contains("memory") && !text.contains("Omitted at"), "{text}");
}

#[test]
fn colours_come_only_when_asked_for() {
    let fixture = Fixture::quick();
    let plain = fixture.report(|input| terminal(input, 110, false, Extent::Full));
    let coloured = fixture.report(|input| terminal(input, 110, true, Extent::Full));
    assert!(!plain.contains('\u{1b}'));
    assert!(coloured.contains('\u{1b}'));
}

#[test]
fn verdicts_come_before_tables_and_tables_before_warnings() {
    let fixture = Fixture::quick();
    let text = fixture.report(|input| terminal(input, 110, false, Extent::Full));
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
    for (name, text) in fixture
        .report(|i| [("terminal", terminal(i, 110, false, Extent::Full)), ("markdown", markdown(i)), ("html", html(i))])
    {
        assert!(text.contains("within the noise floor"), "{name}: {text}");
    }
}

/// A load of three requests: the second on a separate connection, the third failed.
fn load() -> PageLoad {
    let resource = |start_ns: u64, request_ns, response_ns, end_ns| PageResource {
        url: "https://wirelab.test/".to_owned(),
        start_ns,
        request_ns,
        response_ns,
        end_ns,
        ..PageResource::default()
    };
    let mut resources = vec![
        resource(0, Some(30_000_000), Some(45_000_000), Some(60_000_000)),
        resource(50_000_000, Some(80_000_000), Some(95_000_000), Some(120_000_000)),
        resource(50_000_000, None, None, None),
    ];
    resources[0].connection = Some(7);
    resources[1].connection = Some(8);
    resources[1].connect_ns = Some((52_000_000, 79_000_000));
    let values = [("onload".to_owned(), Value::Measured(118e6))].into_iter().collect();
    PageLoad { outcome: Outcome::Ok, values, warnings: Vec::new(), resources }
}

#[test]
fn loads_of_pages_are_waterfalls_beside_each_other() {
    let mut fixture = Fixture::tiny();
    assert!(!fixture.report(html).contains("Waterfall"), "where no page is loaded there is none");
    fixture.loads = [(0, load()), (1, load())].into();
    let page = fixture.report(html);
    assert_eq!(page.matches("Waterfall of a load by").count(), 2);
    assert!(page.contains("HTTP/2: 3 requests") && page.contains("time since the first request (ms)"), "{page}");
    assert!(!page.contains("NaN") && !page.contains(">wirelab.test"), "of one host there is no heading");
    assert!(page.contains("\nrequest: https://wirelab.test/\nstart (ns): 50000000\n"), "{page}");
    let mut spread = load();
    spread.resources[1].url = "https://cdn-2.wirelab.test/a.jpg".to_owned();
    fixture.loads = [(0, load()), (1, spread.clone())].into();
    let page = fixture.report(html);
    for words in [">wirelab.test: 1 connection<", ">cdn-2.wirelab.test: 1 connection<", "grouped by host"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    spread.resources[1].connection = None;
    fixture.loads = [(1, spread)].into();
    assert!(fixture.report(html).contains(">cdn-2.wirelab.test<"), "what is not known is not counted");
}

#[test]
fn films_of_pages_are_strips_below_each_other_in_the_page_itself() {
    let mut fixture = Fixture::tiny();
    assert!(!fixture.report(html).contains("filmstrip-"), "where nothing is filmed there is none");
    let picture = |at_ns: f64| Picture { at_ns, progress: at_ns / 300e6, file: format!("{at_ns}.jpg") };
    let pictures = vec![picture(0.0), picture(300e6)];
    let film = |speed_index_ns| Film { speed_index_ns, complete_ns: 300e6, pictures: pictures.clone() };
    let jpegs = || vec![b"one".to_vec(), b"two".to_vec()];
    fixture.films = [(0, (film(300e6), jpegs())), (1, (film(250e6), jpegs()))].into();
    let page = fixture.report(html);
    assert_eq!((page.matches("id=\"filmstrip-").count(), page.matches("Filmstrips of a load by").count()), (1, 1));
    // Four moments; an unchanged picture is stored once.
    assert_eq!((page.matches("<image ").count(), page.matches("<use ").count()), (4, 4));
    assert!(page.contains("data:image/jpeg;base64,b25l") && page.contains("Speed Index 250 ms"), "{page}");
    assert!(page.contains("img-src data:") && !page.contains("NaN"));
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
fn figures_show_requests_as_boxes_with_and_without_outliers_in_every_readable_format() {
    let mut fixture = Fixture::quick();
    fixture.manifest.study.figures = serde_json::from_value(serde_json::json!([
        { "title": "Boxes of each payload", "cells": { "connections": "1" }, "rows": "protocol" },
        { "title": "Boxes of all payloads", "rows": "protocol", "pool": ["payload", "connections"] },
        { "title": "Boxes of nothing", "cells": { "protocol": "h9" }, "rows": "protocol" },
    ]))
    .unwrap();
    let [text, narrow, marked, page] = fixture.report(|input| {
        [
            terminal(input, 140, false, Extent::Full),
            terminal(input, 70, false, Extent::Full),
            markdown(input),
            html(input),
        ]
    });
    for (name, text) in [("terminal", &text), ("narrow", &narrow), ("markdown", &marked), ("html", &page)] {
        assert!(text.contains("Boxes of each payload") && text.contains("Boxes of all payloads"), "{name}: {text}");
        assert!(!text.contains("Boxes of nothing"), "{name}");
    }
    // The 2000 requests of twelve trials of each cell. The second figure has the requests of all cells.
    assert!(
        text.lines().any(|line| line.starts_with(" HTTP/1.1") && line.contains(" 2000 ") && line.contains('┃')),
        "{text}"
    );
    assert!(text.lines().any(|line| line.starts_with(" HTTP/1.1") && line.contains(" 8000 ")), "{text}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 70), "{narrow}");
    assert!(marked.contains("| box plot without outliers |") && marked.contains("| `├"), "{marked}");
    let figure = page.split_once("id=\"figure-1\"").unwrap().1.split_once("</figure>").unwrap().0;
    let (all, within) = figure.split_once("facets within").unwrap();
    assert!(all.contains("Draw without outliers") && all.matches("<svg").count() > within.matches("<svg").count());
    assert!(all.matches("<circle").count() > within.matches("<circle").count());
}

#[test]
fn warnings_of_the_manifest_are_shown_and_none_twice() {
    let mut fixture = Fixture::tiny();
    let warning = wirelab_model::warning::Warning::BusyMachine { load: 3.5, cores: 2 };
    fixture.manifest.warnings.push(warning.clone());
    fixture.analysis.warnings.push(warning);
    for (name, text) in formats(&fixture) {
        let expected = usize::from(!["cells", "comparisons", "contests", "pairs", "latex"].contains(&name));
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

/// The section of winners.
fn winners(text: &str, end: &str) -> String {
    let from = text.find("Winners by condition").expect("the section of winners");
    let to = text[from..].find(end).expect("something follows") + from;
    text[from..to].to_owned()
}

#[test]
fn who_wins_where_is_in_the_terminal_as_agreed() {
    let text = Fixture::conditions().report(|input| terminal(input, 110, false, Extent::Full));
    insta::assert_snapshot!(winners(&text, "\nround_trip 5 ms,"));
}

#[test]
fn who_wins_where_is_in_markdown_as_agreed() {
    insta::assert_snapshot!(winners(&Fixture::conditions().report(markdown), "\n### round_trip"));
}

#[test]
fn the_heat_map_is_as_agreed() {
    let page = Fixture::conditions().report(html);
    insta::assert_snapshot!(winners(page.split_once("<section id=\"winners\">").expect("its section").1, "</section>"));
}

#[test]
fn the_csv_of_contests_is_as_agreed() {
    insta::assert_snapshot!(Fixture::quick().report(contests_csv));
}

#[test]
fn a_narrow_terminal_has_a_line_per_tile_in_the_place_of_the_grid() {
    let text = Fixture::conditions().report(|input| terminal(input, 60, false, Extent::Full));
    assert!(text.contains(" · 100 ms, 1 %, 100 Mbit/s, 10 KiB: ✓ HTTP/3 −32 %\n"), "{text}");
    assert!(winners(&text, "\nround_trip 5 ms,").lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn without_two_other_factors_there_is_no_heat_map() {
    for (name, text) in formats(&Fixture::tiny()) {
        assert!(!text.contains("Winners by condition"), "{name}");
    }
}

#[test]
fn each_level_comes_to_every_condition_once() {
    let text = Fixture::conditions().report(|input| terminal(input, 200, false, Extent::Full));
    for level in ["HTTP/1.1", "HTTP/2", "HTTP/3"] {
        let is_tally = |line: &&str| line.starts_with(&format!(" · {level}: ")) && line.contains(" in 24 conditions");
        let line = text.lines().find(is_tally).expect("a line");
        let words: Vec<_> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let kinds = ["win", "wins", "tie", "ties", "loss", "losses", "inconclusive", "without"];
        let counts = words.windows(2).filter(|pair| kinds.contains(&pair[1])).map(|pair| pair[0]);
        assert_eq!(counts.map(|count| count.parse::<u32>().expect("a count")).sum::<u32>(), 24, "{line}");
    }
}

#[test]
fn a_winner_within_the_noise_floor_is_marked_and_not_sure() {
    let mut fixture = Fixture::conditions();
    for compared in fixture.analysis.comparisons.iter_mut().filter(|compared| compared.aa) {
        compared.interval = Some(wirelab_stats::analysis::Interval { low: 0.1, high: 10.0, confidence: 0.95 });
    }
    let text = fixture.report(|input| terminal(input, 110, false, Extent::Full));
    let grid = winners(&text, "\n · ✓");
    assert!(grid.contains("! HTTP/3 −20 %") && !grid.contains("✓ HTTP/3"), "{grid}");
    assert!(fixture.report(html).contains("within the A/A noise floor, treat it with caution"));
}

#[test]
fn a_tile_without_a_winner_has_no_hue() {
    let page = Fixture::conditions().report(html);
    let mut seen = std::collections::BTreeSet::new();
    for class in page.split("<td class=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or("")) {
        let words: Vec<_> = class.split(' ').collect();
        let hue = words.iter().any(|word| word.len() > 1 && word.starts_with('h') && word[1..].parse::<u8>().is_ok());
        assert_eq!(hue, ["sure", "noise"].contains(&words[0]), "{class}");
        seen.insert(words[0].to_owned());
    }
    assert!(["sure", "tied", "open", "absent"].iter().all(|class| seen.contains(*class)), "{seen:?}");
}

/// The section of clients and servers.
fn pairs(text: &str, end: &str) -> String {
    let from =
        text.find("Which pairs work").or_else(|| text.find("<section id=\"pairs\">")).expect("it speaks of pairs");
    let to = text[from..].find(end).expect("something follows") + from;
    text[from..to].to_owned()
}

#[test]
fn clients_and_servers_are_in_the_terminal_as_agreed() {
    let text = Fixture::pairs().report(|input| terminal(input, 110, false, Extent::Full));
    insta::assert_snapshot!(pairs(&text, "\nWinners by condition"));
}

#[test]
fn clients_and_servers_are_in_markdown_as_agreed() {
    insta::assert_snapshot!(pairs(&Fixture::pairs().report(markdown), "\n### Winners by condition"));
}

#[test]
fn the_matrix_of_clients_and_servers_is_as_agreed() {
    insta::assert_snapshot!(pairs(&Fixture::pairs().report(html), "</section>"));
}

#[test]
fn the_csv_of_pairs_is_as_agreed() {
    insta::assert_snapshot!(Fixture::pairs().report(pairs_csv));
}

#[test]
fn a_matrix_wider_than_the_terminal_is_cut_between_servers() {
    let text = Fixture::pairs().report(|input| terminal(input, 60, false, Extent::Full));
    let text = pairs(&text, "\nWinners by condition");
    assert!(text.matches(" client ╲ server").count() > 4, "{text}");
    let narrow = Fixture::pairs().report(|input| terminal(input, 40, false, Extent::Full));
    for server in ["builtin", "java-jetty", "envoy", "nginx"] {
        assert!(text.contains(server) && narrow.contains(server), "{server}");
    }
}

#[test]
fn every_pair_has_its_tile_in_every_table_whatever_became_of_it() {
    let page = Fixture::pairs().report(html);
    let section = pairs(&page, "</section>");
    assert_eq!(section.matches("<td class=").count(), 2 * 2 * 16);
    for (class, count) in [("broken", 4), ("absent", 2), ("partly", 4)] {
        assert_eq!(section.matches(&format!("<td class=\"{class}")).count(), count, "{class}");
    }
    for (name, text) in formats(&Fixture::tiny()) {
        assert!(!text.contains("Which pairs work") && !text.contains("id=\"pairs\""), "{name}");
    }
}
