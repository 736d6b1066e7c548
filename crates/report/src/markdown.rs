//! The report as Markdown, for a comment on a pull request.

use std::fmt::Write as _;

use indexmap::IndexMap;

use crate::columns::{Column, summary};
use crate::contests::Field;
use crate::failures::failures;
use crate::layout::Layout;
use crate::numbers::NBSP;
use crate::pairs::views;
use crate::steady;
use crate::summary::{ground, verdicts};
use crate::tally::tallies;
use crate::tile::NOTE;
use crate::words;
use crate::{
    Input, by_request, claims, figures, limits, links, means, overhead, paths, planted, published, shares, source,
};

/// The report as Markdown with tables in the style of GitHub.
#[must_use]
pub fn markdown(input: &Input) -> String {
    let layout = Layout::new(input);
    let mut out = String::new();
    let study = &input.manifest.study;
    let _ = writeln!(out, "## {}\n\n{}\n", escape(&study.title), escape(&study.question));
    for sentence in verdicts(input, &layout) {
        let _ = writeln!(out, "- {} {}", sentence.symbol, escape(&sentence.text));
    }
    out.push('\n');
    for sentence in ground(input, &layout) {
        let _ = writeln!(out, "{}  ", escape(&sentence));
    }
    // A matrix of clients and servers replaces the tables of each client in less space, and shows which pairs work.
    let has_matrix = pairs(&mut out, input);
    winners(&mut out, input, &layout);
    let has_rows = comparisons(&mut out, input, &layout);
    if !has_matrix && !has_rows {
        tables(&mut out, input, &layout);
    }
    figure_tables(&mut out, input);
    failed(&mut out, input);
    shares_tables(&mut out, input);
    claims_table(&mut out, input);
    published_table(&mut out, input);
    request_table(&mut out, input);
    overhead_table(&mut out, input);
    link_table(&mut out, input);
    path_table(&mut out, input);
    limits_table(&mut out, input);
    planted_table(&mut out, input);
    warnings(&mut out, input);
    foot(&mut out, input);
    out.replace(NBSP, " ")
}

/// The source of the numbers: the machine, or the imported table with its limits.
fn foot(out: &mut String, input: &Input) {
    let manifest = input.manifest;
    let Some(table) = input.table else {
        let _ = writeln!(
            out,
            "\n<sub>{} · seed {} · lab {} · {} · {}</sub>",
            escape(&manifest.environment.wirelab),
            manifest.plan.seed,
            escape(&manifest.lab),
            escape(&manifest.environment.cpu),
            escape(&manifest.environment.kernel)
        );
        return;
    };
    let _ = writeln!(out, "\n### {}\n", source::TAKEN);
    for (name, value) in source::facts(table) {
        let _ = writeln!(out, "- {}", escape(&format!("{name}: {value}")));
    }
    let _ = writeln!(out, "\n### {}\n", source::LIMITS);
    for limit in source::limits(input, table) {
        let _ = writeln!(out, "- {}", escape(&limit));
    }
}

/// Every comparison of an imported table in one row. Returns whether the report has such a table.
fn comparisons(out: &mut String, input: &Input, layout: &Layout) -> bool {
    let tables = means::tables(input, layout);
    for of_metric in &tables {
        let _ = writeln!(out, "\n### {}, every comparison\n", escape(&of_metric.title));
        row(out, &of_metric.header);
        let numbers = of_metric.words..of_metric.words + 2;
        let rule: Vec<_> =
            (0..of_metric.header.len()).map(|column| if numbers.contains(&column) { "---:" } else { "---" }).collect();
        let _ = writeln!(out, "| {} |", rule.join(" | "));
        for line in &of_metric.rows {
            row(out, line);
        }
        let _ = writeln!(out, "\n{}", escape(&of_metric.tally));
    }
    if !tables.is_empty() {
        let _ = writeln!(out, "\n<sub>{}</sub>", escape(means::NOTE));
    }
    !tables.is_empty()
}

/// Winners by condition in the first metric.
fn winners(out: &mut String, input: &Input, layout: &Layout) {
    let Some(field) = Field::of(input, layout, input.first_metric()) else { return };
    let title = field.metric.map_or_else(|| input.first_metric().to_owned(), |metric| words::phrase(metric.title));
    let _ = writeln!(out, "\n### Winners by condition: {}\n", escape(&title));
    for tally in tallies(&field) {
        let _ = writeln!(out, "- {}", escape(&tally));
    }
    out.push('\n');
    let table = field.table();
    for (number, line) in table.iter().enumerate() {
        row(out, line);
        if number == 0 {
            let _ = writeln!(out, "| {} |", vec!["---"; line.len()].join(" | "));
        }
    }
    let _ = writeln!(out, "\n<sub>{}</sub>", escape(NOTE));
}

/// The matrix of clients and servers. Returns whether the study has one.
fn pairs(out: &mut String, input: &Input) -> bool {
    let failures = failures(input);
    let views = views(input, &failures);
    let Some(first) = views.first().map(|view| view.table.metric.as_str()) else { return false };
    let _ = writeln!(out, "\n### Which pairs work\n");
    for view in views.iter().filter(|view| view.table.metric == first) {
        let _ = writeln!(out, "- {}", escape(&view.tally()));
        for trouble in view.table.pairs.iter().filter_map(|pair| view.trouble(pair)) {
            let _ = writeln!(out, "  - {}", escape(&trouble));
        }
    }
    for view in &views {
        let _ = writeln!(out, "\n### {}\n", escape(&view.title()));
        for (number, line) in view.lines(&view.table.servers).iter().enumerate() {
            row(out, line);
            if number == 0 {
                let _ = writeln!(out, "| --- |{}", " ---: |".repeat(line.len() - 1));
            }
        }
        if view.judges() {
            let _ = writeln!(out, "\n{}\n", escape(&view.rest()));
        }
        for sentence in view.odd().into_iter().filter_map(|pair| view.interaction(pair)) {
            let _ = writeln!(out, "- {}", escape(&sentence));
        }
    }
    let _ = writeln!(out, "\n<sub>{} {}</sub>", escape(crate::pairs::NOTE), escape(&views[0].needs()));
    true
}

fn tables(out: &mut String, input: &Input, layout: &Layout) {
    let columns = summary(input);
    for (number, group) in layout.groups.iter().enumerate() {
        let _ = writeln!(out, "\n### {}\n", escape(&group.title()));
        let mut header = vec![input.manifest.study.compare.factor.clone()];
        header.extend(columns.iter().map(|column| {
            let (first, second) = column.heading;
            format!("{first} {second} ({})", column.scale.name).replace("  ", " ").replace(" ()", "")
        }));
        header.push("verdict".to_owned());
        row(out, &header);
        let rule: Vec<_> = (0..header.len())
            .map(|column| if column == 0 || column + 1 == header.len() { "---" } else { "---:" }.to_owned())
            .collect();
        let _ = writeln!(out, "| {} |", rule.join(" | "));
        for cell in &group.rows {
            let mut cells = vec![layout.row_title(*cell)];
            cells.extend(columns.iter().map(|column| match input.estimate(cell.cell, column.metric.name) {
                Some(estimate) => {
                    let number = column.scale.number(estimate.median);
                    let number = steady::marked(input, cell.cell, column.metric, number);
                    match input.partly(cell.cell, column.metric.name) {
                        Some((some, all)) => format!("{number} ({some} of {all} trials)"),
                        None => number,
                    }
                }
                None => "not measured".to_owned(),
            }));
            let metric = input.first_metric();
            cells.push(match input.compared(cell.cell, metric) {
                Some(compared) => {
                    let noise = if words::within_noise(compared) { ", within the noise floor" } else { "" };
                    let (word, size) = words::short(input, compared);
                    let colon = if size.is_empty() { "" } else { ": " };
                    format!("{} {word}{colon}{size}{noise}", words::symbol(&compared.verdict))
                }
                None if cell.twin => {
                    format!("noise floor {}", words::noise_words(words::noise_floor(input, layout, number, metric)))
                }
                None => "baseline".to_owned(),
            });
            row(out, &cells);
        }
        missing(out, input, layout, number, &columns);
    }
}

/// The reasons for missing numbers of a group, once per cell and reason.
fn missing(out: &mut String, input: &Input, layout: &Layout, group: usize, columns: &[Column]) {
    let mut reasons: IndexMap<(String, String), Vec<String>> = IndexMap::new();
    for row in &layout.groups[group].rows {
        for column in columns.iter().filter(|column| input.estimate(row.cell, column.metric.name).is_none()) {
            let why = input.why_missing(row.cell, column.metric.name);
            let metrics = reasons.entry((layout.row_title(*row), why)).or_default();
            metrics.push(words::phrase(column.metric.title));
        }
    }
    if !reasons.is_empty() {
        out.push('\n');
    }
    for ((title, why), metrics) in reasons {
        let _ = writeln!(out, "- {}", escape(&format!("{title}, not measured ({}): {why}", metrics.join(", "))));
    }
}

/// The figures of the study: a table for each plot, with its boxes in text.
fn figure_tables(out: &mut String, input: &Input) {
    let figures = figures::figures(input);
    for figure in &figures {
        let _ = writeln!(out, "\n### {}", escape(&figure.title));
        for plot in &figure.plots {
            let _ = writeln!(out, "\n{}\n", escape(&plot.title));
            let header: Vec<_> =
                figures::HEADER.iter().chain(&["box plot without outliers"]).map(|name| (*name).to_owned()).collect();
            row(out, &header);
            let rule: Vec<_> = (0..header.len())
                .map(|column| if column == 0 || column + 1 == header.len() { "---" } else { "---:" })
                .collect();
            let _ = writeln!(out, "| {} |", rule.join(" | "));
            for mut line in plot.table() {
                if let Some(drawn) = line.last_mut().filter(|drawn| !drawn.is_empty()) {
                    *drawn = format!("`{drawn}`");
                }
                row(out, &line);
            }
        }
    }
    if !figures.is_empty() {
        let _ = writeln!(out, "\n<sub>{}</sub>", escape(figures::NOTE));
    }
}

fn failed(out: &mut String, input: &Input) {
    let list = failures(input);
    if list.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n### Failed and unsupported trials\n");
    for failure in list {
        let label = input.manifest.plan.cells[failure.cell].label();
        let _ = writeln!(
            out,
            "- `{label}`: {} of {} trials {}, blame: {}. {}",
            failure.trials,
            failure.of,
            failure.outcome,
            failure.blame,
            escape(&failure.reason)
        );
    }
}

fn claims_table(out: &mut String, input: &Input) {
    if input.analysis.claims.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n### Claims\n");
    row(out, &["claim", "verdict", "effects"].map(str::to_owned));
    let _ = writeln!(out, "| --- | --- | --- |");
    for claim in &input.analysis.claims {
        let mut effects: Vec<_> = claims::effects(input, claim)
            .into_iter()
            .map(|e| {
                let at = if e.at.is_empty() { String::new() } else { format!("{}: ", e.at) };
                format!("{at}{} = {}, expected {}: {}", e.of, e.size, e.expect, words::claim(e.verdict))
            })
            .collect();
        // A comment shows the first effects; the HTML report has all.
        const SHOWN: usize = 6;
        let has_more = effects.len() > SHOWN;
        effects.truncate(SHOWN);
        match (&claim.cases, has_more) {
            (Some(_), _) => {
                effects.insert(0, claims::tally(claim));
                effects.extend(has_more.then(|| "…".to_owned()));
            }
            (None, true) => effects.push(format!("… {}", claims::tally(claim))),
            (None, false) => {}
        }
        effects.extend(claim.untested.iter().map(|untested| format!("not tested: {untested}")));
        let verdict = format!("{} {}", words::claim_symbol(claim.verdict), words::claim(claim.verdict));
        let effects: Vec<_> = effects.iter().map(|effect| escape(effect)).collect();
        let _ =
            writeln!(out, "| {} {} | {verdict} | {} |", escape(&claim.id), escape(&claim.text), effects.join("<br>"));
    }
}

fn shares_tables(out: &mut String, input: &Input) {
    for table in shares::main(input) {
        let _ = writeln!(out, "\n### {}\n", table.title);
        row(out, &table.header);
        let numbers = " ---: |".repeat(table.header.len() - 1);
        let _ = writeln!(out, "| --- |{numbers}");
        for cells in &table.rows {
            row(out, cells);
        }
        let _ = writeln!(out, "\n{}", table.note);
    }
}

fn published_table(out: &mut String, input: &Input) {
    let pairs = published::pairs(input);
    if pairs.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n### Published and measured\n");
    row(out, &["cell", "metric", "published", "measured", "measured / published", "note"].map(str::to_owned));
    let _ = writeln!(out, "| --- | --- | ---: | ---: | ---: | --- |");
    for p in pairs {
        row(out, &[p.cell, p.metric, p.published, p.measured, p.ratio, p.note]);
    }
}

fn request_table(out: &mut String, input: &Input) {
    let rows = by_request::rows(input);
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n### Requests\n\n{}\n", by_request::NOTE);
    row(out, &by_request::HEADER.map(str::to_owned));
    let _ = writeln!(out, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for cells in rows {
        row(out, &cells);
    }
}

fn overhead_table(out: &mut String, input: &Input) {
    let rows = overhead::rows(input);
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n### Bytes on the wire: model and measured\n\n{}\n", overhead::NOTE);
    row(out, &overhead::HEADER.map(str::to_owned));
    let _ = writeln!(out, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for cells in rows {
        row(out, &cells);
    }
}

fn link_table(out: &mut String, input: &Input) {
    measured_table(out, "Links", links::NOTE, links::HEADER, &links::rows(input.links));
}

fn path_table(out: &mut String, input: &Input) {
    measured_table(out, "Paths between hosts", paths::NOTE, paths::HEADER, &paths::rows(input.links));
}

fn measured_table<const N: usize>(
    out: &mut String,
    heading: &str,
    note: &str,
    header: [&str; N],
    rows: &[[String; N]],
) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n### {heading}\n\n{note}\n");
    row(out, &header.map(str::to_owned));
    let _ = writeln!(out, "|{}", " --- |".repeat(N));
    for cells in rows {
        row(out, cells);
    }
}

fn limits_table(out: &mut String, input: &Input) {
    let Some(section) = limits::section(input) else { return };
    let alignment = "| --- | ---: | ---: | ---: | --- |";
    table_with_notes(out, (limits::HEADING, &section.lead), (limits::HEADER, alignment, &section.rows), &section.notes);
}

fn planted_table(out: &mut String, input: &Input) {
    let Some(section) = planted::section(input) else { return };
    let alignment = "| --- | ---: | ---: | --- | ---: | --- |";
    let rows = (planted::HEADER, alignment, &section.rows[..]);
    table_with_notes(out, (planted::HEADING, &section.lead), rows, &section.notes);
}

fn table_with_notes<const N: usize>(
    out: &mut String,
    (heading, lead): (&str, &str),
    (header, alignment, rows): ([&str; N], &str, &[[String; N]]),
    notes: &[String],
) {
    let _ = writeln!(out, "\n### {heading}\n\n{}", escape(lead));
    if !rows.is_empty() {
        out.push('\n');
        row(out, &header.map(str::to_owned));
        let _ = writeln!(out, "{alignment}");
        rows.iter().for_each(|cells| row(out, cells));
    }
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        let _ = writeln!(out, "- {}", escape(note));
    }
}

fn warnings(out: &mut String, input: &Input) {
    let groups = crate::warnings::grouped(input);
    if groups.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n### Warnings\n");
    for group in groups {
        const SHOWN: usize = 3;
        for meaning in group.meanings.iter().take(SHOWN) {
            let _ = writeln!(out, "- {}", escape(meaning));
        }
        if group.meanings.len() > SHOWN {
            let _ = writeln!(out, "- … and {} more of this kind.", group.meanings.len() - SHOWN);
        }
        let _ = writeln!(out, "  - *Remedy: {}*", escape(group.remedy));
    }
}

fn row(out: &mut String, cells: &[String]) {
    let cells: Vec<_> = cells.iter().map(|cell| escape(cell)).collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// Escapes Markdown and HTML markup; code in backticks stays code.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*").replace(['\r', '\n'], " ")
}
