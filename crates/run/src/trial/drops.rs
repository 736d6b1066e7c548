//! Warnings about packets that the kernel dropped during a trial.

use wirelab_model::metric::{Value, Values};
use wirelab_model::plan::Cell;
use wirelab_model::warning::Warning;
use wirelab_observe::drops::COUNTERS;

/// Warnings about kernel drops in the window, for the transport of the cell.
pub(super) fn warnings(cell: &Cell, values: &Values) -> Vec<Warning> {
    let count = |name: &str| values.get(name).and_then(Value::number).unwrap_or(0.0);
    let mut found = Vec::new();
    for counter in &COUNTERS {
        let (heading, name) = counter.kernel;
        let dropped = match (heading, name) {
            // Retransmissions are repairs, often without a drop; they have a metric of their own.
            ("Tcp", "RetransSegs") => continue,
            // The kernel counts a full buffer in both.
            ("Udp", "InErrors") => count(counter.metric.name) - count("udp_receive_buffer_errors"),
            _ => count(counter.metric.name),
        };
        if dropped > 0.0 && (heading == "Udp") == cell.job.protocol.uses_udp() {
            let (cell, counter) = (cell.label(), format!("{heading} {name}"));
            found.push(Warning::Drops { cell, counter, count: dropped as u64 });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::cell;

    #[test]
    fn drop_warnings_cover_the_transport_in_use_once() {
        let values = [
            ("udp_receive_buffer_errors", 3.0),
            ("udp_in_errors", 3.0),
            ("tcp_listen_drops", 2.0),
            ("tcp_retransmitted", 9.0),
        ];
        let values: Values =
            values.map(|(name, count)| (name.to_owned(), Value::Measured(count))).into_iter().collect();
        let of = |protocol| {
            let mut cell = cell();
            cell.job.protocol = protocol;
            let count = |warning| match warning {
                Warning::Drops { counter, count, .. } => (counter, count),
                other => panic!("{other:?}"),
            };
            warnings(&cell, &values).into_iter().map(count).collect::<Vec<_>>()
        };
        assert_eq!(of(wirelab_model::protocol::Protocol::H3), [("Udp RcvbufErrors".to_owned(), 3)]);
        assert_eq!(of(wirelab_model::protocol::Protocol::H2), [("TcpExt ListenDrops".to_owned(), 2)]);
    }
}
