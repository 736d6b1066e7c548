use proptest::prelude::*;

use super::*;
use crate::testing::{cases, client_spec};

const SECOND: u64 = 1_000_000_000;

fn stage(from_per_s: f64, to_per_s: f64, duration_ns: u64) -> Stage {
    Stage { from_per_s, to_per_s, duration_ns }
}

fn spec(arrivals: Arrivals, ramp: &[Stage]) -> ClientSpec {
    let schedule = Schedule::Open { rate_per_s: 1000.0, arrivals };
    ClientSpec { schedule, ramp: ramp.to_vec(), seed: 7, ..client_spec("h1c") }
}

/// The first arrivals of a thread.
fn first(spec: &ClientSpec, share: Share, count: usize) -> Vec<u64> {
    let mut times = ArrivalTimes::of(spec, share, Phase::Measured).unwrap();
    (0..count).map_while(|_| times.next_ns()).collect()
}

/// All arrivals of a ramp, of this number of threads.
fn all(spec: &ClientSpec, threads: u32) -> Vec<u64> {
    let shares = (0..threads).map(|index| Share { index, of: threads });
    let mut all: Vec<_> = shares.flat_map(|share| first(spec, share, usize::MAX)).collect();
    all.sort_unstable();
    all
}

/// Λ by the trapezoidal rule, which is exact for lines.
fn integral(ramp: &[Stage], until_ns: u64) -> f64 {
    let (mut sum, mut left) = (0.0, until_ns);
    for stage in ramp {
        let ns = left.min(stage.duration_ns);
        sum += f64::midpoint(stage.from_per_s, stage.rate_at(ns)) * ns as f64 / 1e9;
        left -= ns;
    }
    sum
}

fn length(ramp: &[Stage]) -> u64 {
    ramp.iter().map(|stage| stage.duration_ns).sum()
}

#[test]
fn uniform_arrivals_of_all_threads_are_equally_spaced() {
    let spec = spec(Arrivals::Uniform, &[]);
    let shares = (0..3).map(|index| Share { index, of: 3 });
    let mut all: Vec<_> = shares.flat_map(|share| first(&spec, share, 100)).collect();
    all.sort_unstable();
    assert_eq!(all, (0..300).map(|i| i * 1_000_000).collect::<Vec<_>>());
}

#[test]
fn poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process_and_follow_from_the_seed() {
    let share = Share { index: 0, of: 1 };
    let times = first(&spec(Arrivals::Poisson, &[]), share, 20_000);
    assert_eq!(times, first(&spec(Arrivals::Poisson, &[]), share, 20_000));
    let gaps: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    assert_exponential(&gaps);
}

/// Asserts the mean 1 and the variance 1 of about 20,000 values. Standard errors: 0.007 and 0.02.
#[track_caller]
fn assert_exponential(gaps: &[f64]) {
    assert!((18_000..25_000).contains(&gaps.len()), "{}", gaps.len());
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.03, "{mean}");
    assert!((variance - 1.0).abs() < 0.1, "{variance}");
}

#[test]
fn a_rising_rate_reaches_each_number_of_arrivals_at_the_root_of_its_integral() {
    // From 0 to 100/s in 2 s: 25 t² arrivals until t.
    let spec = spec(Arrivals::Uniform, &[stage(0.0, 100.0, 2 * SECOND)]);
    let expected: Vec<_> = (0..100).map(|k| (f64::from(k).sqrt() / 5.0 * 1e9).round() as u64).collect();
    assert_eq!(all(&spec, 1), expected);
    assert_eq!(all(&spec, 3), expected, "the threads take turns");
}

#[test]
fn a_falling_rate_mirrors_a_rising_one_and_a_pause_has_no_arrivals() {
    let ramp = [stage(100.0, 0.0, SECOND), stage(0.0, 0.0, SECOND), stage(50.0, 50.0, SECOND)];
    let times = all(&spec(Arrivals::Uniform, &ramp), 2);
    let count = |from: u64, to: u64| times.iter().filter(|at| (from..to).contains(at)).count();
    assert_eq!((count(0, SECOND), count(SECOND, 2 * SECOND), count(2 * SECOND, 3 * SECOND)), (50, 0, 50));
    // 100 t - 50 t² arrivals until t: after half a second, three quarters of 50.
    assert_eq!(count(0, SECOND / 2), 38);
    assert_eq!(times[50], 2 * SECOND, "the arrival at the end of the first stage waits for the pause");
}

#[test]
fn a_ramp_of_one_rate_is_that_rate() {
    let ramp = [stage(1000.0, 1000.0, SECOND), stage(1000.0, 1000.0, SECOND)];
    for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
        let (ramped, constant) = (all(&spec(arrivals, &ramp), 1), spec(arrivals, &[]));
        let constant = first(&constant, Share { index: 0, of: 1 }, ramped.len());
        assert!(ramped.len() > 1800 && ramped.iter().zip(&constant).all(|(one, other)| one.abs_diff(*other) <= 1));
    }
}

#[test]
fn poisson_arrivals_of_a_ramp_have_its_rate_everywhere() {
    let ramp = [stage(0.0, 4000.0, 4 * SECOND), stage(4000.0, 4000.0, 2 * SECOND), stage(4000.0, 1000.0, 2 * SECOND)];
    let times = all(&spec(Arrivals::Poisson, &ramp), 3);
    // Time as Λ makes the rate 1, so that the distances are exponential.
    let warped: Vec<_> = times.iter().map(|at| integral(&ramp, *at)).collect();
    assert_exponential(&warped.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>());
    for from_ns in (0..8 * SECOND).step_by(SECOND as usize / 2) {
        let to_ns = from_ns + SECOND / 2;
        let expected = integral(&ramp, to_ns) - integral(&ramp, from_ns);
        let found = times.iter().filter(|at| (from_ns..to_ns).contains(at)).count() as f64;
        // Four standard deviations of a Poisson number; 16 of them exceed that with a probability of 0.1 %.
        assert!((found - expected).abs() < 4.0 * expected.sqrt() + 1.0, "{found} instead of {expected}");
    }
}

fn stages() -> impl Strategy<Value = Vec<Stage>> {
    let rate = || prop_oneof![Just(0.0), 0.001_f64..10.0, 1.0_f64..5000.0];
    let one = (rate(), rate(), 1_000_000_u64..SECOND / 2).prop_map(|(from, to, ns)| stage(from, to, ns));
    prop::collection::vec(one, 1..6)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn uniform_arrivals_are_where_the_integral_is_a_whole_number(ramp in stages(), threads in 1_u32..5) {
        let times = all(&spec(Arrivals::Uniform, &ramp), threads);
        for (number, at) in times.iter().enumerate() {
            // The slope of the integral is at most 5000/s, and times are whole nanoseconds.
            let found = integral(&ramp, *at);
            prop_assert!((found - number as f64).abs() < 1e-4, "arrival {number} at {at} ns: {found}");
        }
        let expected = integral(&ramp, length(&ramp));
        // No whole number below the integral is missing, unless rounding decides.
        prop_assert!((times.len() as f64 - expected.ceil()).abs() < 1e-6 || (expected - expected.round()).abs() < 1e-6);
    }

    #[test]
    fn arrivals_are_in_order_and_within_the_ramp(ramp in stages(), threads in 1_u32..5) {
        for index in 0..threads {
            let times = first(&spec(Arrivals::Poisson, &ramp), Share { index, of: threads }, usize::MAX);
            prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(times.last().is_none_or(|last| *last <= length(&ramp)));
        }
    }
}
