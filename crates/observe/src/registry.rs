//! All observers, by name.

use wirelab_model::metric::Metric;
use wirelab_model::nearest::did_you_mean;

use crate::{
    About, Observer, cpu, drops, exchanges, faults, film, machine, memory, packets, prometheus, rusage, sidecars,
    switches, syscalls, tcp,
};

/// The declarations of all observers.
pub const OBSERVERS: &[&About] = &[
    &cpu::ABOUT,
    &memory::ABOUT,
    &switches::ABOUT,
    &faults::ABOUT,
    &drops::ABOUT,
    &rusage::ABOUT,
    &machine::ABOUT,
    &syscalls::TOTAL,
    &syscalls::BY_NAME,
    &syscalls::STRACE,
    &film::ABOUT,
    &packets::ABOUT,
    &tcp::ABOUT,
    &prometheus::ABOUT,
    &sidecars::ABOUT,
    &exchanges::ABOUT,
];

/// Creates an observer for one trial; `None` if no observer has this name (see [`unknown`]).
#[must_use]
pub fn create(name: &str) -> Option<Box<dyn Observer>> {
    Some(match name {
        "cpu" => Box::<cpu::Cpu>::default(),
        "memory" => Box::<memory::Memory>::default(),
        "switches" => Box::<switches::Switches>::default(),
        "faults" => Box::<faults::Faults>::default(),
        "drops" => Box::<drops::Drops>::default(),
        "rusage" => Box::<rusage::Rusage>::default(),
        "machine" => Box::<machine::Machine>::default(),
        "syscalls" => Box::<syscalls::Total>::default(),
        "syscalls_by_name" => Box::<syscalls::ByName>::default(),
        "strace" => Box::<syscalls::Strace>::default(),
        "film" => Box::<film::Film>::default(),
        "packets" => Box::<packets::Packets>::default(),
        "tcp" => Box::<tcp::Tcp>::default(),
        "prometheus" => Box::<prometheus::Prometheus>::default(),
        "exchanges" => Box::<exchanges::Witness>::default(),
        "sidecars" => Box::<sidecars::OfSidecars>::default(),
        _ => return None,
    })
}

/// The observers of a study that names none.
#[must_use]
pub fn default_set() -> Vec<&'static str> {
    OBSERVERS.iter().filter(|about| about.by_default).map(|about| about.name).collect()
}

/// All metrics, in the order of declaration.
#[must_use]
pub fn metrics() -> Vec<&'static Metric> {
    OBSERVERS.iter().flat_map(|about| about.metrics).collect()
}

/// The error message for an unknown observer, with the nearest name and all names.
#[must_use]
pub fn unknown(name: &str) -> String {
    let names: Vec<_> = OBSERVERS.iter().map(|about| about.name).collect();
    let meant = did_you_mean(name, names.iter().copied());
    format!("there is no observer `{name}`{meant}; the observers are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Targets, Window};

    const WINDOW: Window = Window { ns: 1000, requests: 1, bytes: 1 };

    #[test]
    fn every_observer_can_be_made_and_gives_each_metric_that_it_declares_or_a_reason() {
        for about in OBSERVERS {
            let mut observer = create(about.name).unwrap();
            assert_eq!(observer.about().name, about.name);
            let declared: Vec<_> = about.metrics.iter().map(|metric| metric.name).collect();
            for round in 0..2 {
                let values = observer.values(&WINDOW);
                assert_eq!(values.keys().map(String::as_str).collect::<Vec<_>>(), declared);
                assert!(values.values().all(|value| value.number().is_none()), "{round}: {values:?}");
                let hidden = Targets::default();
                observer.begin(&hidden);
                observer.end(&hidden);
            }
        }
    }

    #[test]
    fn metric_names_are_unique_and_the_metrics_of_the_reports_exist() {
        let names: BTreeSet<_> = metrics().into_iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), metrics().len());
        for name in [
            "cpu_client_per_request",
            "cpu_server_per_request",
            "cpu_client_share",
            "cpu_server_share",
            "memory_client_peak",
            "memory_server_peak",
            "switches_client_per_request",
            "switches_server_per_request",
            "faults_client_per_request",
            "faults_server_per_request",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn the_default_observers_need_no_privileges() {
        assert_eq!(default_set(), ["cpu", "memory", "switches", "faults", "drops", "rusage", "machine"]);
    }

    #[test]
    fn an_unknown_observer_is_refused_with_the_nearest_name() {
        assert!(create("memry").is_none());
        assert_eq!(
            unknown("memry"),
            "there is no observer `memry`, did you mean `memory`; the observers are cpu, memory, switches, faults, \
             drops, rusage, machine, syscalls, syscalls_by_name, strace, film, packets, tcp, prometheus, sidecars, \
             exchanges"
        );
    }
}
