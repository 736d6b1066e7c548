//! The processors that a trial's processes could use, read back from the kernel and compared with its confinement.

use wirelab_lab::{Arena, Beside, Confinement, Role};
use wirelab_model::metric::Side;
use wirelab_model::missing::Missing;
use wirelab_model::plan::Cell;
use wirelab_model::processors::{Allowed, InForce, ProcessorSet};
use wirelab_model::violation::Violation;
use wirelab_model::warning::Warning;
use wirelab_observe::affinity;

use crate::trial::clients::Clients;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::start::Serving;

/// All roles; the clients come first.
const ROLES: [Role; 5] =
    [Role::Client, Role::Sidecar(Beside::Clients), Role::ControlPlane, Role::Server, Role::Sidecar(Beside::Server)];

/// Reads the processors of all running processes, while they wait after the window. `None` in labs that simulate time.
///
/// # Errors
/// If a process may use other processors than those of its side; its role is to blame.
pub(super) fn read(arena: &dyn Arena, clients: &Clients, serving: &Serving) -> Result<Option<InForce>, TrialAbort> {
    if !arena.has_clock() {
        return Ok(None);
    }
    let confinement = arena.confinement();
    let (mut client, mut server) = (None, None);
    for role in ROLES {
        let handles = clients.iter().chain(&serving.handles);
        let running = handles.filter(|handle| handle.role() == role && !handle.is_stopped());
        let pids: Vec<_> = running.map(EndpointHandle::pid).collect();
        if pids.is_empty() {
            continue;
        }
        let wanted = confinement.and_then(|confinement| confinement.of(role));
        let allowed = of_role(role, pids.into_iter().collect(), wanted)?;
        let side = if role.side() == Side::Server { &mut server } else { &mut client };
        *side = Some(side.take().map_or_else(|| allowed.clone(), |others| both(others, &allowed)));
    }
    let hidden = || Allowed::NotRead(Missing::ProcessHidden { side: Side::Client });
    let shares_core = confinement.is_some_and(Confinement::shares_core);
    Ok(Some(InForce { client: client.unwrap_or_else(hidden), server, shares_core }))
}

/// Warnings for the report about the processors of a cell's trials.
pub(super) fn warnings(arena: &dyn Arena, cell: &Cell) -> Vec<Warning> {
    let cpus = &cell.job.topology.cpus;
    match arena.confinement() {
        Some(confinement) if confinement.shares_core() => vec![Warning::CoreShared { cell: cell.label() }],
        None if !cpus.is_free() && arena.has_clock() => vec![Warning::ProcessorsNotControlled {
            cell: cell.label(),
            cpus: cpus.to_string(),
            lab: arena.info().name.to_owned(),
        }],
        _ => Vec::new(),
    }
}

/// The processors of the processes in a role, which must be among the wanted ones. `pids` is `None` if some run
/// elsewhere.
fn of_role(role: Role, pids: Option<Vec<u32>>, wanted: Option<&ProcessorSet>) -> Result<Allowed, TrialAbort> {
    let Some(pids) = pids else { return Ok(Allowed::NotRead(Missing::RemoteProcess)) };
    let used = match affinity::allowed(&pids) {
        Ok(used) => used,
        Err(reason) => return Ok(Allowed::NotRead(reason)),
    };
    match wanted {
        Some(wanted) if !used.is_within(wanted) => {
            let (role_word, wanted) = (role.word().to_owned(), wanted.clone());
            Err(TrialAbort::failed(role.blame(), Violation::OtherProcessors { role: role_word, used, wanted }))
        }
        _ => Ok(Allowed::Processors(used)),
    }
}

/// The processors of two roles of a side.
fn both(one: Allowed, other: &Allowed) -> Allowed {
    match (one, other) {
        (Allowed::Processors(one), Allowed::Processors(other)) => Allowed::Processors(one.and(other)),
        (Allowed::NotRead(reason), _) => Allowed::NotRead(reason),
        (_, Allowed::NotRead(reason)) => Allowed::NotRead(reason.clone()),
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::outcome::{Blame, Outcome};
    use wirelab_model::reason::Reason;

    use super::*;

    #[test]
    fn a_process_outside_its_processors_fails_the_trial_and_its_role_is_to_blame() {
        let own = || Some(vec![std::process::id()]);
        let all = of_role(Role::Server, own(), None).unwrap();
        let used = all.processors().unwrap();
        assert_eq!(of_role(Role::Server, own(), Some(used)).unwrap(), all);
        // Not all that this process may use.
        let other = if used.contains(0) { "1" } else { "0" }.parse().unwrap();
        let violated = of_role(Role::Server, own(), Some(&other));
        let Err(TrialAbort::Outcome(Outcome::Failed { blame: Blame::Server, reason })) = &violated else {
            panic!("{violated:?}")
        };
        let Reason::Violation(violation) = reason else { panic!("{reason:?}") };
        assert!(violation.to_string().contains(&format!("confines it to {other} (`cpus`)")), "{violation}");
    }

    #[test]
    fn processors_of_a_remote_or_ended_process_are_unknown_with_the_reason() {
        let remote = of_role(Role::Client, None, None).unwrap();
        assert_eq!(remote, Allowed::NotRead(Missing::RemoteProcess));
        assert_eq!(both(Allowed::Processors("0".parse().unwrap()), &remote), remote);
        // No process has this number, because it is above the kernel's limit.
        let ended = of_role(Role::Client, Some(vec![1 << 30]), None).unwrap();
        assert_eq!(ended, Allowed::NotRead(Missing::ProcessEnded { pid: 1 << 30 }));
    }
}
