//! Programs of the user as endpoints: wirelab starts itself, and then the program.

use std::collections::BTreeMap;

use serde_json::json;
use wirelab_lab::endpoints::Found;
use wirelab_model::own_client::OwnClient;
use wirelab_model::plan::{BUILTIN, Plan, command_name};
use wirelab_model::units::Span;

use crate::error::RunError;

/// The programs that cells of a plan name, as servers and as clients.
///
/// # Errors
/// If wirelab has no endpoint of its own, or two cells describe the output of one program differently.
pub(crate) fn own_programs(plan: &Plan, found: &[Found]) -> Result<Vec<Found>, RunError> {
    let mut all = own_servers(plan, found)?;
    all.extend(own_clients(plan, found)?);
    Ok(all)
}

fn own_servers(plan: &Plan, found: &[Found]) -> Result<Vec<Found>, RunError> {
    let mut programs: BTreeMap<&Vec<String>, Span> = BTreeMap::new();
    for servers in plan.cells.iter().filter_map(|cell| cell.job.servers()) {
        if let Some(words) = &servers.command {
            let limit = programs.entry(words).or_insert(servers.start_timeout);
            *limit = servers.start_timeout.max(*limit);
        }
    }
    let endpoint = |(words, limit): (&Vec<String>, Span)| {
        own_program(words, &["--own-server", &json!(words).to_string(), "--start-timeout", &limit.to_string()], found)
    };
    programs.into_iter().map(endpoint).collect()
}

fn own_clients(plan: &Plan, found: &[Found]) -> Result<Vec<Found>, RunError> {
    let mut programs: Vec<&OwnClient> = Vec::new();
    for own in plan.cells.iter().filter_map(|cell| cell.job.own_client.as_ref()) {
        match programs.iter().find(|known| known.words == own.words) {
            Some(known) if known.output != own.output => {
                let name = command_name(&own.words);
                let why = format!("cells with the client `{name}` have different `client_output`; write one for all");
                return Err(RunError::Refused { why });
            }
            Some(_) => {}
            None => programs.push(own),
        }
    }
    let endpoint = |own: &OwnClient| own_program(&own.words, &["--own-client", &json!(own).to_string()], found);
    programs.into_iter().map(endpoint).collect()
}

/// The endpoint that starts a program of the user: wirelab itself with these arguments.
fn own_program(words: &[String], arguments: &[&str], found: &[Found]) -> Result<Found, RunError> {
    let why = "this wirelab has no endpoint of its own to start a program of the user";
    let builtin = found.iter().find_map(|one| one.endpoint.as_ref().ok().filter(|one| one.name == BUILTIN));
    let mut endpoint = builtin.cloned().ok_or_else(|| RunError::Refused { why: why.to_owned() })?;
    endpoint.name = command_name(words);
    endpoint.command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    Ok(Found { name: endpoint.name.clone(), folder: None, endpoint: Ok(endpoint), installation: None })
}
