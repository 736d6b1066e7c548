//! The null server of a run: which cells it can stand for.

use wirelab_lab::Lab;
use wirelab_model::manifest::EndpointRecord;
use wirelab_model::plan::Job;
use wirelab_model::reference::NotReferenced;

/// Why a lab with this null server has no reference for a job.
pub(crate) fn unavailable(null_server: Option<&EndpointRecord>, lab: &dyn Lab, job: &Job) -> Option<NotReferenced> {
    let Some(record) = null_server else { return Some(NotReferenced::NoNullServer) };
    let role = record.description.server.as_ref();
    let speaks = role.is_some_and(|role| role.protocols.contains(&job.protocol));
    // Without a start of endpoints, their descriptions are unavailable.
    if lab.info().starts_endpoints && !speaks {
        return Some(NotReferenced::Protocol { protocol: job.protocol });
    }
    lab.check(job).err().map(|_| NotReferenced::NoNullServer)
}
