//! Where client and server ran, and what it means for the numbers.

use indexmap::IndexSet;
use wirelab_model::processors::{Allowed, Cpus, InForce};

use crate::Input;

/// One sentence; `None` without servers of the run's own, as in a table.
pub(crate) fn sentence(input: &Input) -> Option<String> {
    if input.table.is_some() {
        return None;
    }
    let cells = input.manifest.plan.cells.iter().filter(|cell| cell.job.servers().is_some());
    let kinds: IndexSet<_> = cells.map(|cell| meaning(&cell.job.topology.cpus)).collect();
    if kinds.is_empty() {
        return None;
    }
    let kinds = kinds.into_iter().collect::<Vec<_>>().join("; ");
    let seen: IndexSet<_> =
        input.trials.iter().filter_map(|trial| Some(in_force(trial.processors.as_ref()?))).collect();
    let seen = if seen.is_empty() {
        String::new()
    } else {
        format!(" Read back: {}.", seen.into_iter().collect::<Vec<_>>().join("; "))
    };
    Some(format!("Processors: {kinds}.{seen}"))
}

fn meaning(cpus: &Cpus) -> String {
    match cpus {
        Cpus::Free => {
            "free (the kernel chooses and changes them; trials differ by where client and server ran)".to_owned()
        }
        Cpus::Shared => "shared (one processor for client and server; times are the sum of both costs)".to_owned(),
        Cpus::Split => "split (cores of their own for client and server; times as between two machines)".to_owned(),
        Cpus::Lists(_) => format!("{cpus} (as the study lists them)"),
    }
}

fn in_force(InForce { client, server, .. }: &InForce) -> String {
    let side = |allowed: &Allowed| match allowed {
        Allowed::Processors(set) => set.to_string(),
        Allowed::NotRead(reason) => format!("unknown, because {reason}"),
    };
    let server = server.as_ref().map_or_else(String::new, |server| format!(", server {}", side(server)));
    format!("client {}{server}", side(client))
}
