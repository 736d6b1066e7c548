//! A link that behaves as a measured path did.

use crate::path::{LoadedPath, PathDirection, PathReading};
use crate::queue::Queue;
use crate::settings::Settings;
use crate::units::{BitRate, Share, Size, Span};

/// Quartiles of the sum of two uniform delays of ±1 are this far apart.
const QUARTILES: f64 = 1.17;

/// Jitter that a busy machine makes, so that less is not emulated.
const LEAST_JITTER_NS: f64 = 200_000.0;

/// The range of the setting `mtu`.
const MTUS: std::ops::RangeInclusive<u32> = 1280..=65_535;

/// The smallest queue of the setting `queue`, in bytes.
const LEAST_QUEUE: f64 = 1500.0;

/// With fewer losses, the mean length of their runs is mostly chance; below this length, losses count as independent.
const LEAST_LOSSES: u64 = 10;
const LEAST_RUN: f64 = 1.5;

/// The settings of a link as these measurements of a path show it. What they do not show is not set.
#[must_use]
pub fn emulating(readings: &[&PathReading]) -> Settings {
    let directions = || readings.iter().flat_map(|reading| reading.directions().map(|(_, direction)| direction));
    let round_trip = median(readings.iter().map(|reading| reading.round_trip.median_ns as f64));
    let spread = median(
        readings.iter().map(|reading| reading.round_trip.p75_ns.saturating_sub(reading.round_trip.p25_ns) as f64),
    );
    // A delay is never negative.
    let jitter = spread.map(|spread| (spread / QUARTILES).min(round_trip.unwrap_or_default() / 2.0));
    let sum = |count: &dyn Fn(&PathDirection) -> u32| directions().map(|one| u64::from(count(one))).sum::<u64>();
    let share = |count: &dyn Fn(&PathDirection) -> u32| {
        let (counted, sent) = (sum(count), sum(&|one| one.delivery.sent));
        // Four digits, as many as a measurement has.
        (counted > 0).then(|| Share((counted as f64 / sent as f64 * 1e4).round().max(1.0) / 1e4))
    };
    let loads = |of: fn(&PathReading) -> &PathDirection| -> Vec<&LoadedPath> {
        readings.iter().filter_map(|reading| of(reading).load.value()).collect()
    };
    let (up, down) = (loads(|reading| &reading.up), loads(|reading| &reading.down));
    let (rate_up, rate) = (limit(&up), limit(&down));
    Settings {
        round_trip: round_trip.map(microseconds),
        jitter: jitter.filter(|jitter| *jitter >= LEAST_JITTER_NS).map(microseconds),
        bandwidth: rate.or(rate_up),
        bandwidth_up: rate_up.filter(|_| rate.is_some()),
        queue: queue(rate, &down, round_trip).or_else(|| queue(rate_up, &up, round_trip)),
        loss: share(&|one| one.delivery.lost),
        loss_burst: run_of_losses(sum(&|one| one.delivery.lost), sum(&|one| one.delivery.lost_runs)),
        reorder: share(&|one| one.delivery.reordered),
        duplicate: share(&|one| one.delivery.duplicates),
        mtu: readings.iter().filter_map(|reading| reading.mtu()).min().filter(|mtu| MTUS.contains(mtu)),
        ..Settings::default()
    }
}

/// The mean length of runs of losses, to one digit; `None` if losses are few or independent.
fn run_of_losses(lost: u64, runs: u64) -> Option<f64> {
    let mean = lost as f64 / runs as f64;
    (lost >= LEAST_LOSSES && runs > 0 && mean >= LEAST_RUN).then(|| (mean * 10.0).round() / 10.0)
}

/// The rate of a direction whose load exceeded it in each measurement, to three digits.
fn limit(loads: &[&LoadedPath]) -> Option<BitRate> {
    let limits: Option<Vec<f64>> = loads.iter().map(|load| Some(load.limit()?.0 as f64)).collect();
    let rate = median(limits?.into_iter())?;
    let digit = 10_f64.powf((rate.log10().floor() - 2.0).max(0.0));
    Some(BitRate(((rate / digit).round() * digit) as u64))
}

/// The queue that makes the round trip under load as long as it was.
fn queue(rate: Option<BitRate>, loads: &[&LoadedPath], idle_ns: Option<f64>) -> Option<Queue> {
    let loaded = median(loads.iter().filter_map(|load| Some(load.round_trip?.median_ns as f64)))?;
    let bytes = (loaded - idle_ns?).max(0.0) / 1e9 * rate?.0 as f64 / 8.0;
    Some(Queue::Bytes(Size(bytes.max(LEAST_QUEUE) as u64)))
}

fn microseconds(ns: f64) -> Span {
    Span((ns / 1e3).round() as u64 * 1000)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::missing::Missing;
    use crate::path::{Delivery, Measured, RoundTrips};

    fn reading(load: Measured<LoadedPath>) -> PathReading {
        let direction = PathDirection {
            delivery: Delivery { sent: 250, lost: 5, lost_runs: 1, reordered: 0, duplicates: 1 },
            mtu: Measured::Is(1400),
            marks: Measured::Is(Vec::new()),
            hops: Measured::Is(vec![3]),
            load,
        };
        let round_trip = RoundTrips::of(vec![18_000_000, 19_000_000, 20_000_400, 21_000_000, 22_000_000]).unwrap();
        PathReading { round_trip, up: direction.clone(), down: direction }
    }

    #[test]
    fn what_was_measured_becomes_a_link_and_the_rest_is_not_set() {
        let not_allowed = reading(Measured::Missing(Missing::LoadNotAllowed));
        let settings = emulating(&[&not_allowed, &not_allowed]);
        let expected = serde_json::json!({
            "round_trip": "20 ms", "jitter": "1709 us", "loss": "2 %", "loss_burst": 5.0, "duplicate": "0.4 %",
            "mtu": 1400,
        });
        assert_eq!(serde_json::to_value(&settings).unwrap(), expected);
        assert_eq!(emulating(&[]), Settings::default());
    }

    #[test]
    fn few_and_independent_losses_have_no_runs() {
        assert_eq!([run_of_losses(9, 2), run_of_losses(10, 7), run_of_losses(10, 0)], [None; 3]);
        assert_eq!(run_of_losses(20, 6), Some(3.3));
    }

    #[test]
    fn load_beyond_the_rate_gives_rate_and_queue() {
        let round_trip = RoundTrips::of(vec![120_000_400]);
        let load = LoadedPath { sent: 1e8, arrived: 10_004_321.0, round_trip };
        let settings = emulating(&[&reading(Measured::Is(load))]);
        // 100 ms at 10 Mbit/s.
        assert_eq!(settings.bandwidth, Some(BitRate(10_000_000)));
        assert_eq!(settings.bandwidth_up, Some(BitRate(10_000_000)));
        assert_eq!(settings.queue, Some(Queue::Bytes(Size(125_000))));
        let enough = LoadedPath { arrived: 9.9e7, ..load };
        assert_eq!(emulating(&[&reading(Measured::Is(enough))]).bandwidth, None);
    }
}
