//! `wirelab endpoints list`.

use std::fmt::Write;

use serde::Serialize;
use serde_json::json;
use wirelab_lab::LabError;
use wirelab_lab::endpoints::{Checked, Found, Installation, Record, describe};
use wirelab_model::endpoint::{Description, Role};

use crate::carried;
use crate::commands::endpoints::page::page;
use crate::failure::Result;
use crate::output::{print, print_json};
use crate::place::program;

/// An endpoint with its description, and its records of installation and contract suite.
pub(super) struct Row {
    pub found: Found,
    pub described: std::result::Result<Description, LabError>,
    /// The record of the installation.
    pub record: Option<Record>,
    /// The latest result of the contract suite.
    pub checked: Option<Checked>,
}

impl Row {
    fn new(found: Found) -> Self {
        let described = found.endpoint.as_ref().map_err(Clone::clone).and_then(describe);
        let (record, checked) = (found.installation.as_ref().and_then(Installation::record), found.checked());
        Self { found, described, record, checked }
    }

    /// Why no record of the installation exists.
    pub fn why_no_record(&self) -> String {
        let installation = self.found.installation.as_ref();
        installation.map_or_else(|| "there is nothing to build".to_owned(), Installation::why_not)
    }

    /// Why no result of the contract suite exists.
    pub fn why_unchecked(&self) -> String {
        match &self.found.endpoint {
            Ok(_) => "the suite has not been run on it as it is now".to_owned(),
            Err(_) if self.record.is_none() && self.found.installation.is_some() => self.why_no_record(),
            Err(error) => error.to_string(),
        }
    }
}

/// Prints every endpoint.
pub fn list(as_json: bool, as_markdown: bool) -> Result {
    let rows = described(wirelab_lab::endpoints::discover(&program()?, carried::endpoints()));
    if as_json {
        return print_json(&rows.iter().map(json).collect::<Vec<_>>());
    }
    let text: String = if as_markdown { page(&rows) } else { rows.iter().map(text).collect() };
    print(&text)
}

/// Asks the endpoints for their descriptions, as many at a time as there are processors, because some take a second to
/// start.
fn described(all: Vec<Found>) -> Vec<Row> {
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rows = Vec::new();
    let mut rest = all.into_iter();
    loop {
        let some: Vec<_> = rest.by_ref().take(at_a_time).collect();
        if some.is_empty() {
            return rows;
        }
        std::thread::scope(|scope| {
            let asked: Vec<_> = some.into_iter().map(|found| scope.spawn(|| Row::new(found))).collect();
            rows.extend(asked.into_iter().map(|thread| thread.join().expect("asking does not panic")));
        });
    }
}

fn text(row: &Row) -> String {
    let mut text = String::new();
    match &row.described {
        Ok(description) => {
            let (name, language) = (&row.found.name, &description.language);
            let _ = writeln!(text, "{name}  {}, {language}{}", library(description), state(row));
            for (word, role) in [("server", &description.server), ("client", &description.client)] {
                let _ = writeln!(text, "  {word}: {}", role.as_ref().map_or_else(|| "no".to_owned(), offers));
            }
            // Only few endpoints play these roles.
            if let Some(sidecar) = &description.sidecar {
                let _ = writeln!(text, "  sidecar: {}", protocols(sidecar));
            }
            if let Some(control_plane) = &description.control_plane {
                let _ = writeln!(text, "  control plane: {}", protocols(control_plane));
            }
        }
        Err(error) => {
            let _ = writeln!(text, "{}{}\n  not usable: {error}", row.found.name, planned(&row.found));
        }
    }
    text
}

/// Library and language of an endpoint without a description, from its manifest.
fn planned(found: &Found) -> String {
    let installation = found.installation.as_ref();
    installation.map_or_else(String::new, |it| format!("  {}, {}", it.install.library, it.install.language))
}

/// The cost of the installation and the result of the contract suite.
fn state(row: &Row) -> String {
    let mut text = String::new();
    if let Some(record) = &row.record {
        let _ = write!(text, "; installed in {}, {}", seconds(record.seconds), megabytes(record.bytes));
    }
    if let Some(checked) = &row.checked {
        let _ = write!(text, "; contract suite: {}", verdict(checked));
    }
    text
}

pub(super) fn seconds(seconds: f64) -> String {
    format!("{seconds:.0} s")
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

/// The result of the contract suite in words.
pub(super) fn verdict(checked: &Checked) -> String {
    let Checked { passed, not_applicable, failed, not_tried, .. } = checked;
    let not_tried = if *not_tried == 0 { String::new() } else { format!(", {not_tried} not tried") };
    format!("{passed} passed, {not_applicable} n.a., {failed} failed{not_tried}")
}

/// The libraries and their versions. With several libraries, `version` may already name each of them.
pub(super) fn library(Description { library, version, .. }: &Description) -> String {
    let said = version.to_lowercase();
    if library.split(", ").all(|name| said.contains(&name.to_lowercase())) {
        version.clone()
    } else {
        format!("{library} {version}")
    }
}

pub(super) fn protocols(role: &Role) -> String {
    role.protocols.iter().map(|protocol| protocol.token()).collect::<Vec<_>>().join(" ")
}

fn offers(role: &Role) -> String {
    let features: Vec<_> = role.features.iter().map(|feature| format!("{feature:?}").to_lowercase()).collect();
    format!("{} ({})", protocols(role), features.join(" "))
}

fn json(row: &Row) -> serde_json::Value {
    let Row { found, described, record, checked } = row;
    let mut value = match described {
        Ok(description) => json!({ "name": found.name, "installed": true, "description": description }),
        Err(error) => json!({ "name": found.name, "installed": false, "reason": error.to_string() }),
    };
    if let Some(folder) = &found.folder {
        value["folder"] = json!(folder.display().to_string());
    }
    if let Some(installation) = &found.installation {
        value["install"] = json!({
            "language": installation.install.language,
            "library": installation.install.library,
            "set": installation.install.set,
            "place": installation.place().display().to_string(),
            "record": or_why(record, || row.why_no_record()),
        });
    }
    value["contract_suite"] = or_why(checked, || row.why_unchecked());
    value
}

/// A value, or the reason why it is missing.
fn or_why(value: &Option<impl Serialize>, why: impl FnOnce() -> String) -> serde_json::Value {
    value.as_ref().map_or_else(|| json!({ "not_measured": why() }), |value| json!(value))
}
