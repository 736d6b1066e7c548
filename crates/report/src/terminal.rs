//! The report for a terminal: the answer and an overview; in full also a table per group of levels, claims, and
//! warnings with their remedies.

mod brief;
mod pairs;

use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table};
use indexmap::{IndexMap, IndexSet};
use wirelab_stats::analysis::ClaimVerdict;

use crate::Input;
use crate::columns::{Column, summary};
use crate::contests::Field;
use crate::failures::{self, Failure, failures};
use crate::layout::{Layout, Row};
use crate::numbers::NBSP;
use crate::steady;
use crate::summary::{ground, verdicts};
use crate::tally::tallies;
use crate::tile::NOTE;
use crate::words::{self, Tone};
use crate::{
    by_request, claims, figures, limits, links, means, overhead, paths, planted, published, shares, source, warnings,
};

/// Narrower widths cannot hold a table; the text is then laid out for this width.
const NARROWEST: usize = 40;

/// The length of a terminal report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The answer and an overview, on one page.
    Brief,
    /// Everything.
    Full,
}

/// The report for a terminal of `width` columns, with ANSI colours only if `colour` is set.
#[must_use]
pub fn terminal(input: &Input, width: usize, colour: bool, extent: Extent) -> String {
    let page = Page { input, layout: Layout::new(input), width: width.max(NARROWEST), colour };
    let mut out = String::new();
    match extent {
        Extent::Brief => page.brief(&mut out),
        Extent::Full => page.full(&mut out),
    }
    out.replace(NBSP, " ")
}

/// The number of shown rows of the model of bytes on the wire; further rows are counted.
const ROWS: usize = 8;

/// The number of shown warnings of one kind; further warnings are counted.
const SHOWN: usize = 3;

struct Page<'a> {
    input: &'a Input<'a>,
    layout: Layout,
    width: usize,
    colour: bool,
}

impl Page<'_> {
    fn full(&self, out: &mut String) {
        self.headline(out, usize::MAX);
        self.verdicts(out);
        // A matrix of clients and servers replaces the tables of each client in less space, and shows which pairs work.
        let has_matrix = self.pairs(out);
        self.winners(out);
        let has_rows = self.rows(out);
        if !has_matrix && !has_rows {
            self.tables(out);
        }
        self.figures(out);
        self.shares(out);
        self.claims(out);
        self.published(out);
        self.requests(out);
        self.overhead(out);
        self.links(out);
        self.paths(out);
        self.limits(out);
        self.planted(out);
        self.warnings(out);
        self.source(out);
    }

    fn verdicts(&self, out: &mut String) {
        self.heading(out, "Verdicts");
        for sentence in verdicts(self.input, &self.layout) {
            let symbol = self.paint(sentence.symbol, tone_colour(sentence.tone));
            self.item(out, &symbol, &sentence.text);
        }
        out.push('\n');
        for sentence in ground(self.input, &self.layout) {
            self.item(out, "·", &sentence);
        }
    }

    /// Winners by condition in the first metric: the grid, or a line for each tile if the grid is too wide.
    fn winners(&self, out: &mut String) {
        let Some(field) = Field::of(self.input, &self.layout, self.input.first_metric()) else { return };
        let title = field.metric.map_or_else(|| self.input.first_metric().to_owned(), |m| words::phrase(m.title));
        self.heading(out, &format!("Winners by condition: {title}"));
        for tally in tallies(&field) {
            self.item(out, "·", &tally);
        }
        out.push('\n');
        let mut table = self.plain_table();
        let mut lines = field.table().into_iter();
        let header = lines.next().unwrap_or_default();
        table.set_header(
            header.into_iter().map(|cell| Cell::new(cell.replace(", ", "\n")).add_attribute(Attribute::Dim)),
        );
        for line in lines {
            table.add_row(line);
        }
        let text = trimmed(&table);
        if text.lines().all(|line| visible_width(line) <= self.width) {
            out.push_str(&text);
        } else {
            for contest in &field.contests {
                self.item(out, "·", &format!("{}: {}", field.grid.title(&contest.levels), field.tile(contest).line()));
            }
        }
        out.push('\n');
        self.item(out, "·", NOTE);
    }

    /// Every comparison of an imported table in one row. Returns whether the report has such a table.
    fn rows(&self, out: &mut String) -> bool {
        let tables = means::tables(self.input, &self.layout);
        for of_metric in &tables {
            self.heading(out, &format!("{}, every comparison", of_metric.title));
            let mut table = self.plain_table();
            let aligned = |column: usize, text: &str| {
                let cell = Cell::new(text);
                let is_number = (of_metric.words..of_metric.words + 2).contains(&column);
                if is_number { cell.set_alignment(CellAlignment::Right) } else { cell }
            };
            let header = of_metric.header.iter().enumerate();
            table.set_header(header.map(|(column, name)| aligned(column, &halved(name)).add_attribute(Attribute::Dim)));
            for row in &of_metric.rows {
                table.add_row(row.iter().enumerate().map(|(column, text)| aligned(column, text)));
            }
            let text = trimmed(&table);
            if text.lines().all(|line| visible_width(line) <= self.width) {
                out.push_str(&text);
            } else {
                for row in &of_metric.rows {
                    let facts = of_metric.header.iter().zip(row).map(|(name, fact)| format!("{name} {fact}"));
                    self.item(out, "·", &facts.collect::<Vec<_>>().join("; "));
                }
            }
            out.push('\n');
            self.item(out, "·", &of_metric.tally);
        }
        if !tables.is_empty() {
            self.item(out, "·", means::NOTE);
        }
        !tables.is_empty()
    }

    /// The interpretation of an imported table, and its limits.
    fn source(&self, out: &mut String) {
        let Some(table) = self.input.table else { return };
        self.heading(out, source::TAKEN);
        for (name, value) in source::facts(table) {
            self.item(out, "·", &format!("{name}: {value}"));
        }
        self.heading(out, source::LIMITS);
        for limit in source::limits(self.input, table) {
            self.item(out, "!", &limit);
        }
    }

    fn plain_table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if self.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table
    }

    fn tables(&self, out: &mut String) {
        let columns = summary(self.input);
        let failures = failures(self.input);
        let kept = self.fitting(&columns, &failures);
        let (columns, dropped) = columns.split_at(kept);
        for group in 0..self.layout.groups.len() {
            self.heading(out, &self.layout.groups[group].title());
            out.push_str(&self.table(group, columns, &failures));
            for row in &self.layout.groups[group].rows {
                if let Some(words) = failures::of_cell(&failures, row.cell) {
                    self.item(out, "!", &format!("{}: {words}", self.layout.row_title(*row)));
                }
            }
        }
        if !dropped.is_empty() {
            out.push('\n');
            let titles: Vec<_> = dropped.iter().map(|column| words::phrase(column.metric.title)).collect();
            self.item(out, "·", &format!("Omitted at this width: {}.", titles.join(", ")));
        }
    }

    /// The number of columns that fit into the width in every table. The last columns, which show costs, are omitted
    /// first.
    fn fitting(&self, columns: &[Column], failures: &[Failure]) -> usize {
        let fits = |kept: &usize| {
            (0..self.layout.groups.len()).all(|group| {
                let text = self.table(group, &columns[..*kept], failures);
                text.lines().all(|line| visible_width(line) <= self.width)
            })
        };
        (1..columns.len() + 1).rev().find(fits).unwrap_or(columns.len().min(1))
    }

    fn table(&self, group: usize, columns: &[Column], failures: &[Failure]) -> String {
        let mut table = self.plain_table();
        let mut header = vec![Cell::new(&self.input.manifest.study.compare.factor)];
        for column in columns {
            let (first, second) = column.heading;
            let lines: Vec<_> =
                [first, second, column.scale.name].into_iter().filter(|line| !line.is_empty()).collect();
            header.push(Cell::new(lines.join("\n")).set_alignment(CellAlignment::Right));
        }
        let title = self.input.metric(self.input.first_metric()).map_or("", |metric| metric.title);
        header.push(Cell::new(format!("verdict on\n{}", words::phrase(title))));
        table.set_header(header.into_iter().map(|cell| cell.add_attribute(Attribute::Dim)));
        let mut notes = Notes::default();
        for row in &self.layout.groups[group].rows {
            let title = if row.twin { "└ A/A".to_owned() } else { self.layout.row_title(*row) };
            let mut cells = vec![Cell::new(title)];
            for column in columns {
                let shown = match self.input.estimate(row.cell, column.metric.name) {
                    Some(estimate) => {
                        let partly = self.input.partly(row.cell, column.metric.name).is_some();
                        let number = column.scale.number(estimate.median);
                        let number = steady::marked(self.input, row.cell, column.metric, number);
                        format!("{number}{}", if partly { "*" } else { "" })
                    }
                    None => {
                        format!(
                            "n/m{}",
                            superscript(notes.number(self.input.why_missing(row.cell, column.metric.name), column))
                        )
                    }
                };
                cells.push(Cell::new(shown).set_alignment(CellAlignment::Right));
            }
            let (text, tone) = self.verdict(group, *row, failures);
            let cell = Cell::new(text);
            cells.push(match tone {
                Some(tone) => cell.fg(tone_colour(tone)),
                None => cell.add_attribute(Attribute::Dim),
            });
            table.add_row(cells);
        }
        let mut text = trimmed(&table);
        if text.contains('*') {
            self.item(&mut text, "*", "Measured in some trials only.");
        }
        for (number, (reason, metrics)) in notes.0.iter().enumerate() {
            let metrics: Vec<_> = metrics.iter().map(String::as_str).collect();
            let note = format!("Not measured ({}): {reason}", metrics.join(", "));
            self.item(&mut text, &superscript(number + 1), &note);
        }
        text
    }

    fn verdict(&self, group: usize, row: Row, failures: &[Failure]) -> (String, Option<Tone>) {
        let metric = self.input.first_metric();
        if let Some(compared) = self.input.compared(row.cell, metric) {
            let tone = Tone::of(&compared.verdict, self.input.metric(metric));
            let mark = words::symbol(&compared.verdict);
            let (word, size) = words::short(self.input, compared);
            let mut text = format!("{mark} {word}");
            if !size.is_empty() {
                // A long verdict takes two lines to leave room for the numbers before it.
                let short = word.chars().count() <= 6;
                let _ = write!(text, "{}{size}", if short { ": " } else { "\n  " });
            }
            if words::within_noise(compared) {
                text.push_str("\n  within the noise floor");
            }
            return (text, Some(tone));
        }
        if row.twin {
            let noise = words::noise_floor(self.input, &self.layout, group, metric);
            return (format!("noise floor {}", words::noise_words(noise)), None);
        }
        let lost = self.input.estimate(row.cell, metric).is_none() && failures::of_cell(failures, row.cell).is_some();
        (if lost { "no data, see below" } else { "baseline" }.to_owned(), None)
    }

    /// The figures of the study as tables, each row with its box if the width allows it.
    fn figures(&self, out: &mut String) {
        let figures = figures::figures(self.input);
        for figure in &figures {
            self.heading(out, &figure.title);
            for plot in &figure.plots {
                let lines = plot.table();
                let (whole, numbers) = (self.boxes(&lines, true), self.boxes(&lines, false));
                let fits = |text: &str| text.lines().all(|line| visible_width(line) <= self.width);
                self.item(out, "·", &plot.title);
                if fits(&whole) {
                    out.push_str(&whole);
                } else if fits(&numbers) {
                    out.push_str(&numbers);
                } else {
                    for line in &lines {
                        let facts =
                            figures::HEADER.iter().zip(line).skip(1).map(|(name, fact)| format!("{name} {fact}"));
                        self.item(out, " ", &format!("{}: {}", line[0], facts.collect::<Vec<_>>().join(", ")));
                    }
                }
                for row in &plot.rows {
                    if let Err(why) = &row.requests {
                        self.item(out, "–", &format!("{}: {why}", row.label));
                    }
                }
            }
        }
        if !figures.is_empty() {
            out.push('\n');
            self.item(out, "·", figures::NOTE);
        }
    }

    fn boxes(&self, lines: &[Vec<String>], drawn: bool) -> String {
        let mut table = self.plain_table();
        let columns = figures::HEADER.len() + usize::from(drawn);
        let right = |column: usize| (1..figures::HEADER.len()).contains(&column);
        let cell = |column: usize, text: &str| {
            let cell = Cell::new(text);
            if right(column) { cell.set_alignment(CellAlignment::Right) } else { cell }
        };
        let header = figures::HEADER.into_iter().chain([""]).take(columns).enumerate();
        table.set_header(header.map(|(column, name)| cell(column, name).add_attribute(Attribute::Dim)));
        for line in lines {
            table.add_row(line.iter().take(columns).enumerate().map(|(column, text)| cell(column, text)));
        }
        trimmed(&table)
    }

    fn claims(&self, out: &mut String) {
        if self.input.analysis.claims.is_empty() {
            return;
        }
        self.heading(out, "Claims");
        for claim in &self.input.analysis.claims {
            let colour = match claim.verdict {
                ClaimVerdict::Holds => Color::Green,
                ClaimVerdict::DoesNotHold => Color::Red,
                _ => Color::Yellow,
            };
            let symbol = self.paint(words::claim_symbol(claim.verdict), colour);
            let verdict = words::claim(claim.verdict);
            if claim.verdict == ClaimVerdict::NotTested {
                continue;
            }
            let mut text = format!("{} {verdict}: {} ({})", claim.id, claim.text, claims::tally(claim));
            if let Some(untested) = &claim.untested {
                let _ = write!(text, " Not tested: {untested}");
            }
            self.item(out, &symbol, &text);
        }
        if let Some(line) = claims::not_tested(self.input) {
            self.item(out, words::claim_symbol(ClaimVerdict::NotTested), &line);
        }
    }

    fn shares(&self, out: &mut String) {
        for table in shares::main(self.input) {
            self.heading(out, &table.title);
            for row in table.rows {
                let facts: Vec<_> =
                    table.header.iter().zip(&row).skip(1).map(|(name, fact)| format!("{name} {fact}")).collect();
                self.item(out, "·", &format!("{}: {}", row[0], facts.join("; ")));
            }
        }
    }

    fn published(&self, out: &mut String) {
        let pairs = published::pairs(self.input);
        if pairs.is_empty() {
            return;
        }
        self.heading(out, "Published and measured");
        // A preset may have only some of the published cells, or none.
        let (here, elsewhere): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|pair| pair.is_here);
        let more = elsewhere.len().saturating_sub(1);
        for pair in here.into_iter().chain(elsewhere.into_iter().take(1)) {
            let text = format!("{}, {}: published {}, here {}", pair.cell, pair.metric, pair.published, pair.measured);
            self.item(out, "·", &text);
        }
        if more > 0 {
            self.item(out, " ", &format!("… and {more} more for cells outside this run; the HTML report lists them."));
        }
    }

    fn requests(&self, out: &mut String) {
        let rows = by_request::rows(self.input);
        if rows.is_empty() {
            return;
        }
        self.heading(out, "Requests");
        for [cell, request, _, succeeded, failed, median, p90, p99] in rows {
            let text = format!(
                "{cell}, {request}: {succeeded} succeeded, {failed} failed; median {median}, P90 {p90}, P99 {p99}"
            );
            self.item(out, "·", &text);
        }
        self.item(out, " ", by_request::NOTE);
    }

    fn overhead(&self, out: &mut String) {
        let rows = overhead::rows(self.input);
        if rows.is_empty() {
            return;
        }
        self.heading(out, "Bytes on the wire: model and measured");
        let more = rows.len().saturating_sub(ROWS);
        for [cell, at, packets, down, up, model, measured, ratio] in rows.into_iter().take(ROWS) {
            let text = format!(
                "{cell}, at the {at}: {packets} packets predicted, {down} down and {up} up measured; {model} bytes predicted, \
                 {measured} measured (ratio {ratio})"
            );
            self.item(out, "·", &text);
        }
        if more > 0 {
            self.item(out, " ", &format!("… and {more} more in the HTML report."));
        }
        self.item(out, " ", overhead::NOTE);
    }

    fn links(&self, out: &mut String) {
        self.measured(out, "Links: configured → measured", links::HEADER, &links::rows(self.input.links));
    }

    fn paths(&self, out: &mut String) {
        self.measured(out, "Paths between hosts, measured", paths::HEADER, &paths::rows(self.input.links));
    }

    fn measured<const N: usize>(&self, out: &mut String, heading: &str, header: [&str; N], rows: &[[String; N]]) {
        if rows.is_empty() {
            return;
        }
        self.heading(out, heading);
        for row in rows {
            let facts: Vec<_> = header.iter().zip(row).skip(1).map(|(name, fact)| format!("{name} {fact}")).collect();
            self.item(out, "·", &format!("{}: {}", row[0], facts.join("; ")));
        }
    }

    fn limits(&self, out: &mut String) {
        let Some(section) = limits::section(self.input) else { return };
        self.heading(out, limits::HEADING);
        self.item(out, " ", &section.lead);
        for [cell, reference, client, server, network] in section.rows {
            let text =
                format!("{cell}: client {client}; server {server}; network {network} (null reference {reference})");
            self.item(out, "·", &text);
        }
        section.notes.iter().for_each(|note| self.item(out, " ", note));
    }

    fn planted(&self, out: &mut String) {
        let Some(section) = planted::section(self.input) else { return };
        self.heading(out, planted::HEADING);
        self.item(out, " ", &section.lead);
        for [metric, size, truth, found, blocks, detected] in section.rows {
            let text =
                format!("{metric}, {size} planted: true {truth}, found {found}, {blocks} blocks; detected: {detected}");
            self.item(out, "·", &text);
        }
        section.notes.iter().for_each(|note| self.item(out, " ", note));
    }

    fn warnings(&self, out: &mut String) {
        let groups = warnings::grouped(self.input);
        if groups.is_empty() {
            return;
        }
        self.heading(out, "Warnings");
        for group in groups {
            let symbol = self.paint("!", Color::Yellow);
            for meaning in group.meanings.iter().take(SHOWN) {
                self.item(out, &symbol, meaning);
            }
            if group.meanings.len() > SHOWN {
                self.item(out, " ", &format!("… and {} more of this kind.", group.meanings.len() - SHOWN));
            }
            self.item(out, " ", &format!("Remedy: {}", group.remedy));
        }
    }

    fn heading(&self, out: &mut String, text: &str) {
        let text = wrapped(text, self.width);
        let text = if self.colour { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text };
        let _ = writeln!(out, "{}{text}", if out.is_empty() { "" } else { "\n" });
    }

    /// A sentence after a mark; its further lines are indented.
    fn item(&self, out: &mut String, mark: &str, text: &str) {
        let text = wrapped(text, self.width.saturating_sub(visible_width(mark) + 2));
        let indent = " ".repeat(visible_width(mark));
        for (number, line) in text.lines().enumerate() {
            let _ = writeln!(out, " {} {line}", if number == 0 { mark } else { &indent });
        }
    }

    fn paint(&self, text: &str, colour: Color) -> String {
        let code = match colour {
            Color::Green => 32,
            Color::Red => 31,
            Color::Yellow => 33,
            _ => 36,
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// A number in digits that are narrow and above the line: `¹²`.
fn superscript(number: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number.to_string().bytes().map(|digit| DIGITS[usize::from(digit - b'0')]).collect()
}

/// Reasons for missing numbers with the metrics that lack them; cells refer to a reason by its number.
#[derive(Default)]
struct Notes(IndexMap<String, IndexSet<String>>);

impl Notes {
    /// The number of a reason, from 1.
    fn number(&mut self, reason: String, column: &Column) -> usize {
        let entry = self.0.entry(reason);
        let number = entry.index() + 1;
        entry.or_default().insert(words::phrase(column.metric.title));
        number
    }
}

/// The table as text without trailing spaces.
pub(crate) fn trimmed(table: &Table) -> String {
    table.to_string().lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{}", line.trim_end());
        text
    })
}

const fn tone_colour(tone: Tone) -> Color {
    match tone {
        Tone::Better => Color::Green,
        Tone::Worse => Color::Red,
        Tone::Same => Color::Cyan,
        Tone::Unknown => Color::Yellow,
    }
}

/// A heading, split into two lines of similar length if it is long.
pub(crate) fn halved(name: &str) -> String {
    let middle = name.len() / 2;
    let spaces = name.match_indices(' ').map(|(place, _)| place);
    match spaces.min_by_key(|place| place.abs_diff(middle)).filter(|_| name.len() > 12) {
        Some(place) => format!("{}\n{}", &name[..place], &name[place + 1..]),
        None => name.to_owned(),
    }
}

/// Breaks a text at spaces into lines of at most `width` characters; a longer word has a line of its own.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    // Only at plain spaces: a no-break space joins a number and its unit.
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// The width of a line in columns: its characters without ANSI escape sequences.
fn visible_width(line: &str) -> usize {
    let mut width = 0;
    let mut escape = false;
    for letter in line.chars() {
        match letter {
            '\u{1b}' => escape = true,
            'm' if escape => escape = false,
            _ if !escape => width += 1,
            _ => {}
        }
    }
    width
}
