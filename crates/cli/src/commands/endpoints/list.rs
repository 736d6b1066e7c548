//! `wirelab endpoints list`.

use std::fmt::Write;

use serde_json::json;
use wirelab_lab::LabError;
use wirelab_lab::endpoints::{Checked, Found, describe};
use wirelab_model::endpoint::{Description, Role};

use crate::failure::Result;
use crate::output::{print, print_json};
use crate::place::program;

/// An endpoint, and what it says of itself.
struct Row {
    found: Found,
    described: std::result::Result<Description, LabError>,
}

/// Prints every endpoint.
pub fn list(as_json: bool, as_markdown: bool) -> Result {
    let rows = described(wirelab_lab::endpoints::discover(&program()?));
    if as_json {
        return print_json(&rows.iter().map(json).collect::<Vec<_>>());
    }
    let text: String = if as_markdown { markdown(&rows) } else { rows.iter().map(text).collect() };
    print(&text)
}

/// Asks the endpoints what they can do, as many at a time as there are processors: some take a second to start.
fn described(all: Vec<Found>) -> Vec<Row> {
    let ask = |found: Found| {
        let described = found.endpoint.as_ref().map_err(Clone::clone).and_then(describe);
        Row { found, described }
    };
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rows = Vec::new();
    let mut rest = all.into_iter();
    loop {
        let some: Vec<_> = rest.by_ref().take(at_a_time).collect();
        if some.is_empty() {
            return rows;
        }
        std::thread::scope(|scope| {
            let asked: Vec<_> = some.into_iter().map(|found| scope.spawn(|| ask(found))).collect();
            rows.extend(asked.into_iter().map(|thread| thread.join().expect("asking does not panic")));
        });
    }
}

fn text(row: &Row) -> String {
    let mut text = String::new();
    match &row.described {
        Ok(description) => {
            let Description { name, library, version, language, .. } = description;
            let _ = writeln!(text, "{name}  {library} {version}, {language}{}", state(&row.found));
            for (word, role) in [("server", &description.server), ("client", &description.client)] {
                let _ = writeln!(text, "  {word}: {}", role.as_ref().map_or_else(|| "no".to_owned(), offers));
            }
            // Few are one.
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

/// What its manifest says of an endpoint that cannot be asked.
fn planned(found: &Found) -> String {
    let installation = found.installation.as_ref();
    installation.map_or_else(String::new, |it| format!("  {}, {}", it.install.library, it.install.language))
}

/// What installing it took, and what the contract suite said.
fn state(found: &Found) -> String {
    let Some(installation) = &found.installation else { return String::new() };
    let record = installation.record().map(|record| format!("; installed in {}", taken(record.seconds, record.bytes)));
    let checked = installation.checked().map(|checked| format!("; contract suite: {}", verdict(checked)));
    format!("{}{}", record.unwrap_or_default(), checked.unwrap_or_default())
}

fn taken(seconds: f64, bytes: u64) -> String {
    format!("{seconds:.0} s, {} MB", bytes.div_ceil(1_000_000))
}

/// What the contract suite said, in words.
pub(super) fn verdict(checked: Checked) -> String {
    let Checked { passed, not_applicable, failed } = checked;
    format!("{passed} passed, {not_applicable} n.a., {failed} failed")
}

fn protocols(role: &Role) -> String {
    role.protocols.iter().map(|protocol| protocol.token()).collect::<Vec<_>>().join(" ")
}

fn offers(role: &Role) -> String {
    let features: Vec<_> = role.features.iter().map(|feature| format!("{feature:?}").to_lowercase()).collect();
    format!("{} ({})", protocols(role), features.join(" "))
}

fn markdown(rows: &[Row]) -> String {
    let mut text = "| endpoint | language | library | server | client | set | installed in | contract suite |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let installation = row.found.installation.as_ref();
        let role = |role: &Option<Role>| role.as_ref().map(protocols).unwrap_or_default();
        let (library, language, server, client) = match (&row.described, installation) {
            (Ok(it), _) => {
                (format!("{} {}", it.library, it.version), it.language.clone(), role(&it.server), role(&it.client))
            }
            (Err(_), Some(it)) => {
                (it.install.library.clone(), it.install.language.clone(), "not installed".to_owned(), String::new())
            }
            (Err(_), None) => Default::default(),
        };
        let set = installation.map(|it| format!("{:?}", it.install.set).to_lowercase()).unwrap_or_default();
        let taken = installation.and_then(|it| it.record()).map(|it| taken(it.seconds, it.bytes)).unwrap_or_default();
        let checked = installation.and_then(|it| it.checked()).map(verdict).unwrap_or_default();
        let name = &row.found.name;
        let _ =
            writeln!(text, "| `{name}` | {language} | {library} | {server} | {client} | {set} | {taken} | {checked} |");
    }
    text
}

fn json(row: &Row) -> serde_json::Value {
    let installation = row.found.installation.as_ref();
    let mut value = match &row.described {
        Ok(description) => json!({ "name": row.found.name, "installed": true, "description": description }),
        Err(error) => json!({ "name": row.found.name, "installed": false, "reason": error.to_string() }),
    };
    if let Some(folder) = &row.found.folder {
        value["folder"] = json!(folder.display().to_string());
    }
    if let Some(installation) = installation {
        value["install"] = json!({
            "language": installation.install.language,
            "library": installation.install.library,
            "set": installation.install.set,
            "place": installation.place().display().to_string(),
            "record": installation.record(),
            "contract_suite": installation.checked(),
        });
    }
    value
}
