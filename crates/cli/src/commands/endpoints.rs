//! `wirelab endpoints`: which endpoints there are, and whether they keep the contract.

use std::fmt::Write;

use serde_json::json;
use wirelab_model::endpoint::{Endpoint, Role};

use crate::args::{EndpointsArgs, EndpointsCommand};
use crate::failure::{Failure, Result};
use crate::output::{print, print_json};
use crate::place::program;

/// Lists or checks endpoints.
pub fn endpoints(args: &EndpointsArgs) -> Result {
    match &args.command {
        None => list(args.json),
        Some(EndpointsCommand::Check { name, .. }) => check(name.as_deref(), args.json),
    }
}

fn list(as_json: bool) -> Result {
    let mut rows = Vec::new();
    let mut text = String::new();
    for found in wirelab_lab::endpoints::discover(&program()?) {
        let described = found.endpoint.as_ref().map_err(Clone::clone).and_then(wirelab_lab::endpoints::describe);
        match described {
            Ok(description) => {
                let _ = writeln!(
                    text,
                    "{}  {} {}, {}",
                    description.name, description.library, description.version, description.language
                );
                for (word, role) in [("server", &description.server), ("client", &description.client)] {
                    let _ = writeln!(text, "  {word}: {}", role.as_ref().map_or_else(|| "no".to_owned(), offers));
                }
                rows.push(json!({ "name": found.name, "installed": true, "description": description }));
            }
            Err(error) => {
                let _ = writeln!(text, "{}  not usable: {error}", found.name);
                rows.push(json!({ "name": found.name, "installed": false, "reason": error.to_string() }));
            }
        }
    }
    if as_json { print_json(&rows) } else { print(&text) }
}

fn offers(role: &Role) -> String {
    let protocols: Vec<_> = role.protocols.iter().map(|protocol| protocol.token()).collect();
    let features: Vec<_> = role.features.iter().map(|feature| format!("{feature:?}").to_lowercase()).collect();
    format!("{} ({})", protocols.join(" "), features.join(" "))
}

fn check(name: Option<&str>, as_json: bool) -> Result {
    let program = program()?;
    let found = wirelab_lab::endpoints::discover(&program);
    let builtin = wirelab_lab::endpoints::builtin(&program);
    let chosen: Vec<Endpoint> = match name {
        Some(name) => vec![wirelab_lab::endpoints::find(&program, name).map_err(Failure::input)?],
        None => found.into_iter().filter_map(|found| found.endpoint.ok()).collect(),
    };
    let scratch =
        tempfile::tempdir().map_err(|error| Failure::failed(format!("cannot make a temporary folder: {error}")))?;
    let mut reports = Vec::new();
    for endpoint in &chosen {
        if !as_json {
            print(&format!("{}\n", endpoint.name))?;
        }
        let report = wirelab_suite::check(endpoint, &builtin, scratch.path(), &mut |case| {
            if !as_json {
                let _ = print(&format!("  {case}\n"));
            }
        });
        reports.push(report);
    }
    if as_json {
        print_json(&reports)?;
    }
    let failed: usize = reports.iter().map(wirelab_suite::Report::failed).sum();
    if failed == 0 { Ok(()) } else { Err(Failure::failed(format!("{failed} cases of the contract suite failed"))) }
}
