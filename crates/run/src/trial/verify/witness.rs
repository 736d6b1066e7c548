//! Checks a client's records against what the kernel saw of its requests.
//!
//! A client takes its times before the kernel gets a request and after the kernel delivers the response. Each check is
//! a consequence, and needs no assumption about how much later.

use wirelab_model::sample::Sample;
use wirelab_model::violation::Violation;
use wirelab_observe::Exchanges;

use crate::trial::results::Results;
use crate::trial::verify::tally::Tally;
use crate::trial::verify::{CLOCK_SLACK, Checked, client};

/// How far a client's reading of the clock may be off: some read it once for several events.
const READING_NS: u64 = 50_000;

/// Checks number, window and times of the records. `window_ns` is absent if several clients took the times, each with a
/// time zero of its own.
pub(crate) fn exchanges(seen: &Exchanges, window_ns: Option<u64>, results: &Results, tally: &Tally) -> Checked<()> {
    let (kernel, failed) = (seen.durations.count(), tally.failed());
    if kernel < tally.ok || kernel > tally.ok + failed {
        return Err(client(Violation::KernelCount { kernel, recorded: tally.ok, failed }));
    }
    match results {
        Results::Samples(samples) if failed == 0 => {
            window_ns.map_or(Ok(()), |window_ns| clock(seen, window_ns, samples))?;
            times(seen, samples)
        }
        _ => Ok(()),
    }
}

/// Time zero of the records lies after the begin of the watch, at least a window before its end, not after the first
/// request minus its recorded start, and not before the last response minus its recorded end.
fn clock(seen: &Exchanges, window_ns: u64, samples: &[Sample]) -> Checked<()> {
    let first = samples.iter().map(|sample| sample.start_ns).min().unwrap_or_default();
    let last = samples.iter().map(|sample| sample.last_byte_ns).max().unwrap_or_default();
    let earliest = seen.watched_from_ns.max(seen.last_ns.saturating_sub(last));
    let latest = seen.first_ns.saturating_sub(first).min(seen.watched_to_ns.saturating_sub(window_ns));
    let apart_ns = earliest.saturating_sub(latest);
    if u128::from(apart_ns) > CLOCK_SLACK.as_nanos() {
        return Err(client(Violation::KernelClock { apart_ns }));
    }
    Ok(())
}

/// Each request took at least as long for the client as in the kernel. So among the longest `n` of both, the client's
/// shortest is not shorter.
fn times(seen: &Exchanges, samples: &[Sample]) -> Checked<()> {
    let mut recorded: Vec<_> = samples.iter().map(Sample::service_ns).collect();
    recorded.sort_unstable_by(|a, b| b.cmp(a));
    for (kernel_ns, count) in seen.durations.at_least() {
        let recorded_ns = recorded.get(count as usize - 1).copied().unwrap_or_default();
        if recorded_ns + READING_NS < kernel_ns {
            return Err(client(Violation::KernelTimes { count, kernel_ns, recorded_ns }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
    use wirelab_observe::exchanges::Durations;

    use super::*;

    const MS: u64 = 1_000_000;
    const GO: u64 = 5_000 * MS;

    /// A hundred requests, one every 2 ms, each of 1 ms in the kernel and 0.1 ms more for the client.
    fn samples() -> Vec<Sample> {
        let text = r#"{"intended_ns":0,"start_ns":0,"last_byte_ns":0,"bytes_out":0,"bytes_in":3,"connection":0}"#;
        let of = |number: u64| {
            let start = number * 2 * MS + MS / 10;
            let sample: Sample = serde_json::from_str(text).unwrap();
            Sample { intended_ns: start, start_ns: start, last_byte_ns: start + MS + MS / 10, ..sample }
        };
        (0..100).map(of).collect()
    }

    fn seen() -> Exchanges {
        let last = GO + samples()[99].last_byte_ns;
        Exchanges {
            watched_from_ns: GO - MS / 2,
            watched_to_ns: last + MS,
            first_ns: GO + MS / 10 + 50_000,
            last_ns: last - 40_000,
            durations: Durations::of(std::iter::repeat_n(MS, 100)),
        }
    }

    fn judged(change: impl Fn(&mut Vec<Sample>, &mut u64)) -> String {
        let (mut samples, mut window) = (samples(), samples()[99].last_byte_ns + 10_000);
        change(&mut samples, &mut window);
        let tally = Tally { ok: samples.len() as u64, ..Tally::default() };
        match exchanges(&seen(), Some(window), &Results::Samples(samples), &tally) {
            Ok(()) => String::new(),
            Err(Outcome::Failed { blame: Blame::Client, reason }) => reason.to_string(),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn scaled(sample: &Sample, by: f64) -> Sample {
        let of = |ns: u64| (ns as f64 * by) as u64;
        let (intended_ns, start_ns) = (of(sample.intended_ns), of(sample.start_ns));
        Sample { intended_ns, start_ns, last_byte_ns: of(sample.last_byte_ns), ..sample.clone() }
    }

    #[test]
    fn true_records_are_believed() {
        assert_eq!(judged(|_, _| ()), "");
    }

    #[test]
    fn lies_about_number_window_or_times_are_found() {
        let hides = judged(|samples, _| samples.truncate(95));
        assert!(hides.contains("the kernel saw 100 requests with a response, but the client recorded 95"), "{hides}");
        let shortens = judged(|samples, window| {
            samples.iter_mut().for_each(|sample| *sample = scaled(sample, 0.95));
            *window = *window * 95 / 100;
        });
        assert!(shortens.contains("no time zero fits"), "{shortens}");
        let shifts = judged(|samples, _| {
            for sample in samples {
                (sample.start_ns, sample.last_byte_ns) = (sample.start_ns + 10 * MS, sample.last_byte_ns + 10 * MS);
            }
        });
        assert!(shifts.contains("no time zero fits"), "{shifts}");
        let flatters = judged(|samples, _| {
            samples.iter_mut().skip(50).for_each(|sample| sample.start_ns = sample.last_byte_ns - MS / 2);
        });
        assert!(flatters.contains("the kernel saw 100 responses that took"), "{flatters}");
    }

    #[test]
    fn a_failed_request_may_or_may_not_have_a_response() {
        let errors = [(ErrorKind::Timeout, 5)].into_iter().collect();
        let tally = Tally { ok: 97, errors, ..Tally::default() };
        assert!(exchanges(&seen(), None, &Results::Samples(samples()), &tally).is_ok());
        let tally = Tally { ok: 101, ..tally };
        assert!(exchanges(&seen(), None, &Results::Samples(samples()), &tally).is_err());
    }
}
