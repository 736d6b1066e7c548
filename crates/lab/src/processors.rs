//! The processors of a trial's processes: the choice for the setting `cpus`, by the machine's cores.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity};
use wirelab_model::metric::Side;
use wirelab_model::processors::{Cpus, PerSide, ProcessorSet};

use crate::{LabError, Role};

/// The processors to which a trial's processes are confined, by side. A side without a set may use all that wirelab may
/// use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    sides: PerSide,
    shares_core: bool,
}

impl Confinement {
    /// The choice for this machine.
    ///
    /// # Errors
    /// If wirelab may not use enough processors, or not those of a list.
    pub fn choose(cpus: &Cpus) -> Result<Self, LabError> {
        if cpus.is_free() {
            return Ok(Self::default());
        }
        let usable = usable()?;
        let cores = cores(&usable, siblings);
        let sides = choose(cpus, &usable, &cores)?;
        Ok(Self { shares_core: shares_core(&sides, &cores), sides })
    }

    /// The processors of a process in this role; `None`: all.
    #[must_use]
    pub fn of(&self, role: Role) -> Option<&ProcessorSet> {
        if role.side() == Side::Server { self.sides.server.as_ref() } else { self.sides.client.as_ref() }
    }

    /// The processors of a process in this role, in the kernel's form.
    pub(crate) fn kernel_set(&self, role: Role) -> Option<CpuSet> {
        let mut kernel = CpuSet::new();
        self.of(role)?.iter().for_each(|number| kernel.set(number as usize));
        Some(kernel)
    }

    /// Whether the sides have different processors, but of one core (hyperthreads).
    #[must_use]
    pub const fn shares_core(&self) -> bool {
        self.shares_core
    }
}

/// The processors that wirelab may use.
fn usable() -> Result<ProcessorSet, LabError> {
    let attempt = "cannot learn which processors wirelab may use (sched_getaffinity)";
    let set = sched_getaffinity(None).map_err(|error| LabError::refused(attempt).because(error))?;
    ProcessorSet::of((0..=ProcessorSet::LARGEST).filter(|number| set.is_set(*number as usize)))
        .ok_or_else(|| LabError::refused(attempt).because("the set is empty"))
}

/// The processors of the core that has this one; `None`: unknown.
fn siblings(processor: u32) -> Option<ProcessorSet> {
    let topology = format!("/sys/devices/system/cpu/cpu{processor}/topology");
    // `core_cpus_list` has been the name since Linux 5.3.
    let list = ["core_cpus_list", "thread_siblings_list"];
    list.iter().find_map(|name| fs::read_to_string(format!("{topology}/{name}")).ok()?.trim().parse().ok())
}

/// The usable processors by core, in the order of the lowest number. A processor of unknown core has its own.
fn cores(usable: &ProcessorSet, siblings: impl Fn(u32) -> Option<ProcessorSet>) -> Vec<ProcessorSet> {
    let mut cores: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for processor in usable.iter() {
        let first = siblings(processor).and_then(|core| core.iter().next()).unwrap_or(processor);
        cores.entry(first).or_default().insert(processor);
    }
    cores.into_values().filter_map(ProcessorSet::of).collect()
}

/// Whether the sides have no processor in common, but a core.
fn shares_core(PerSide { client, server }: &PerSide, cores: &[ProcessorSet]) -> bool {
    let (Some(client), Some(server)) = (client, server) else { return false };
    let has = |core: &ProcessorSet, set: &ProcessorSet| core.iter().any(|number| set.contains(number));
    !has(client, server) && cores.iter().any(|core| has(core, client) && has(core, server))
}

/// The choice of processors among the usable ones.
///
/// - `shared`: the first processor of the second core, because the kernel serves most interrupts on the first core; on
///   a machine with one core, the first processor.
/// - `split`: the cores in turn, so that each side gets the same kinds of cores; the server gets the odd one. With a
///   single core, its processors in turn.
fn choose(cpus: &Cpus, usable: &ProcessorSet, cores: &[ProcessorSet]) -> Result<PerSide, LabError> {
    match cpus {
        Cpus::Free => Ok(PerSide::default()),
        Cpus::Shared => {
            let core = cores.get(1).or(cores.first());
            let one = core.and_then(|core| ProcessorSet::of(core.iter().next()));
            Ok(PerSide { client: one.clone(), server: one })
        }
        Cpus::Split => {
            let single: Vec<_> = usable.iter().filter_map(|number| ProcessorSet::of([number])).collect();
            let units = if cores.len() > 1 { cores } else { single.as_slice() };
            let every_second =
                |skipped| ProcessorSet::of(units.iter().skip(skipped).step_by(2).flat_map(ProcessorSet::iter));
            match (every_second(0), every_second(1)) {
                (server, client @ Some(_)) => Ok(PerSide { client, server }),
                _ => Err(LabError::unsupported(format!(
                    "`cpus` is `{cpus}`, but wirelab may use one processor only: {usable}"
                ))
                .remedy("set `cpus = \"shared\"` (`--set cpus=shared`), or let wirelab use more processors")),
            }
        }
        Cpus::Lists(lists) => {
            let named = [("client", &lists.client), ("server", &lists.server)];
            let named = named.into_iter().filter_map(|(side, set)| Some((side, set.as_ref()?)));
            for (side, set) in named {
                if !set.is_within(usable) {
                    let attempt =
                        format!("`cpus` has the processors {set} for the {side}, but wirelab may use {usable} only");
                    return Err(LabError::unsupported(attempt).remedy("name some of these, or use `shared` or `split`"));
                }
            }
            Ok(lists.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> ProcessorSet {
        text.parse().unwrap()
    }

    /// The choice on a machine with these processors, whose cores are these sets.
    fn on(usable: &str, all_cores: &[&str], cpus: &Cpus) -> Result<(String, String), String> {
        let (usable, all): (_, Vec<_>) = (set(usable), all_cores.iter().map(|core| set(core)).collect());
        let cores = cores(&usable, |number| all.iter().find(|core| core.contains(number)).cloned());
        let word = |set: Option<ProcessorSet>| set.map_or_else(String::new, |set| set.to_string());
        choose(cpus, &usable, &cores)
            .map(|PerSide { client, server }| (word(client), word(server)))
            .map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(usable: &str, cores: &[&str], cpus: &Cpus, [client, server]: [&str; 2]) {
        assert_eq!(on(usable, cores, cpus), Ok((client.to_owned(), server.to_owned())), "{usable} {cores:?}");
    }

    #[test]
    fn shared_is_one_processor_that_is_not_on_the_first_core_if_possible() {
        check("0-1", &["0", "1"], &Cpus::Shared, ["1", "1"]);
        check("0-7", &["0,4", "1,5", "2,6", "3,7"], &Cpus::Shared, ["1", "1"]);
        check("0-3", &["0-1", "2-3"], &Cpus::Shared, ["2", "2"]);
        check("0-1", &["0-1"], &Cpus::Shared, ["0", "0"]);
        check("5", &[], &Cpus::Shared, ["5", "5"]);
        check("0-3", &[], &Cpus::Free, ["", ""]);
    }

    #[test]
    fn split_halves_the_cores_and_never_a_core_if_there_are_two() {
        check("0-1", &["0", "1"], &Cpus::Split, ["1", "0"]);
        check("0-7", &["0,4", "1,5", "2,6", "3,7"], &Cpus::Split, ["1,3,5,7", "0,2,4,6"]);
        check("0-5", &["0-1", "2-3", "4-5"], &Cpus::Split, ["2-3", "0-1,4-5"]);
        // One processor of each core only.
        check("0,2", &["0-1", "2-3"], &Cpus::Split, ["2", "0"]);
        // A single core has no better choice than its two processors.
        check("0-1", &["0-1"], &Cpus::Split, ["1", "0"]);
        // Without a known topology each processor counts as a core.
        check("2-4", &[], &Cpus::Split, ["3", "2,4"]);
    }

    #[test]
    fn what_the_machine_lacks_is_refused_with_a_remedy() {
        let lone = on("3", &["3"], &Cpus::Split).unwrap_err();
        assert!(lone.contains("one processor only: 3") && lone.contains("--set cpus=shared"), "{lone}");
        let lists =
            |client: &str, server: &str| Cpus::Lists(PerSide { client: Some(set(client)), server: Some(set(server)) });
        check("0-3", &[], &lists("0", "1-3"), ["0", "1-3"]);
        let missing = on("0-1", &[], &lists("0", "1-3")).unwrap_err();
        assert!(missing.contains("1-3 for the server, but wirelab may use 0-1 only"), "{missing}");
    }

    #[test]
    fn two_processors_of_a_core_on_different_sides_are_noticed() {
        let cores = [set("0,2"), set("1,3")];
        let shares = |client: &str, server: &str| {
            shares_core(&PerSide { client: Some(set(client)), server: Some(set(server)) }, &cores)
        };
        assert!(shares("0", "2") && shares("0-1", "3"));
        assert!(!shares("0", "0") && !shares("0,2", "1,3") && !shares("0", "1"));
    }
}
