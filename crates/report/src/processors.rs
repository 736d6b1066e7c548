//! Where client and server ran, and what it means for the numbers.

use indexmap::IndexSet;
use wirelab_model::plan::Cell;
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

/// The processor times of one side.
const OF_ONE_SIDE: [&str; 4] =
    ["cpu_client_per_request", "cpu_server_per_request", "cpu_client_per_byte", "cpu_server_per_byte"];

/// That processor times of one side contain parts of the other's. `None` if no such metric is compared, or client and
/// server do not share a kernel.
pub(crate) fn both_sides(input: &Input) -> Option<String> {
    let is_compared = input.manifest.study.compare.metrics.iter().any(|metric| OF_ONE_SIDE.contains(&metric.as_str()));
    let one_kernel = |cell: &Cell| {
        cell.job.servers().is_some() && (cell.job.topology.link.is_some() || cell.job.topology.placement == "local")
    };
    let cells = &input.manifest.plan.cells;
    if input.table.is_some() || !is_compared || !cells.iter().any(one_kernel) {
        return None;
    }
    Some(
        "The processor times of client and server contain parts of each other: on loopback and between network \
         namespaces, the kernel charges the receipt of a packet to its sender. Only their sum is free of that \
         (`cpu_total_per_request`)."
            .to_owned(),
    )
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
