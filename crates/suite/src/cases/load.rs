//! Cases of scheduling and recording: connections, workers, extents, warm-up, open loops, histograms.

use wirelab_lab::Role;
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::Sample;
use wirelab_model::spec::{Arrivals, Extent, Pause, Recording, Schedule};

use crate::case::Case;
use crate::conversation::histograms;
use crate::finding::{Finding, Stop, demand};
use crate::pair::Pair;
use crate::stage::Stage;

use super::deadlines::{Try, in_time};

/// Arrivals per second of the open loops, and the interval between uniform arrivals.
const RATE: f64 = 200.0;
const INTERVAL_NS: u64 = 5_000_000;

/// The longest time of a warm-up that may end before.
const LONGEST_WARM_UP_NS: u64 = 1_000_000_000;

/// Requests on one connection. Common initial limits of servers are 100 and 128 streams.
const HUNDREDS: u64 = 300;

/// Tolerance of an arrival time for rounding, in nanoseconds.
const ROUNDING_NS: u64 = 1_000;

/// The cases of a role with a protocol.
pub fn cases(role: Role, protocol: Protocol) -> Vec<Case> {
    let case = |name: &str, run: fn(Pair, &Stage) -> Finding| {
        Case::new(role, protocol, name, move |stage| run(Pair::simple(stage, role, protocol)?, stage))
    };
    let mut cases = vec![
        case("several workers share persistent connections", |pair, stage| {
            let mut pair = pair.persistent(3, 6);
            pair.client.extent = Extent::Requests(31);
            let connections = 3;
            let trial = pair.run(stage)?;
            demand(trial.samples.iter().all(|sample| sample.connection < connections), || {
                format!("expected connections 0 to 2; {:?}", trial.samples)
            })
        }),
        // More requests than the initial stream limit of a QUIC or HTTP/2 server, so that the server must release
        // finished streams.
        case("hundreds of requests share a connection", |pair, stage| {
            let mut pair = pair.persistent(1, 1);
            pair.client.extent = Extent::Requests(HUNDREDS);
            let trial = pair.run(stage)?;
            let others = trial.samples.iter().filter(|sample| sample.connection != 0).count();
            demand(others == 0, || format!("expected connection 0 for each request; {others} had another one"))
        }),
        case("several workers open a connection for every request", |mut pair, stage| {
            pair.client.schedule = Schedule::Closed { workers: 4, pause: Pause::None };
            pair.client.extent = Extent::Requests(13);
            pair.run(stage).map(drop)
        }),
    ];
    if role == Role::Client {
        cases.extend([
            case("a duration ends the window, and no request starts after it", duration),
            case("the warm-up is not recorded", |pair, stage| {
                for mut pair in [pair.clone(), pair.persistent(2, 2)] {
                    pair.client.warm_up = Some(Extent::Requests(7));
                    pair.run(stage)?;
                }
                Ok(())
            }),
            case("a warm-up until response times are steady tells how it ended, if it is declared", until_steady),
            case("a fixed pause lies between a response and the next request", pause),
            case("an open loop with uniform arrivals keeps its times, or is unsupported", uniform),
            case("an open loop with Poisson arrivals is random by its seed, or is unsupported", poisson),
            case("histograms hold every request, or are unsupported", recorded_as_histograms),
        ]);
    }
    cases
}

fn until_steady(pair: Pair, stage: &Stage) -> Finding {
    if !stage.subject.abilities(Role::Client).is_some_and(|client| client.until_steady) {
        return Err(Stop::skip("the description lacks `until_steady`"));
    }
    for mut pair in [pair.clone(), pair.persistent(2, 2)] {
        pair.server.counts = true;
        pair.client.warm_up = Some(Extent::DurationNs(LONGEST_WARM_UP_NS));
        pair.client.until_steady = true;
        let mut server = pair.serve(stage)?;
        let trial = pair.run_against(stage, server.port, server.configured.clone(), || {})?;
        pair.check(&trial)?;
        let warmed_up = trial.run.warmed_up;
        let sent = 1 + warmed_up.map_or(0, |end| end.requests) + trial.samples.len() as u64;
        let answered = server.count()?;
        demand(answered == sent, || {
            format!("expected {sent} requests with those of the warm-up, {warmed_up:?}; the server answered {answered}")
        })?;
        server.stop(true)?;
    }
    Ok(())
}

fn duration(pair: Pair, stage: &Stage) -> Finding {
    in_time(|length_ns| {
        let mut pair = pair.clone().persistent(1, 1);
        pair.client.extent = Extent::DurationNs(length_ns);
        let trial = pair.run(stage)?;
        demand(trial.samples.iter().all(|sample| sample.intended_ns < length_ns), || {
            let latest = trial.samples.iter().map(|sample| sample.intended_ns).max();
            format!("expected no request to be wanted after {length_ns} ns; one was at {latest:?} ns")
        })?;
        if trial.samples.is_empty() {
            return Ok(Try::TooShort("expected at least one request in the window; there is none".to_owned()));
        }
        Ok(Try::Right)
    })
}

fn pause(pair: Pair, stage: &Stage) -> Finding {
    const PAUSE_NS: u64 = 3_000_000;
    let mut pair = pair.persistent(1, 1);
    pair.client.schedule = Schedule::Closed { workers: 1, pause: Pause::Fixed { ns: PAUSE_NS } };
    let samples = by_intention(pair.run(stage)?.samples);
    for two in samples.windows(2) {
        demand(two[1].intended_ns >= two[0].last_byte_ns + PAUSE_NS, || {
            format!("expected {PAUSE_NS} ns between a response and the next intended start; {two:?}")
        })?;
    }
    Ok(())
}

fn uniform(pair: Pair, stage: &Stage) -> Finding {
    for pair in [pair.clone(), pair.persistent(2, 2)] {
        let samples = open(pair, Arrivals::Uniform, stage)?;
        for two in samples.windows(2) {
            let gap = two[1].intended_ns - two[0].intended_ns;
            demand(gap.abs_diff(INTERVAL_NS) <= ROUNDING_NS, || {
                format!("expected intended starts {INTERVAL_NS} ns apart; they are {gap} ns apart")
            })?;
        }
    }
    Ok(())
}

fn poisson(pair: Pair, stage: &Stage) -> Finding {
    let gaps = |seed: u64| -> Finding<Vec<u64>> {
        let mut pair = pair.clone().persistent(2, 2);
        pair.client.seed = seed;
        let samples = open(pair, Arrivals::Poisson, stage)?;
        Ok(samples.windows(2).map(|two| two[1].intended_ns - two[0].intended_ns).collect())
    };
    let (first, again, other) = (gaps(1)?, gaps(1)?, gaps(2)?);
    let same = first.iter().zip(&again).all(|(a, b)| a.abs_diff(*b) <= ROUNDING_NS);
    demand(same, || format!("expected the same seed to give the same arrivals; gaps are {first:?} and {again:?}"))?;
    demand(first != other, || format!("expected another seed to give other arrivals; gaps are {first:?} both times"))?;
    let spread = first.iter().max() != first.iter().min();
    demand(spread, || format!("expected random gaps between arrivals; all are {:?} ns", first.first()))
}

fn open(pair: Pair, arrivals: Arrivals, stage: &Stage) -> Finding<Vec<Sample>> {
    let mut pair = pair.optional();
    pair.client.schedule = Schedule::Open { rate_per_s: RATE, arrivals };
    pair.client.extent = Extent::Requests(20);
    Ok(by_intention(pair.run(stage)?.samples))
}

fn by_intention(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.sort_by_key(|sample| sample.intended_ns);
    samples
}

fn recorded_as_histograms(pair: Pair, stage: &Stage) -> Finding {
    const REQUESTS: u64 = 20;
    let mut pair = pair.optional();
    pair.client.extent = Extent::Requests(REQUESTS);
    pair.client.recording = Recording::Histograms;
    pair.run(stage)?;
    let all = histograms(&pair.client.results)?;
    let expect = pair.client.request.expect.as_ref().map_or(0, |expect| expect.body_size);
    for (what, wanted, is) in [
        ("requests", REQUESTS, all.requests),
        ("errors", 0, all.errors.values().sum()),
        ("connections", REQUESTS, all.connections),
        ("bytes_in", REQUESTS * expect, all.bytes_in),
        ("bytes_out", REQUESTS * pair.client.request.body_size, all.bytes_out),
        ("failure.count", 0, all.failure.count),
        ("handshakes", if pair.client.protocol.is_secure() { REQUESTS } else { 0 }, all.handshakes.values().sum()),
    ] {
        demand(wanted == is, || format!("expected `{what}` to be {wanted}; it is {is}"))?;
    }
    for (name, histogram) in
        [("response", &all.response), ("service", &all.service), ("lag", &all.lag), ("first_byte", &all.first_byte)]
    {
        demand(histogram.count == REQUESTS, || format!("expected {REQUESTS} values in `{name}`; {histogram:?}"))?;
        histogram_holds(name, histogram)?;
    }
    Ok(())
}

/// Checks that the encoded histogram agrees with the exact numbers, within its precision.
fn histogram_holds(name: &str, histogram: &wirelab_model::histogram::Histogram) -> Finding {
    use base64::Engine;
    let wrong = |why: String| Stop::broken(format!("`{name}.v2` is not a HdrHistogram in V2 encoding, base64: {why}"));
    let bytes =
        base64::engine::general_purpose::STANDARD.decode(&histogram.v2).map_err(|error| wrong(error.to_string()))?;
    let decoded: hdrhistogram::Histogram<u64> = hdrhistogram::serialization::Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| wrong(format!("{error:?}")))?;
    demand(decoded.len() == histogram.count, || {
        format!("expected `{name}.v2` to hold {} values; it holds {}", histogram.count, decoded.len())
    })?;
    for (what, exact, coarse) in
        [("min_ns", histogram.min_ns, decoded.min()), ("max_ns", histogram.max_ns, decoded.max())]
    {
        demand(exact.abs_diff(coarse) <= 1 + exact / 500, || {
            format!("expected `{name}.{what}` to agree with `{name}.v2`; they are {exact} and {coarse}")
        })?;
    }
    demand((histogram.min_ns..=histogram.max_ns).contains(&(histogram.sum_ns / histogram.count.max(1))), || {
        format!("expected the mean of `{name}` to lie between its minimum and maximum; {histogram:?}")
    })
}
