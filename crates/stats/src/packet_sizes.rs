//! Compared cells whose largest packets differ: on the loopback interface, TCP has segments of 64 KiB where QUIC
//! libraries send datagrams for Ethernet.

use indexmap::IndexMap;
use wirelab_model::plan::Plan;
use wirelab_model::study::Study;
use wirelab_model::warning::Warning;

use crate::analysis::CellAnalysis;

/// Headers of TCP and QUIC differ by a few bytes on every link. A difference above this ratio is another cost per byte.
const RATIO: f64 = 1.5;

/// Settings that vary the size on purpose.
const FACTORS: [&str; 2] = ["max_udp_payload", "mtu"];

/// One warning for each side whose largest payload of a packet differs between compared cells.
pub fn packet_sizes(study: &Study, plan: &Plan, cells: &[CellAnalysis]) -> Vec<Warning> {
    if FACTORS.iter().any(|factor| study.factors.contains_key(*factor)) {
        return Vec::new();
    }
    let of_side = |side: &str| {
        let metric = format!("transport_{side}_payload_max");
        let size = |cell: usize| cells.get(cell)?.estimates.get(&metric).map(|estimate| estimate.median);
        let mut sizes = IndexMap::new();
        for comparison in plan.comparisons.iter().filter(|comparison| !comparison.aa) {
            let pair = [comparison.baseline, comparison.cell];
            let [Some(one), Some(other)] = pair.map(size) else { continue };
            if one.max(other) > RATIO * one.min(other) {
                let labels = pair.map(|cell| plan.cells[cell].label());
                sizes.extend(labels.into_iter().zip([one, other].map(|size| format!("{size:.0} bytes"))));
            }
        }
        let values: Vec<_> = sizes.into_iter().collect();
        (!values.is_empty()).then(|| Warning::PacketSizes { side: side.to_owned(), values })
    };
    ["client", "server"].into_iter().filter_map(of_side).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};
    use wirelab_model::metric::Value;

    use super::*;
    use crate::fixture::{analyse, plan, records, study};

    fn warned(more: &Json, sizes: [f64; 4]) -> Vec<Warning> {
        let mut records = records(2, [1.0; 4]);
        for record in &mut records {
            let size = Value::Measured(sizes[record.trial.cell % 4]);
            record.values.insert("transport_server_payload_max".to_owned(), size);
        }
        packet_sizes(&study(more), &plan(), &analyse(&records).cells)
    }

    #[test]
    fn segments_of_64_kib_beside_datagrams_for_ethernet_are_named() {
        let warned = warned(&json!({}), [65_483.0, 1452.0, 65_483.0, 1452.0]);
        let [Warning::PacketSizes { side, values }] = &warned[..] else { panic!("{warned:?}") };
        assert_eq!(side, "server");
        assert_eq!(values[0], (plan().cells[0].label(), "65483 bytes".to_owned()));
        assert!(warned[0].meaning().contains("1452 bytes in `"), "{}", warned[0].meaning());
    }

    #[test]
    fn headers_of_another_length_or_a_factor_are_no_difference() {
        assert_eq!(warned(&json!({}), [1448.0, 1452.0, 1448.0, 1452.0]), []);
        let varied = json!({ "factors": { "colour": { "red": {}, "blue": {} }, "max_udp_payload": [1452, "16 KB"] } });
        assert_eq!(warned(&varied, [65_483.0, 1452.0, 65_483.0, 1452.0]), []);
    }
}
