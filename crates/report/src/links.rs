//! The configured conditions of the lab's links beside the measured ones.

use std::fmt::Write;

use wirelab_model::journal::{LinkCheck, LinkRecord};
use wirelab_model::link::{Link, Loss};
use wirelab_model::units::BitRate;

use crate::numbers::significant;

/// The heading of the table.
pub(crate) const HEADER: [&str; 8] = [
    "link",
    "round trip, ms",
    "round trip under load, ms",
    "rate down, Mbit/s",
    "rate up, Mbit/s",
    "loss",
    "MTU",
    "measured",
];

/// How to read the table.
pub(crate) const NOTE: &str = "Configured → measured before, between and after the blocks: medians with the full range. Under load: \
     with a full queue from server to client. A link without any condition is a bare veth pair; a user-space emulator carries the \
     packets of all other links. Rates count whole Ethernet frames.";

/// The measured links as text: a paragraph for each, and a note on how to read it.
#[must_use]
pub fn links(checks: &[LinkCheck]) -> String {
    paragraphs(HEADER, &rows(checks), NOTE)
}

/// A paragraph for each row, whose first cell is its title, and a note.
pub(crate) fn paragraphs<const N: usize>(header: [&str; N], rows: &[[String; N]], note: &str) -> String {
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "{}", row[0]);
        for (name, fact) in header.iter().zip(row).skip(1) {
            let _ = writeln!(text, "  {name:<26} {fact}");
        }
    }
    let _ = writeln!(text, "\n{note}");
    text
}

/// A row for each measured link.
pub(crate) fn rows(checks: &[LinkCheck]) -> Vec<[String; 8]> {
    let records: Vec<&LinkRecord> = checks.iter().flat_map(|check| &check.links).collect();
    let mut rows = Vec::new();
    let mut seen: Vec<&Link> = Vec::new();
    for record in &records {
        let link = &record.link;
        if !seen.contains(&link) {
            seen.push(link);
            let same: Vec<&LinkRecord> = records.iter().copied().filter(|other| other.link == *link).collect();
            rows.push(row(&record.placement, link, &same));
        }
    }
    rows
}

fn row(placement: &str, link: &Link, records: &[&LinkRecord]) -> [String; 8] {
    let readings = || records.iter().map(|record| record.reading);
    let mbit = |rate: Option<BitRate>| rate.map(|rate| rate.0 as f64 / 1e6);
    let (down, up) = (mbit(link.rate), mbit(link.rate_up.or(link.rate)));
    let losses = readings().flat_map(|reading| [reading.loss_up, reading.loss]);
    let (lost, of) = losses.fold((0, 0), |(lost, of), Loss { lost: more, of: among }| (lost + more, of + among));
    let burst = if link.loss_burst > 1.0 { format!(" in runs of {}", link.loss_burst) } else { String::new() };
    let mut mtus: Vec<u32> = readings().map(|reading| reading.mtu).collect();
    mtus.sort_unstable();
    mtus.dedup();
    let mtus: Vec<_> = mtus.iter().map(u32::to_string).collect();
    let misses = records.iter().filter(|record| record.miss.is_some()).count();
    [
        placement.to_owned(),
        measured(
            Some(link.round_trip.nanos() as f64 / 1e6),
            readings().map(|reading| reading.round_trip_ns.map(|ns| ns as f64 / 1e6)).collect(),
        ),
        measured(
            link.rate.map(|rate| (link.round_trip.nanos() as f64 + link.queue_ns(rate)) / 1e6),
            readings().map(|reading| reading.round_trip_loaded_ns.map(|ns| ns as f64 / 1e6)).collect(),
        ),
        measured(down, readings().map(|reading| reading.rate.map(|rate| rate / 1e6)).collect()),
        measured(up, readings().map(|reading| reading.rate_up.map(|rate| rate / 1e6)).collect()),
        format!("{}{burst} → {lost} of {of}", link.loss),
        format!("{} → {}", link.mtu, mtus.join(", ")),
        if misses == 0 {
            format!("{} times", records.len())
        } else {
            format!("{misses} of {} out of tolerance", records.len())
        },
    ]
}

fn measured(configured: Option<f64>, values: Vec<Option<f64>>) -> String {
    let Some(configured) = configured else { return "not limited".to_owned() };
    let mut values: Vec<f64> = values.into_iter().flatten().collect();
    values.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else {
        return format!("{} → not measured", significant(configured));
    };
    let median = values[values.len() / 2];
    format!("{} → {median:.3} [{least:.3}, {most:.3}]", significant(configured))
}

#[cfg(test)]
mod tests {
    use wirelab_model::link::{Reading, preset};

    use super::*;

    #[test]
    fn measured_values_stand_beside_the_configured_ones() {
        let link = preset("3g").unwrap().link;
        let reading = |round_trip_ns| Reading {
            round_trip_ns: Some(round_trip_ns),
            round_trip_min_ns: Some(round_trip_ns),
            round_trip_loaded_ns: Some(1_610_000_000),
            rate_up: Some(768_100.0),
            rate: Some(1_600_200.0),
            loss_up: Loss { lost: 0, of: 200 },
            loss: Loss { lost: 1, of: 400 },
            mtu: 1500,
            missed: 0,
        };
        let record = |round_trip_ns, miss: Option<&str>| LinkCheck {
            block: 0,
            at: String::new(),
            links: vec![LinkRecord {
                placement: "3g".to_owned(),
                link,
                reading: reading(round_trip_ns),
                miss: miss.map(str::to_owned),
            }],
            paths: Vec::new(),
        };
        let rows = rows(&[record(300_100_000, None), record(310_000_000, Some("slow")), record(300_200_000, None)]);
        let row: Vec<_> = rows[0].iter().map(String::as_str).collect();
        assert_eq!(
            row,
            [
                "3g",
                "300 → 300.200 [300.100, 310.000]",
                "1611 → 1610.000 [1610.000, 1610.000]",
                "1.60 → 1.600 [1.600, 1.600]",
                "0.768 → 0.768 [0.768, 0.768]",
                "0 % → 3 of 1800",
                "1500 → 1500",
                "1 of 3 out of tolerance"
            ]
        );
        assert!(super::rows(&[]).is_empty());
    }
}
