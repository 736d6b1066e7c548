//! Metrics of the emulated network.

use wirelab_model::metric::{Better, Metric, Side, Unit, Value, Values};
use wirelab_model::missing::Missing;

use crate::netns::emulator::Tallies;

/// All metrics of the lab.
pub const METRICS: [Metric; 4] = [
    Metric {
        name: "emulator_cpu_share",
        title: "CPU use of the link emulator",
        unit: Unit::Share,
        side: Side::Link,
        vantage: "the kernel's CPU-time clock of the process that holds the network",
        better: Better::Lower,
        meaning: "CPU time of the process that emulates the link, from the start of the servers to the end of the \
                  measured window, divided by that time; 100 % is one processor. The endpoints cannot use this time.",
    },
    Metric {
        name: "link_lost",
        title: "Packets lost on the link",
        unit: Unit::Count,
        side: Side::Link,
        vantage: LINK,
        better: Better::Lower,
        meaning: "Packets that the link lost as configured, both directions, from the start of the servers to the end \
                  of the measured window.",
    },
    Metric {
        name: "link_queue_drops",
        title: "Packets dropped by the link's queue",
        unit: Unit::Count,
        side: Side::Link,
        vantage: LINK,
        better: Better::Lower,
        meaning: "Packets that the link's queues had no room for, both directions, from the start of the servers to the \
                  end of the measured window.",
    },
    Metric {
        name: "service_largest_share",
        title: "Largest share of connections of one server",
        unit: Unit::Share,
        side: Side::Link,
        vantage: "the counters of the address translation on the client's node",
        better: Better::Lower,
        meaning: "Connections that the service led to the server that got most, divided by all, from the start of the \
                  client to the end of the measured window; 1 / servers is an even spread.",
    },
];

const LINK: &str = "the link emulator";

/// Values of a trial. `emulated`: counters of the emulator and its share of one processor, unless the link is a wire.
pub(crate) fn values(emulated: Option<(&Tallies, f64)>, chosen: &[u64]) -> Values {
    let of_link = |value: fn(&Tallies, f64) -> f64| match emulated {
        Some((lines, cpu_share)) => Value::Measured(value(lines, cpu_share)),
        None => Value::missing(Missing::NoEmulator),
    };
    let all: u64 = chosen.iter().sum();
    let largest = match chosen.iter().max() {
        None => Value::missing(Missing::NoService),
        Some(_) if all == 0 => Value::missing(Missing::UnusedService),
        Some(most) => Value::Measured(*most as f64 / all as f64),
    };
    let values = [
        of_link(|_, cpu_share| cpu_share),
        of_link(|lines, _| (lines.up.lost + lines.down.lost) as f64),
        of_link(|lines, _| (lines.up.overflowed + lines.down.overflowed) as f64),
        largest,
    ];
    METRICS.iter().map(|metric| metric.name.to_owned()).zip(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_metrics_have_a_reason_instead_of_a_number() {
        let values = |emulated, chosen: &[u64]| {
            let values = values(emulated, chosen);
            METRICS.map(|metric| values[metric.name].number())
        };
        assert_eq!(values(None, &[]), [None; 4]);
        assert_eq!(values(None, &[0, 0]), [None; 4]);
        let mut lines = Tallies::default();
        (lines.up.lost, lines.down.lost, lines.down.overflowed) = (1, 2, 4);
        assert_eq!(values(Some((&lines, 0.5)), &[30, 10]), [Some(0.5), Some(3.0), Some(4.0), Some(0.75)]);
    }
}
