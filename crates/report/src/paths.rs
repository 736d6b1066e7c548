//! The measured paths between hosts.

use wirelab_model::journal::LinkCheck;
use wirelab_model::missing::Missing;
use wirelab_model::path::{Delivery, LoadedPath, Mark, Measured, PathDirection, PathReading, PathRecord};

use crate::links::paragraphs;
use crate::summary::count;

/// The heading of the table.
pub(crate) const HEADER: [&str; 9] =
    ["path", "round trip, ms", "loss", "out of order", "path MTU", "routers", "ECN, DSCP", "under load", "measured"];

/// How to read the table.
pub(crate) const NOTE: &str = "Measured before, between and after the blocks, while nothing else of the run used the \
     path: medians of the measurements with their range; loss and order are sums, and the losses of a run are \
     consecutive. `up` is from client to server. Out of order: the fewest datagrams without which the others arrived \
     in order. A rate under load counts Ethernet frames; `at least` means that the path carried all of the allowed \
     load.";

/// The measured paths as text: a paragraph for each, and a note on how to read it.
#[must_use]
pub fn paths(checks: &[LinkCheck]) -> String {
    paragraphs(HEADER, &rows(checks), NOTE)
}

/// A row for each measured path.
pub(crate) fn rows(checks: &[LinkCheck]) -> Vec<[String; 9]> {
    let mut paths: Vec<(String, Vec<&PathRecord>)> = Vec::new();
    for record in checks.iter().flat_map(|check| &check.paths) {
        let label = record.label();
        match paths.iter_mut().find(|(known, _)| *known == label) {
            Some((_, records)) => records.push(record),
            None => paths.push((label, vec![record])),
        }
    }
    paths.into_iter().map(|(label, records)| row(label, &records)).collect()
}

fn row(label: String, records: &[&PathRecord]) -> [String; 9] {
    let readings: Vec<&PathReading> = records.iter().filter_map(|record| record.reading.value()).collect();
    let failed = records.iter().find_map(|record| match &record.reading {
        Measured::Is(_) => None,
        Measured::Missing(why) => Some(why),
    });
    let measured = match failed {
        None => format!("{} times", records.len()),
        Some(why) => format!("{} of {} times; not measured: {why}", readings.len(), records.len()),
    };
    if readings.is_empty() {
        let none = || "not measured".to_owned();
        return [label, none(), none(), none(), none(), none(), none(), none(), measured];
    }
    let up_and_down = |fact: &dyn Fn(&[&PathDirection]) -> String| {
        let of = |down: usize| fact(&readings.iter().map(|reading| reading.directions()[down].1).collect::<Vec<_>>());
        let (up, down) = (of(0), of(1));
        if up == down { up } else { format!("up {up}; down {down}") }
    };
    [
        label,
        round_trip(&readings),
        up_and_down(&|all| of_sent(all, |delivery| delivery.lost) + &in_runs(all)),
        up_and_down(&|all| of_sent(all, |delivery| delivery.reordered)),
        up_and_down(&|all| each(all, |direction| &direction.mtu, ToString::to_string)),
        up_and_down(&|all| each(all, |direction| &direction.hops, |hops| listed(hops.iter().map(u8::to_string)))),
        up_and_down(&|all| each(all, |direction| &direction.marks, |marks| fate(marks))),
        up_and_down(&|all| each(all, |direction| &direction.load, loaded)),
        measured,
    ]
}

fn round_trip(readings: &[&PathReading]) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut medians: Vec<f64> = readings.iter().map(|reading| ms(reading.round_trip.median_ns)).collect();
    medians.sort_by(f64::total_cmp);
    let least = readings.iter().map(|reading| reading.round_trip.min_ns).min().unwrap_or_default();
    let most = readings.iter().map(|reading| reading.round_trip.max_ns).max().unwrap_or_default();
    format!(
        "{:.3} [{:.3}, {:.3}], single ones from {:.3} to {:.3}",
        medians[medians.len() / 2],
        medians[0],
        medians[medians.len() - 1],
        ms(least),
        ms(most)
    )
}

fn of_sent(directions: &[&PathDirection], count: impl Fn(&Delivery) -> u32) -> String {
    let sum = |count: &dyn Fn(&Delivery) -> u32| -> u64 {
        directions.iter().map(|direction| u64::from(count(&direction.delivery))).sum()
    };
    format!("{} of {}", sum(&count), sum(&|delivery| delivery.sent))
}

/// The number of runs in which datagrams were lost, if a run has several.
fn in_runs(directions: &[&PathDirection]) -> String {
    let sum = |count: fn(&Delivery) -> u32| directions.iter().map(|one| u64::from(count(&one.delivery))).sum::<u64>();
    let (lost, runs) = (sum(|delivery| delivery.lost), sum(|delivery| delivery.lost_runs));
    if runs > 0 && lost > runs { format!(" in {}", count(runs as usize, "run")) } else { String::new() }
}

/// The different texts of a value in the order of their appearance; of missing values the reason, once.
fn each<'a, T: 'a>(
    directions: &[&'a PathDirection],
    value: impl Fn(&'a PathDirection) -> &'a Measured<T>,
    write: impl Fn(&T) -> String,
) -> String {
    listed(directions.iter().map(|direction| match value(direction) {
        Measured::Is(value) => write(value),
        Measured::Missing(Missing::LoadNotAllowed) => "not allowed (`link_load`)".to_owned(),
        missing @ Measured::Missing(_) => missing.text(&write),
    }))
}

fn listed(texts: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for text in texts {
        if !different.contains(&text) {
            different.push(text);
        }
    }
    different.join(", ")
}

/// What became of the marks in a phrase.
fn fate(marks: &[Mark]) -> String {
    let of = |name: &str, bits: u8| {
        let marked: Vec<_> = marks.iter().filter(|mark| mark.sent & bits != 0).collect();
        let changed = listed(marked.iter().filter(|mark| mark.keeps(bits) == Some(false)).map(|mark| {
            let arrived = listed(mark.arrived.iter().map(|arrived| words(arrived & bits)));
            format!("{} becomes {arrived}", words(mark.sent & bits))
        }));
        let dropped = listed(marked.iter().filter(|mark| mark.arrived.is_empty()).map(|mark| words(mark.sent)));
        match (changed.is_empty(), dropped.is_empty()) {
            (true, true) => format!("{name} kept"),
            (false, true) => format!("{name} changed ({changed})"),
            (true, false) => format!("{name}: nothing arrived with {dropped}"),
            (false, false) => format!("{name} changed ({changed}); nothing arrived with {dropped}"),
        }
    };
    format!("{}, {}", of("ECN", Mark::ECN), of("DSCP", Mark::DSCP))
}

/// The names of a mark's code points (RFC 3168, RFC 2474).
fn words(mark: u8) -> String {
    match (mark >> 2, mark & Mark::ECN) {
        (0, 0) => "no mark".to_owned(),
        (0, 1) => "ECT(1)".to_owned(),
        (0, 2) => "ECT(0)".to_owned(),
        (0, 3) => "CE".to_owned(),
        (dscp, 0) => format!("DSCP {dscp}"),
        (dscp, ecn) => format!("DSCP {dscp} and {}", words(ecn)),
    }
}

fn loaded(load: &LoadedPath) -> String {
    let rate = match load.limit() {
        Some(rate) => format!("{:.1} Mbit/s", rate.0 as f64 / 1e6),
        None => format!("at least {:.1} Mbit/s", load.arrived / 1e6),
    };
    match &load.round_trip {
        Some(round_trip) => format!("{rate}, round trip {:.3} ms", round_trip.median_ns as f64 / 1e6),
        None => format!("{rate}, no round trip came back"),
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::path::RoundTrips;

    use super::*;

    fn direction(lost: u32, mtu: Measured<u32>) -> PathDirection {
        let mark = |sent, arrived: &[u8]| Mark { sent, arrived: arrived.to_vec() };
        PathDirection {
            delivery: Delivery { sent: 240, lost, lost_runs: lost / 2, reordered: 0, duplicates: 0 },
            mtu,
            marks: Measured::Is(vec![mark(0, &[0]), mark(2, &[0]), mark(3, &[]), mark(46 << 2, &[46 << 2])]),
            hops: Measured::Is(vec![4]),
            load: Measured::Missing(Missing::LoadNotAllowed),
        }
    }

    fn check(reading: Measured<PathReading>) -> LinkCheck {
        let [placement, client, server] = ["other-node", "a", "b"].map(str::to_owned);
        let paths = vec![PathRecord { placement, client, server, reading }];
        LinkCheck { block: 0, at: String::new(), links: Vec::new(), paths }
    }

    fn reading(median_ns: u64) -> Measured<PathReading> {
        let ns = vec![median_ns - 100_000, median_ns, median_ns + 900_000];
        Measured::Is(PathReading {
            round_trip: RoundTrips::of(ns).unwrap(),
            up: direction(0, Measured::Is(1500)),
            down: PathDirection {
                load: Measured::Is(LoadedPath { sent: 1e8, arrived: 5e7, round_trip: None }),
                ..direction(2, Measured::Missing(Missing::NoSizeArrived))
            },
        })
    }

    #[test]
    fn a_path_is_summed_up_over_its_measurements() {
        let lost = Measured::Missing(Missing::NoDatagramCameBack);
        let rows = rows(&[check(reading(12_000_000)), check(reading(13_000_000)), check(lost)]);
        let row: Vec<_> = rows[0].iter().map(String::as_str).collect();
        assert_eq!(rows.len(), 1);
        assert_eq!(
            row,
            [
                "other-node (a → b)",
                "13.000 [12.000, 13.000], single ones from 11.900 to 13.900",
                "up 0 of 480; down 4 of 480 in 2 runs",
                "0 of 480",
                "up 1500; down not measured: no packet of the tried sizes arrived",
                "4",
                "ECN changed (ECT(0) becomes no mark); nothing arrived with CE, DSCP kept",
                "up not allowed (`link_load`); down 50.0 Mbit/s, no round trip came back",
                "2 of 3 times; not measured: no datagram came back; does a firewall block UDP between the hosts?",
            ]
        );
        assert!(super::rows(&[]).is_empty());
        assert!(paths(&[check(reading(12_000_000))]).contains("other-node (a → b)\n  round trip, ms"));
    }
}
