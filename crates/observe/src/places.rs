//! Merges the metric values of processes that run in several places (pods, nodes), each read where the processes run.

use wirelab_model::metric::{Metric, Side, Value, Values};
use wirelab_model::missing::Missing;

use crate::packets::LARGEST_OF_NODE;
use crate::registry::OBSERVERS;

/// Observers that need only access to the processes, so an agent in the same pod can run them.
pub const PROCESS_OBSERVERS: [&str; 6] = [
    crate::cpu::ABOUT.name,
    crate::memory::ABOUT.name,
    crate::switches::ABOUT.name,
    crate::faults::ABOUT.name,
    crate::sidecars::ABOUT.name,
    crate::drops::ABOUT.name,
];

/// Observers that need privileges on the processes' node. `packets` runs in one place on the clients' side, because
/// shares do not add up.
pub const NODE_OBSERVERS: [&str; 3] =
    [crate::syscalls::TOTAL.name, crate::syscalls::BY_NAME.name, crate::packets::ABOUT.name];

/// Merges the values of `observers` for one side over all places. Values add up, with two exceptions: the system share
/// is weighted by CPU time, and the largest packet is the maximum. A value that is missing in one place is missing in
/// the result, unless that place had nothing to count.
#[must_use]
pub fn merge(side: Side, observers: &[String], places: &[Values]) -> Values {
    let metrics = metrics(side, observers);
    metrics.map(|metric| (metric.name.to_owned(), value(metric, places))).collect()
}

/// Every metric of `observers` for one side as missing, for the reason `why`.
#[must_use]
pub fn all_missing(side: Side, observers: &[String], why: &Missing) -> Values {
    metrics(side, observers).map(|metric| (metric.name.to_owned(), Value::missing(why.clone()))).collect()
}

fn metrics(side: Side, observers: &[String]) -> impl Iterator<Item = &'static Metric> {
    let is_merged = |name: &str| PROCESS_OBSERVERS.contains(&name) || NODE_OBSERVERS.contains(&name);
    let wanted =
        OBSERVERS.iter().filter(move |about| is_merged(about.name) && observers.iter().any(|name| name == about.name));
    wanted.flat_map(|about| about.metrics).filter(move |metric| metric.side == side)
}

fn value(metric: &Metric, places: &[Values]) -> Value {
    let (mut numbers, mut nothing) = (Vec::new(), None);
    for place in places {
        match place.get(metric.name) {
            Some(Value::Measured(number)) => numbers.push(*number),
            // A server's node that carried no packets of the trial does not void the other nodes' counts.
            Some(missing @ Value::NotMeasured(Missing::NoPacketsAtPod | Missing::OnClientNode)) => {
                nothing = Some(missing);
            }
            Some(missing) => return missing.clone(),
            None => return Value::missing(Missing::NotReportedByAPlace),
        }
    }
    if numbers.is_empty() {
        return nothing.cloned().unwrap_or_else(|| Value::missing(Missing::NotReportedByAnyPlace));
    }
    match metric.name {
        "cpu_client_system_share" => weighted(&numbers, "cpu_client_share", places),
        "cpu_server_system_share" => weighted(&numbers, "cpu_server_share", places),
        name if LARGEST_OF_NODE.contains(&name) => {
            Value::finite(numbers.into_iter().fold(0.0, f64::max), Missing::NotFinite)
        }
        _ => Value::finite(numbers.iter().sum(), Missing::NotFinite),
    }
}

fn weighted(shares: &[f64], of: &str, places: &[Values]) -> Value {
    let times = places.iter().map(|place| place.get(of).and_then(Value::number).unwrap_or_default());
    let times: Vec<_> = times.collect();
    let all: f64 = shares.iter().zip(&times).map(|(share, time)| share * time).sum();
    Value::finite(all / times.iter().sum::<f64>(), Missing::NoProcessorTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(share: f64, system: f64, peak: f64) -> Values {
        let values = [
            ("cpu_server_per_request", 10.0),
            ("cpu_server_per_byte", 1.0),
            ("cpu_server_share", share),
            ("cpu_server_system_share", system),
            ("memory_server_peak", peak),
            ("memory_server_life_peak", peak),
            ("cpu_client_share", 7.0),
        ];
        values.map(|(name, number)| (name.to_owned(), Value::Measured(number))).into_iter().collect()
    }

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn values_of_two_places_add_up_and_the_system_share_is_weighted() {
        let both = [place(0.3, 0.5, 100.0), place(0.1, 0.1, 50.0)];
        let values = merge(Side::Server, &named(&["cpu", "memory", "machine"]), &both);
        let number = |name: &str| values[name].number().unwrap();
        assert_eq!((number("cpu_server_per_request"), number("memory_server_peak")), (20.0, 150.0));
        assert!((number("cpu_server_share") - 0.4).abs() < 1e-12);
        assert!((number("cpu_server_system_share") - 0.4).abs() < 1e-12, "0.15 and 0.01 of 0.4");
        assert_eq!(values.len(), 6, "metrics of the other side and of other observers are left out: {values:?}");
    }

    #[test]
    fn a_value_that_is_missing_in_one_place_is_missing_in_the_result() {
        let mut other = place(0.1, 0.1, 50.0);
        other.insert("memory_server_peak".to_owned(), Value::missing(Missing::other("not permitted")));
        other.shift_remove("memory_server_life_peak");
        let values = merge(Side::Server, &named(&["memory"]), &[place(0.3, 0.5, 100.0), other]);
        assert_eq!(values["memory_server_peak"], Value::missing(Missing::other("not permitted")));
        assert_eq!(values["memory_server_life_peak"], Value::missing(Missing::NotReportedByAPlace));
        let lost_pod = Missing::Lab { reason: "the pod was lost".to_owned() };
        let nothing = all_missing(Side::Client, &named(&["memory"]), &lost_pod);
        assert_eq!(nothing["memory_client_peak"], Value::missing(lost_pod));
        let of_none = merge(Side::Client, &named(&["memory"]), &[]);
        assert_eq!(of_none["memory_client_peak"], Value::missing(Missing::NotReportedByAnyPlace));
        assert_eq!(nothing.len(), 2);
    }

    #[test]
    fn metrics_of_the_link_add_up_over_all_places() {
        let everything =
            |time: f64| -> Values { [("cpu_all_per_request".to_owned(), Value::Measured(time))].into_iter().collect() };
        let both = [everything(30.0), everything(12.0)];
        let values = merge(Side::Link, &named(&["cpu", "sidecars"]), &both);
        assert_eq!(values["cpu_all_per_request"].number(), Some(42.0), "{values:?}");
        assert!(merge(Side::Link, &named(&["memory"]), &both).is_empty());
        let dropped =
            |count: f64| -> Values { [("tcp_retransmitted".to_owned(), Value::Measured(count))].into_iter().collect() };
        let values = merge(Side::Link, &named(&["drops"]), &[dropped(2.0), dropped(3.0)]);
        assert_eq!(values["tcp_retransmitted"].number(), Some(5.0));
        assert_eq!(values["udp_in_errors"], Value::missing(Missing::NotReportedByAPlace));
    }

    #[test]
    fn packets_of_several_nodes_add_up_but_the_largest_is_one_and_a_server_on_the_clients_node_adds_nothing() {
        let node = |sent: f64, largest: f64| -> Values {
            let values = [("packets_server_node_sent_per_request", sent), ("packets_server_node_largest", largest)];
            values.map(|(name, number)| (name.to_owned(), Value::Measured(number))).into_iter().collect()
        };
        let near = all_missing(Side::Server, &named(&["packets"]), &Missing::OnClientNode);
        let of = |places: &[Values]| merge(Side::Server, &named(&["packets"]), places);
        let all = of(&[node(2.0, 1500.0), near.clone(), node(3.0, 900.0)]);
        assert_eq!(all["packets_server_node_sent_per_request"].number(), Some(5.0));
        assert_eq!(all["packets_server_node_largest"].number(), Some(1500.0));
        assert_eq!(
            of(std::slice::from_ref(&near))["packets_server_node_largest"],
            Value::missing(Missing::OnClientNode)
        );
        let went_down = Missing::Lab { reason: "it went down".to_owned() };
        let lost = all_missing(Side::Server, &named(&["packets"]), &went_down);
        assert_eq!(of(&[node(2.0, 1500.0), lost])["packets_server_node_largest"], Value::missing(went_down));
    }

    #[test]
    fn every_merged_name_is_that_of_an_observer() {
        let all: Vec<_> = PROCESS_OBSERVERS.iter().chain(&NODE_OBSERVERS).collect();
        assert!(all.iter().all(|name| OBSERVERS.iter().any(|about| about.name == **name)));
    }
}
