//! `docs/endpoints.md`: every endpoint with its roles, the cost of its installation, and the result of the contract
//! suite.

use std::fmt::Write;

use wirelab_lab::endpoints::{Checked, day, shared_bytes};
use wirelab_model::endpoint::{Description, Set};

use crate::commands::endpoints::list::{Row, library, megabytes, protocols, seconds, verdict};

const READING: &str = "\
`make test-endpoints` installs and checks all endpoints and writes this page. `wirelab endpoints list --markdown` prints
it for the endpoints that are installed and checked on a machine.

## How to read the table

- *server* and *client* list the protocols of an endpoint in that role: HTTP/1.1, HTTP/2 and HTTP/3 (`h1`, `h2`, `h3`),
  gRPC (`grpc`), and the raw transports (`udp`, `tcp`, `tls`, `quic`). A `c` at the end means clear text. [The
  contract](../contract/README.md) says what each protocol requires.
- *core* is the set that `wirelab endpoints install --set core` installs. Each takes well under a minute on an idle
  machine, and every change of wirelab is tested with it. The other endpoints are *full*; `--all` installs both sets.
- *installed in* is the wall time of all steps, failed attempts included. Steps run at low priority, so other work on
  the machine makes them longer. The time includes downloads that the package managers of this user did not have yet. It
  also includes compilation that no earlier installation had done. An installation from nothing can take many times as
  long.
- *disk* is the size of what is installed, without the shared caches of compilers and package managers.
- *contract suite* is the last result of `wirelab endpoints check`: cases passed, not applicable (n.a.) and failed, and
  the wall time.
- *not measured* is followed by the reason. An endpoint with nothing to build is a program of the system, or part of
  wirelab.

## Endpoints
";

const FAILING: &str = "\
Cases of the contract suite, after role and protocol. If the library is the cause, the README of the endpoint explains
it. `wirelab endpoints check NAME --only 'WORDS'` repeats the cases with these words, and says what was expected.

| endpoint | case |
|---|---|
";

/// The page for this machine, with today's date.
pub(super) fn page(rows: &[Row]) -> String {
    let mut text = format!("# Endpoints\n\n{READING}\n{}\n{}\n", written(), totals(rows));
    text.push_str(
        "| endpoint | language | library | server | client | set | installed in | disk | contract suite |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(text, "| {} |", cells(row).map(|cell| in_a_cell(&cell)).join(" | "));
    }
    text.push_str(&failures(rows));
    text
}

/// The failed cases of the contract suite by endpoint; empty if none failed.
fn failures(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for case in row.checked.iter().flat_map(|checked| &checked.failures) {
            let _ = writeln!(text, "| `{}` | {} |", row.found.name, in_a_cell(&case.to_string()));
        }
    }
    if text.is_empty() { text } else { format!("\n## What failed\n\n{FAILING}{text}") }
}

/// The sentence with date, wirelab's version and the machine.
fn written() -> String {
    let machine = wirelab_run::environment::read();
    let known = |fact: String| if fact.is_empty() { "not known".to_owned() } else { fact };
    format!(
        "Written on {} by wirelab {}: {} processors ({}), {}, {}.\n",
        day(&wirelab_run::store::journal::timestamp()),
        machine.wirelab,
        machine.cores,
        known(machine.cpu),
        known(machine.system),
        known(machine.kernel)
    )
}

/// The total cost of installing each set, as far as it was measured.
fn totals(rows: &[Row]) -> String {
    let mut text = String::from(
        "| set | endpoints | usable here | keep the contract | installed in, added up | disk |\n|---|---|---|---|---|---|\n",
    );
    for (name, set) in [("core", Some(Set::Core)), ("all", None)] {
        let count = |is: &dyn Fn(&Row) -> bool| of_set(rows, set).filter(|row| is(row)).count();
        let built = count(&|row| row.found.installation.as_ref().is_some_and(|it| !it.install.steps.is_empty()));
        let records: Vec<_> = of_set(rows, set).filter_map(|row| row.record.as_ref()).collect();
        let (took, disk) = if records.is_empty() {
            ("not measured".to_owned(), "not measured".to_owned())
        } else {
            let took = seconds(records.iter().map(|record| record.seconds).sum());
            let measured = format!("{took} for {} of the {built} that are built", records.len());
            (measured, megabytes(records.iter().map(|record| record.bytes).sum()))
        };
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {took} | {disk} |",
            count(&|_| true),
            count(&|row| row.found.endpoint.is_ok()),
            count(&|row| row.checked.as_ref().is_some_and(Checked::is_good)),
        );
    }
    let _ = writeln!(text, "\nWhat compilers keep for all of them in wirelab's cache: {}.", megabytes(shared_bytes()));
    text
}

/// The installable endpoints of a set, or of all sets.
fn of_set(rows: &[Row], set: Option<Set>) -> impl Iterator<Item = &Row> {
    let of = |row: &&Row| row.found.installation.as_ref().map(|it| it.install.set);
    rows.iter().filter(move |row| of(row).is_some_and(|own| set.is_none_or(|set| set == own)))
}

fn cells(row: &Row) -> [String; 9] {
    let installation = row.found.installation.as_ref();
    let [language, library, server, client] = match (&row.described, installation) {
        (Ok(it), _) => [it.language.clone(), library(it), as_server(it), everything_else(it)],
        (Err(_), Some(it)) => {
            let unknown = if row.found.endpoint.is_ok() { "does not say" } else { "not asked" }.to_owned();
            [it.install.language.clone(), it.install.library.clone(), unknown.clone(), unknown]
        }
        (Err(_), None) => Default::default(),
    };
    let set = installation.map_or_else(|| "built in".to_owned(), |it| format!("{:?}", it.install.set).to_lowercase());
    let (took, disk) = match &row.record {
        Some(record) => {
            let when = record.at.as_deref().map(|at| format!(" ({})", day(at)));
            (seconds(record.seconds) + &when.unwrap_or_default(), megabytes(record.bytes))
        }
        None => (not_measured(&row.why_no_record()), "not measured".to_owned()),
    };
    let suite = match &row.checked {
        Some(checked) => judged(checked, row),
        None => not_measured(&row.why_unchecked()),
    };
    [format!("`{}`", row.found.name), language, library, server, client, set, took, disk, suite]
}

fn as_server(description: &Description) -> String {
    description.server.as_ref().map_or_else(|| "no".to_owned(), protocols)
}

/// The protocols as client, and as sidecar or control plane where an endpoint plays these roles.
fn everything_else(description: &Description) -> String {
    let Description { client, sidecar, control_plane, .. } = description;
    let roles = [
        client.as_ref().map(protocols),
        sidecar.as_ref().map(|role| format!("sidecar: {}", protocols(role))),
        control_plane.as_ref().map(|role| format!("control plane: {}", protocols(role))),
    ];
    let said: Vec<_> = roles.into_iter().flatten().collect();
    if said.is_empty() { "no".to_owned() } else { said.join("; ") }
}

fn not_measured(why: &str) -> String {
    format!("not measured: {why}")
}

/// The result of the suite with its duration and date, and with the tested version if the installed version differs.
fn judged(checked: &Checked, row: &Row) -> String {
    let now = row.described.as_ref().ok().map(|it| &it.version);
    let version = checked.version.as_ref().filter(|version| now != Some(version));
    let version = version.map(|version| format!(", of version {version}")).unwrap_or_default();
    format!("{}, in {} ({}{version})", verdict(checked), seconds(checked.seconds), day(&checked.at))
}

/// The text on one line, with `|` escaped for a cell of a table.
fn in_a_cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}
