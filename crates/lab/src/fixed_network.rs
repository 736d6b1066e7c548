//! Rules of labs whose machines and network wirelab does not make: `hosts` and `kubernetes`.

use wirelab_model::link::{Link, preset};
use wirelab_model::nearest::did_you_mean;
use wirelab_model::placement::Distance;
use wirelab_model::plan::{Job, Topology};

use crate::LabError;
use crate::internet::own_servers;

/// The distance that a job's placement asks for.
///
/// # Errors
/// If the lab has no such placement, or the job has settings that need an emulated network or a program of this
/// machine; the message names the remedy.
pub fn distance(lab: &str, job: &Job) -> Result<Distance, LabError> {
    if own_servers(lab, job)?.command.is_some() {
        let why = format!("`server_command` is set, but the machines of the lab `{lab}` do not have the program");
        return Err(LabError::unsupported(why).remedy("use the lab `loopback` or `netns`"));
    }
    if job.own_client.is_some() {
        let why = format!("`client_command` is set, but the machines of the lab `{lab}` do not have the program");
        return Err(LabError::unsupported(why).remedy("use the lab `loopback` or `netns`"));
    }
    let Topology { placement, link, offloads, .. } = &job.topology;
    let distance = Distance::of(placement).ok_or_else(|| no_placement(lab, placement))?;
    if link.is_some_and(|link| !demands_nothing(link, placement)) {
        return Err(LabError::unsupported(format!("the lab `{lab}` shapes no links"))
            .remedy("leave out the keys of the link (from `round_trip` to `mtu`), or use the lab `netns`"));
    }
    if offloads.is_some() {
        return Err(LabError::unsupported(format!("the lab `{lab}` leaves the network interfaces as they are"))
            .remedy("leave `offloads` out"));
    }
    Ok(distance)
}

/// Whether a link is that of its placement, or one without delay, rate and loss.
fn demands_nothing(link: Link, placement: &str) -> bool {
    preset(placement).is_some_and(|preset| preset.link == link || (link.is_wire() && preset.link.mtu == link.mtu))
}

fn no_placement(lab: &str, placement: &str) -> LabError {
    let names = Distance::ALL.map(Distance::placement);
    let links: Vec<_> = Distance::ALL.into_iter().filter_map(Distance::link).collect();
    LabError::unsupported(format!(
        "the lab `{lab}` has no placement `{placement}`{}; it has {} (the last three also as {})",
        did_you_mean(placement, names.into_iter().chain(links.iter().copied())),
        names.join(", "),
        links.join(", ")
    ))
}
