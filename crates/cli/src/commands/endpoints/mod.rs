//! `wirelab endpoints`: lists, installs, checks and removes endpoints.

mod check;
mod install;
mod list;
mod page;

use wirelab_lab::endpoints::Found;
use wirelab_model::endpoint::Set;

use crate::args::{Chosen, EndpointsArgs, EndpointsCommand, SetName};
use crate::carried;
use crate::failure::{Failure, Result};
use crate::place::program;

/// Runs the subcommand.
pub fn endpoints(args: &EndpointsArgs) -> Result {
    match &args.command {
        None => list::list(args.json, false),
        Some(EndpointsCommand::List { markdown }) => list::list(args.json, *markdown),
        Some(EndpointsCommand::Install { chosen, jobs }) => install::install(chosen, *jobs, args.json),
        Some(EndpointsCommand::Check { chosen, only, resume }) => {
            check::check(chosen, only.as_deref(), *resume, args.json)
        }
        Some(EndpointsCommand::Remove { chosen }) => install::remove(chosen, args.json),
    }
}

/// The selected endpoints, in the order of the list. A name may be that of a template.
fn chosen(Chosen { which, except }: &Chosen) -> Result<Vec<Found>> {
    let program = program()?;
    let mut all = wirelab_lab::endpoints::discover(&program, carried::endpoints());
    if !which.names.is_empty() {
        all.extend(wirelab_lab::endpoints::templates(&program, carried::endpoints()));
    }
    for name in &which.names {
        if all.iter().all(|found| found.name != *name)
            && let Some(other) = wirelab_lab::endpoints::of_version(&all, name)
        {
            all.push(other.map_err(Failure::input)?);
        }
    }
    let mut named = which.names.iter().chain(except);
    if let Some(unknown) = named.find(|name| all.iter().all(|found| found.name != **name)) {
        return Err(Failure::input(wirelab_lab::endpoints::unknown(unknown, &all)));
    }
    all.retain(|found| match which.set {
        Some(set) => {
            !found.is_other_version() && found.installation.as_ref().is_some_and(|one| is_of(one.install.set, set))
        }
        None => (which.all && !found.is_other_version()) || which.names.contains(&found.name),
    });
    all.retain(|found| !except.contains(&found.name));
    Ok(all)
}

fn is_of(own: Set, wanted: SetName) -> bool {
    match wanted {
        SetName::Core => own == Set::Core,
        SetName::Full => own == Set::Full,
    }
}
