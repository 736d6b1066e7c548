//! Simulates the samples of a trial.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use wirelab_model::outcome::ErrorKind;
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::{Handshake, Sample};
use wirelab_model::spec::{Arrivals, ClientSpec, ConnectionPolicy, Extent, Pause, Resumption, Schedule};

use super::script::{Case, Script};

/// Maximum requests per trial: the samples that a client can hold in memory.
const MOST_REQUESTS: usize = 5_000_000;

/// Median of the client's own delay between intended and actual start, in nanoseconds.
const LAG: f64 = 2_000.0;

/// Recordings of a simulated client.
#[derive(Debug)]
pub struct Run {
    pub samples: Vec<Sample>,
    pub window_ns: u64,
}

/// Simulates a spec with the script's service times.
pub fn simulate(script: &Script, case: &Case<'_>, spec: &ClientSpec) -> Run {
    let mut trial = Trial::new(script, case, spec);
    let mut samples = Vec::new();
    match spec.schedule {
        Schedule::Closed { workers, pause } => trial.closed(workers.max(1), pause, &mut samples),
        Schedule::Open { rate_per_s, arrivals } => trial.open(rate_per_s, arrivals, &mut samples),
    }
    let window_ns = samples.iter().map(|sample| sample.last_byte_ns).max().unwrap_or_default();
    Run { samples, window_ns }
}

struct Trial<'a> {
    script: &'a Script,
    spec: &'a ClientSpec,
    /// Median service time of this trial, in nanoseconds.
    median: f64,
    /// The server's additional work before each response, in nanoseconds.
    added_work: f64,
    random: ChaCha8Rng,
}

impl<'a> Trial<'a> {
    fn new(script: &'a Script, case: &Case<'_>, spec: &'a ClientSpec) -> Self {
        let noise = &script.noise;
        // The trials of a block share a seed, so that compared cells get the same arrivals; their noise must differ.
        let mut random = ChaCha8Rng::seed_from_u64(case.seed);
        random.set_stream(u64::from(case.number));
        let trial = normal(&mut random) * noise.trial;
        let mut of_block = ChaCha8Rng::seed_from_u64(script.seed);
        of_block.set_stream(u64::from(case.block) + 1);
        let block = normal(&mut of_block) * noise.block;
        let drift = 1.0 + noise.drift * f64::from(case.number);
        let added_work = case.job.servers().map_or(0, |servers| servers.added_work.nanos()) as f64;
        Self { script, spec, median: script.median(case) * (trial + block).exp() * drift, added_work, random }
    }

    /// Closed loop: each worker sends, waits and pauses.
    fn closed(&mut self, workers: u32, pause: Pause, samples: &mut Vec<Sample>) {
        let mut free: BinaryHeap<_> = (0..workers).map(|worker| Reverse((0, worker))).collect();
        while let Some(Reverse((intended, worker))) = free.pop() {
            if self.is_over(samples.len(), intended) {
                break;
            }
            let sample = self.sample(intended, worker, samples.len());
            free.push(Reverse((sample.last_byte_ns + self.pause(pause), worker)));
            samples.push(sample);
        }
    }

    /// Open loop: requests start at their time, regardless of earlier ones.
    fn open(&mut self, rate_per_s: f64, arrivals: Arrivals, samples: &mut Vec<Sample>) {
        let interval = 1e9 / rate_per_s;
        let mut arrival = 0.0;
        loop {
            arrival += match arrivals {
                Arrivals::Uniform => interval,
                Arrivals::Poisson => Distribution::<f64>::sample(&Exp1, &mut self.random) * interval,
            };
            let number = samples.len();
            if !arrival.is_finite() || self.is_over(number, arrival as u64) {
                break;
            }
            let sample = self.sample(arrival as u64, number as u32, number);
            samples.push(sample);
        }
    }

    const fn is_over(&self, sent: usize, now: u64) -> bool {
        let over = match self.spec.extent {
            Extent::Requests(count) => sent as u64 >= count,
            Extent::DurationNs(length) => now >= length,
        };
        over || sent >= MOST_REQUESTS
    }

    fn pause(&mut self, pause: Pause) -> u64 {
        match pause {
            Pause::None => 0,
            Pause::Fixed { ns } => ns,
            Pause::Uniform { min_ns, max_ns } => self.random.random_range(min_ns..=max_ns.max(min_ns)),
        }
    }

    fn sample(&mut self, intended_ns: u64, worker: u32, number: usize) -> Sample {
        let noise = self.script.noise;
        let start_ns = intended_ns + if noise.request > 0.0 { self.lognormal(LAG, noise.request) as u64 } else { 0 };
        let spike = if self.random.random::<f64>() < noise.spikes { noise.spike_factor } else { 1.0 };
        let service = (self.lognormal(self.median, noise.request) * spike).max(1.0) + self.added_work;
        let (opens, connection) = match self.spec.connections {
            ConnectionPolicy::PerRequest => (true, number as u32),
            ConnectionPolicy::Persistent { connections, .. } => (false, worker % connections.max(1)),
        };
        // Phases of a connection's first request, as shares of its service time.
        let at = |share: f64| start_ns + (service * share) as u64;
        let protocol = self.spec.protocol;
        let connected_ns = (opens && !protocol.uses_udp()).then(|| at(0.2));
        let secure = opens && protocol.is_secure();
        let mut sample = Sample {
            intended_ns,
            start_ns,
            connected_ns,
            handshake_ns: secure.then(|| at(0.7)),
            first_byte_ns: Some(at(0.9)),
            last_byte_ns: at(1.0),
            request: None,
            bytes_out: self.spec.request.body_size,
            bytes_in: self.spec.request.expect.as_ref().map_or(0, |expect| expect.body_size),
            status: protocol.is_http().then(|| self.spec.request.expect.as_ref().map_or(200, |expect| expect.status)),
            connection,
            handshake: secure.then_some(match self.spec.resumption {
                Resumption::None => Handshake::Full,
                Resumption::Resume => Handshake::Resumed,
                Resumption::ZeroRtt => Handshake::EarlyAccepted,
            }),
            error: None,
        };
        if self.random.random::<f64>() < self.script.failed_requests {
            sample.error = Some(if protocol == Protocol::Udp { ErrorKind::Lost } else { ErrorKind::Timeout });
            (sample.first_byte_ns, sample.status, sample.bytes_in) = (None, None, 0);
            sample.last_byte_ns = start_ns + self.spec.timeouts.request_ns.max(service as u64);
        }
        sample
    }

    fn lognormal(&mut self, median: f64, deviation: f64) -> f64 {
        median * (normal(&mut self.random) * deviation).exp()
    }
}

fn normal(random: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(random)
}
