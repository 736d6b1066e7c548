//! Properties of the HTML report that hold for any content.

use crate::fixture::Fixture;
use wirelab_report::html;

/// Elements without an end tag.
const VOID: [&str; 5] = ["meta", "input", "br", "hr", "!doctype"];

/// Whether all tags are closed in the right order. Here, style and script contain no tags.
fn balanced(page: &str) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let end = rest[start..].find('>').ok_or_else(|| format!("a tag without end: {}", &rest[start..]))? + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or("").to_lowercase();
        if let Some(closing) = tag.strip_prefix('/') {
            let last = open.pop();
            if last.as_deref() != Some(closing) {
                return Err(format!("`</{closing}>` closes {last:?}"));
            }
        } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            // The content of script and style is text.
            if name == "script" || name == "style" {
                let close = format!("</{name}>");
                let at = rest.find(&close).ok_or_else(|| format!("no {close}"))?;
                rest = &rest[at + close.len()..];
            } else {
                open.push(name);
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("not closed: {open:?}")) }
}

#[test]
fn every_tag_is_closed() {
    for fixture in [Fixture::tiny(), Fixture::quick(), Fixture::large(), Fixture::conditions(), Fixture::pairs()] {
        balanced(&fixture.report(html)).unwrap();
    }
    assert!(balanced("<p><b></p>").is_err());
}

#[test]
fn the_page_makes_no_requests() {
    let page = Fixture::quick().report(html);
    for word in ["http://", "https://", "src=", "url(", "@import", "<link", "<img", "<iframe", "//cdn"] {
        assert!(!page.contains(word), "the page has `{word}`");
    }
    assert!(page.contains("default-src 'none'"));
    // References lead to existing anchors of the page.
    for reference in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or("")) {
        let target = reference.strip_prefix('#').unwrap_or_else(|| panic!("`{reference}` leads out of the page"));
        assert!(page.contains(&format!("id=\"{target}\"")), "`{reference}` leads nowhere");
    }
}

#[test]
fn every_anchor_is_there_once() {
    let page = Fixture::quick().report(html);
    let mut seen = std::collections::BTreeSet::new();
    for id in page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or("")) {
        assert!(seen.insert(id), "`{id}` twice");
    }
}

#[test]
fn every_cell_is_in_the_page() {
    for fixture in [Fixture::quick(), Fixture::large()] {
        let page = fixture.report(html);
        for cell in &fixture.manifest.plan.cells {
            let label = format!("<th scope=\"row\" title=\"{}\"", cell.label());
            assert!(page.contains(&label), "no row of `{}`", cell.label());
        }
    }
}

#[test]
fn every_warning_is_there_with_its_remedy() {
    let fixture = Fixture::quick();
    let page = fixture.report(html).replace("<code>", "`").replace("</code>", "`").replace("&quot;", "\"");
    let page = page.replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    for warning in &fixture.analysis.warnings {
        assert!(page.contains(&warning.meaning()), "no `{}`", warning.meaning());
        assert!(page.contains(warning.remedy()), "no `{}`", warning.remedy());
    }
}

#[test]
fn a_missing_number_says_why() {
    let page = Fixture::quick().report(html);
    assert!(page.contains("not measured<sup>"));
    assert!(page.contains("Not measured: <code>resumption = none</code>"));
    assert!(page.contains("the kernel&#39;s drop counters are not readable in this container"));
    assert!(page.contains("12 of 12 trials unsupported"));
    assert!(page.contains("10 of 12 trials</small>"), "a number of some trials only is marked");
    assert!(page.contains("unknown: the kernel offers no frequency scaling here"));
}

#[test]
fn a_metric_that_is_zero_or_missing_everywhere_is_a_line_and_no_row() {
    let row = "<tr><th scope=\"row\">Peak memory, client</th>";
    let mut fixture = Fixture::tiny();
    assert!(fixture.report(html).contains(row));
    for cell in &mut fixture.analysis.cells {
        let estimate = cell.estimates.get_mut("memory_client_peak").expect("the fixture measures it");
        (estimate.median, estimate.quartiles, estimate.range) = (0.0, (0.0, 0.0), (0.0, 0.0));
    }
    let page = fixture.report(html);
    assert!(page.contains("<p>0 in every trial: Peak memory, client.</p>") && !page.contains(row));
    assert!(page.contains("not readable in this container): Dropped datagrams.</p>"));
    // If one trial of one cell has a value other than 0, every cell shows its value.
    fixture.analysis.cells[0].estimates["memory_client_peak"].range.1 = 4096.0;
    assert!(fixture.report(html).contains(row));
}

#[test]
fn the_page_begins_with_the_answer_and_an_overview_and_folds_the_rest() {
    let page = Fixture::quick().report(html);
    let place = |what: &str| page.find(what).unwrap_or_else(|| panic!("no `{what}`"));
    let order = ["class=\"headline ", "href=\"#warnings\"", "id=\"overview\"", "<details", "id=\"verdicts\""];
    assert!(order[..4].iter().map(|what| place(what)).is_sorted());
    // Each section after the answer is a fold; the list of charts has a fold for each chart.
    let (_, rest) = page.split_once("</nav>").unwrap();
    for section in rest.split("<section id=\"").skip(1) {
        let (id, content) = section.split_once("\">").unwrap();
        let is_folded = content.trim_start().starts_with("<details class=\"fold\"><summary><h2>");
        assert!(is_folded || id == "charts", "{id}");
    }
}

#[test]
fn a_mark_of_a_chart_has_its_exact_numbers() {
    let fixture = Fixture::quick();
    let page = fixture.report(html);
    let (_, overview) = page.split_once("id=\"overview\"").unwrap();
    let (overview, _) = overview.split_once("</figure>").unwrap();
    let first = fixture.manifest.study.compare.metrics[0].as_str();
    let compared = fixture.analysis.comparisons.iter().filter(|one| one.metric == first && !one.aa);
    let mut marks = 0;
    for one in compared.filter(|one| one.ratio.is_some()) {
        let label = fixture.manifest.plan.cells[one.cell].label();
        let facts = format!("<title>cell: {label}\nbaseline: ");
        let (_, facts) = overview.split_once(&facts).unwrap_or_else(|| panic!("no mark of {label}"));
        let (facts, _) = facts.split_once("</title>").unwrap();
        assert!(facts.contains(&format!("\nratio: {}\n", one.ratio.unwrap())), "{facts}");
        assert!(facts.contains(&format!("\nn (blocks): {}\n", one.blocks)), "{facts}");
        marks += 1;
    }
    assert!(marks > 3 && overview.matches("class=\"tip\"").count() == marks);
}

#[test]
fn claims_without_cells_take_one_line() {
    let mut fixture = Fixture::quick();
    let mut claim = fixture.analysis.claims[0].clone();
    (claim.id, claim.text, claim.effects) = ("C99".to_owned(), "An absent cell wins.".to_owned(), Vec::new());
    claim.verdict = wirelab_stats::analysis::ClaimVerdict::NotTested;
    claim.untested = Some("This plan has no such cell.".to_owned());
    fixture.analysis.claims.push(claim);
    let page = fixture.report(html);
    assert!(!page.contains("<span class=\"id\">C99</span>"));
    assert!(page.contains("C99</summary>") && page.contains("This plan has no such cell."));
    let text = fixture.report(|input| wirelab_report::terminal(input, 110, false, wirelab_report::Extent::Full));
    assert!(text.lines().any(|line| line.contains("Not tested: ") && line.contains("C99")), "{text}");
}

#[test]
fn text_of_a_study_is_never_markup() {
    let page = Fixture::quick().report(html);
    assert!(!page.contains("<b>thesis</b>"));
    assert!(page.contains("&#60;b&#62;thesis") || page.contains("&lt;b&gt;thesis"));
}

#[test]
fn every_drawing_has_a_name_and_takes_its_colours_from_the_page() {
    let page = Fixture::quick().report(html);
    let drawings: Vec<_> = page.split("<svg ").skip(1).collect();
    assert!(drawings.len() > 30);
    for drawing in drawings {
        let drawing = drawing.split("</svg>").next().unwrap_or("");
        assert!(drawing.contains("role=\"img\"><title>"), "{}", &drawing[..200.min(drawing.len())]);
        assert!(!drawing.contains("fill=\"#") && !drawing.contains("stroke=\"#"));
    }
}

#[test]
fn a_study_of_135_cells_is_a_page_of_less_than_three_megabytes() {
    let page = Fixture::large().report(html);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}
