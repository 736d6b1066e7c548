//! The result of the loads as text: the versions side by side, one table for each page and browser.

use std::fmt::Write;

use indexmap::{IndexMap, IndexSet};
use wirelab_browser::{Browser, METRICS};
use wirelab_model::metric::{Quantity, Unit};
use wirelab_model::outcome::Outcome;

use super::loads::Cell;
use super::result::{Spread, connections, spread};

/// The width of the column with the names of metrics.
const NAMES: usize = 26;

/// The width of the column of a version.
const VERSION: usize = 32;

/// The whole result.
pub fn text(
    cells: &[Cell],
    versions: &IndexMap<Browser, String>,
    missing: &IndexMap<&str, String>,
    written: &[&str],
) -> String {
    let mut tables: IndexMap<(&str, Browser), Vec<&Cell>> = IndexMap::new();
    for cell in cells {
        tables.entry((cell.page.url.as_str(), cell.setup.browser)).or_default().push(cell);
    }
    let mut text = String::new();
    for ((url, browser), cells) in tables {
        let version = versions.get(&browser).map_or_else(String::new, |version| format!(" {version}"));
        let _ = writeln!(text, "{url} in {}{version}, median [smallest to largest]", browser.title());
        table(&mut text, &cells);
        text.push('\n');
    }
    if !written.is_empty() {
        let _ = writeln!(
            text,
            "! Written while pages loaded: {}. That makes loads longer, and not all of them alike: take the numbers from loads without.",
            written.join(", ")
        );
    }
    for reason in missing.values() {
        let _ = writeln!(text, "! {reason}");
    }
    text
}

fn table(text: &mut String, cells: &[&Cell]) {
    row(text, "", cells.iter().map(|cell| cell.setup.protocol.title().to_owned()));
    row(text, "Samples of loads", cells.iter().map(|cell| format!("{} of {}", cell.samples(), cell.loads.len())));
    let mut notes: IndexSet<String> = IndexSet::new();
    for metric in METRICS {
        let mut value = |cell: &&Cell| match spread(cell, metric.name) {
            Ok(found) => shown(found, metric.unit),
            Err(why) if cell.samples() > 0 => {
                notes.insert(format!("{} over {}: not measured: {why}", metric.title, cell.setup.protocol.title()));
                "not measured".to_owned()
            }
            Err(_) => "-".to_owned(),
        };
        let values: Vec<_> = cells.iter().map(&mut value).collect();
        row(text, metric.title, values.into_iter());
    }
    if cells.iter().any(|cell| cell.film.is_some()) {
        let mut index = |cell: &&Cell| match &cell.film {
            Some(Ok(film)) => Quantity(film.speed_index * 1e6, Unit::Nanoseconds).to_string(),
            Some(Err(why)) => {
                notes.insert(format!("Speed Index over {}: not measured: {why}", cell.setup.protocol.title()));
                "not measured".to_owned()
            }
            None => "-".to_owned(),
        };
        let values: Vec<_> = cells.iter().map(&mut index).collect();
        row(text, "Speed Index (one film)", values.into_iter());
    }
    let hosts: IndexSet<&String> =
        cells.iter().flat_map(|cell| &cell.loads).flat_map(|load| load.hosts.keys()).collect();
    if hosts.len() > 1 {
        for host in hosts {
            let number =
                |cell: &&Cell| connections(cell, host).map_or("-".to_owned(), |found| shown(found, Unit::Count));
            row(text, &format!("  to {host}"), cells.iter().map(number));
        }
    }
    for note in notes {
        let _ = writeln!(text, "  {note}");
    }
    for cell in cells {
        remarks(text, cell);
    }
}

/// Failures and warnings of a cell: each reason once, with its number of loads.
fn remarks(text: &mut String, cell: &Cell) {
    let title = cell.setup.protocol.title();
    let mut failures: IndexMap<String, usize> = IndexMap::new();
    let mut warnings: IndexMap<&str, usize> = IndexMap::new();
    for load in &cell.loads {
        match &load.outcome {
            Outcome::Ok => load.warnings.iter().for_each(|warning| *warnings.entry(warning).or_default() += 1),
            Outcome::Failed { blame, reason } => *failures.entry(format!("{blame}: {reason}")).or_default() += 1,
            Outcome::Unsupported { reason } => *failures.entry(reason.to_string()).or_default() += 1,
        }
    }
    for (reason, loads) in failures {
        let _ = writeln!(text, "  {title}, {loads} failed, no sample: {reason}");
    }
    for (warning, loads) in warnings {
        let _ = writeln!(text, "  ! {title}, {loads} of the samples: {warning}");
    }
}

fn shown(found: Spread, unit: Unit) -> String {
    let quantity = |value| Quantity(value, unit).to_string();
    let Spread { median, min, max } = found;
    if min == max { quantity(median) } else { format!("{} [{} to {}]", quantity(median), quantity(min), quantity(max)) }
}

fn row(text: &mut String, name: &str, values: impl Iterator<Item = String>) {
    let mut line = format!("  {name:<NAMES$}");
    for value in values {
        let _ = write!(line, "{value:<VERSION$}");
    }
    let _ = writeln!(text, "{}", line.trim_end());
}
