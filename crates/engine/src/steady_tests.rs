use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;

/// The longest warm-up.
const LONGEST_NS: u64 = 5_000_000_000;

/// Mean response time: 2000 requests per second by one worker.
const MEAN_NS: f64 = 500_000.0;

/// Runs of each simulation; docs/statistics.md has the rates of 400.
const RUNS: u64 = 30;

/// Scatter of response times.
#[derive(Debug, Clone, Copy)]
enum Scatter {
    /// 2 %.
    Small,
    /// Lognormal, 30 %.
    Lognormal,
    /// Three times as long in 30 % of requests.
    TwoModes,
    /// Lognormal, and one request in 100 from a Pareto distribution without variance, ten times as long and more.
    HeavyTail,
    /// Lognormal of 20 %, and a level that wanders by 10 % within about 20 ms.
    Wandering,
}

/// The level of response times over time.
#[derive(Debug, Clone, Copy)]
enum Level {
    Constant,
    /// Twice as long for 0.4 s.
    Step,
    /// From twice as long down to the end at 1 s.
    Ramp,
    /// Twice as long at first, with a time constant of a third of a second.
    Decay,
}

impl Level {
    fn at(self, seconds: f64) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Step => 1.0 + f64::from(seconds < 0.4),
            Self::Ramp => 2.0 - seconds.min(1.0),
            Self::Decay => 1.0 + (-3.0 * seconds).exp(),
        }
    }
}

/// Response times in order, of one worker without pauses.
struct Simulation {
    random: ChaCha8Rng,
    scatter: Scatter,
    wander: f64,
}

impl Simulation {
    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.random)
    }

    /// The factor of one response time.
    fn factor(&mut self) -> f64 {
        match self.scatter {
            Scatter::Small => (0.02 * self.normal()).exp(),
            Scatter::Lognormal => (0.3 * self.normal()).exp(),
            Scatter::TwoModes => {
                let slow = if self.random.random_bool(0.3) { 3.0 } else { 1.0 };
                slow * (0.05 * self.normal()).exp()
            }
            Scatter::HeavyTail if self.random.random_bool(0.01) => 10.0 * self.random.random::<f64>().powf(-1.0 / 1.1),
            Scatter::HeavyTail => (0.2 * self.normal()).exp(),
            Scatter::Wandering => {
                let memory = (-MEAN_NS / 20e6).exp();
                self.wander = memory * self.wander + 0.1 * (1.0 - memory * memory).sqrt() * self.normal();
                (self.wander + 0.2 * self.normal()).exp()
            }
        }
    }

    /// The time at which the warm-up ended, in seconds, and what it shows.
    fn run(scatter: Scatter, level: Level, seed: u64) -> (f64, Steadiness) {
        let mut simulation = Self { random: ChaCha8Rng::seed_from_u64(seed), scatter, wander: 0.0 };
        let (mut series, mut now_ns) = (Series::default(), 0);
        while now_ns < LONGEST_NS {
            let response_ns = (MEAN_NS * simulation.factor() * level.at(now_ns as f64 / 1e9)) as u64;
            now_ns += response_ns;
            if series.add(now_ns, Some(response_ns)) {
                return (now_ns as f64 / 1e9, Steadiness::Steady);
            }
        }
        (now_ns as f64 / 1e9, series.conclude(now_ns))
    }
}

/// Shares of runs that ended at the longest time, and that ended with a response time more than 5 % above the last
/// level; and the median time of the end in seconds.
fn rates(scatter: Scatter, level: Level) -> (f64, f64, f64) {
    let ends: Vec<_> = (0..RUNS).map(|seed| Simulation::run(scatter, level, seed)).collect();
    let share = |count: usize| count as f64 / RUNS as f64;
    let late = ends.iter().filter(|(_, steadiness)| *steadiness != Steadiness::Steady).count();
    let early = ends.iter().filter(|(at, end)| *end == Steadiness::Steady && level.at(*at) > 1.05).count();
    let mut times: Vec<f64> = ends.iter().map(|(at, _)| *at).collect();
    times.sort_unstable_by(f64::total_cmp);
    println!(
        "{scatter:?} {level:?}: late {}, early {}, median {:.2} s",
        share(late),
        share(early),
        times[times.len() / 2]
    );
    (share(late), share(early), times[times.len() / 2])
}

#[test]
fn steady_response_times_end_the_warm_up_long_before_its_limit() {
    for (scatter, most_late, longest_median) in [
        (Scatter::Small, 0.0, 0.7),
        (Scatter::Lognormal, 0.0, 1.0),
        (Scatter::TwoModes, 0.04, 2.0),
        (Scatter::HeavyTail, 0.1, 1.3),
        (Scatter::Wandering, 0.1, 2.5),
    ] {
        let (late, _, median) = rates(scatter, Level::Constant);
        assert!(late <= most_late && median <= longest_median, "{scatter:?}: {late} {median}");
    }
}

#[test]
fn a_warm_up_does_not_end_before_its_transient() {
    for level in [Level::Step, Level::Ramp, Level::Decay] {
        for (scatter, most) in [(Scatter::Lognormal, 0.0), (Scatter::HeavyTail, 0.1), (Scatter::Wandering, 0.14)] {
            let (_, early, _) = rates(scatter, level);
            assert!(early <= most, "{scatter:?} {level:?}: {early}");
        }
    }
}

#[test]
fn response_times_that_grow_without_end_are_changing_at_the_limit() {
    let mut series = Series::default();
    for request in 1..=10_000 {
        assert!(!series.add(request * 500_000, Some(100_000 + request * 20)), "it ended after {request} requests");
    }
    assert_eq!(series.conclude(5_000_000_000), Steadiness::Changing);
}

#[test]
fn few_requests_tell_nothing() {
    let mut series = Series::default();
    for request in 1..=19 {
        assert!(!series.add(request * 250_000_000, Some(1_000_000)));
    }
    assert_eq!((series.requests, series.conclude(4_750_000_000)), (19, Steadiness::CannotTell));
}

#[test]
fn failures_count_as_requests_but_have_no_response_time() {
    let mut series = Series::default();
    for request in 1..=2_000 {
        assert!(!series.add(request * 1_000_000, None));
    }
    assert_eq!((series.requests, series.batches.len()), (2_000, 0));
}

#[test]
fn batches_are_bounded_and_keep_the_mean() {
    let mut series = Series::default();
    for request in 1..=100_000_u64 {
        series.add(request, Some(if request % 2 == 0 { 100 } else { 400 }));
    }
    assert!((MOST_BATCHES / 2..MOST_BATCHES).contains(&series.batches.len()), "{}", series.batches.len());
    assert!(series.batches.iter().all(|batch| (batch.mean - 200_f64.ln()).abs() < 1e-9));
}

/// One judge decides for all threads, and only requests of the warm-up count.
#[test]
fn a_judge_ignores_requests_before_the_warm_up() {
    let judge = Judge::default();
    let start = Instant::now();
    let mut record = Record::begin(start, start);
    record.end = start + Duration::from_millis(1);
    judge.add(&record, false);
    assert_eq!(judge.outcome().requests, 0, "the check request");
    judge.begin(start);
    for request in 1..=1000 {
        record.intended = start + Duration::from_millis(request - 1);
        record.end = start + Duration::from_millis(request);
        judge.add(&record, false);
        if judge.is_steady() {
            break;
        }
    }
    let WarmedUp { took_ns, requests, steadiness } = judge.outcome();
    assert_eq!((took_ns, requests, steadiness), (625_000_000, 625, Steadiness::Steady));
}
