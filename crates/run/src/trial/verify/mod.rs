//! Validates a client's results against its spec and against physics.
//!
//! A violation fails the trial: an impossible number shows that the instrument was measured instead of the protocol.

pub(crate) mod loads;
pub(crate) mod tally;
pub(crate) mod witness;

use std::collections::HashSet;
use std::time::Duration;

use indexmap::IndexMap;
use wirelab_lab::Role;
use wirelab_model::event::Configured;
use wirelab_model::histogram::Histograms;
use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
use wirelab_model::plan::{Cell, Job, Requests, Target};
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::{Handshake, Sample};
use wirelab_model::site::Site;
use wirelab_model::spec::{ConnectionPolicy, Extent, Resumption, Transport};
use wirelab_model::timeline::{Lifetimes, TimelineRecord};
use wirelab_model::totals::Totals;
use wirelab_model::units::Size;
use wirelab_model::violation::{RecordProblem, Violation};

use crate::trial::carried::Carried;
use crate::trial::results::Results;
use crate::trial::verify::tally::Tally;

/// Result of a check; the client is to blame unless stated otherwise.
type Checked<T> = Result<T, Outcome>;

fn client(violation: Violation) -> Outcome {
    Outcome::failed(Blame::Client, violation)
}

/// Tolerance between two readings of a clock.
const CLOCK_SLACK: Duration = Duration::from_millis(1);

/// Time that a client may need to read `go`, and to print `end` after its last request, apart from waiting for a
/// processor.
const HANDOVER: Duration = Duration::from_millis(5);

/// Upper bound of unknown delays, for any number of clients; a tenth of the time is added.
const COARSE_GAP: Duration = Duration::from_secs(1);

/// The addition to that bound for each client: clients may share a processor, and one `run` reads the events of all.
const COARSE_GAP_PER_CLIENT: Duration = Duration::from_millis(10);

/// How long the processes of a client and of `run` may have been delayed between `go` and `end`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Delays {
    /// They waited for a processor, or were idle, for this time.
    Measured(Duration),
    /// Unknown, or `run` did other work before it read `end`.
    Unknown {
        /// Clients that measure at the same time.
        clients: usize,
    },
}

impl Delays {
    /// The measured delay, if it is known.
    pub(crate) fn of(waited: Option<Duration>, clients: usize) -> Self {
        waited.map_or(Self::Unknown { clients }, Self::Measured)
    }

    /// The longest time by which a correct window may be shorter than `passed`.
    fn longest_gap(self, passed: Duration) -> Duration {
        match self {
            Self::Measured(waited) => HANDOVER + waited,
            Self::Unknown { clients } => {
                let clients = u32::try_from(clients).unwrap_or(u32::MAX);
                COARSE_GAP + passed / 10 + COARSE_GAP_PER_CLIENT.saturating_mul(clients)
            }
        }
    }
}

/// Checks that the negotiated protocol is the cell's.
pub(crate) fn negotiated(protocol: Protocol, configured: &Configured) -> Checked<()> {
    let said = configured.get("alpn").filter(|value| !value.is_null());
    match (protocol.alpn(), said) {
        (None, None) => Ok(()),
        (Some(wanted), Some(said)) if said.as_str() == Some(wanted) => Ok(()),
        (Some(wanted), None) => Err(client(Violation::ProtocolNotReported { wanted: wanted.to_owned() })),
        (_, Some(said)) => Err(client(Violation::WrongProtocol { reported: said.clone(), protocol })),
    }
}

/// Checks an endpoint's effective configuration against the requested one. Numbers may be larger, because kernels
/// round buffers up.
pub(crate) fn in_force(role: Role, asked: &Transport, configured: &Configured) -> Checked<()> {
    let Ok(serde_json::Value::Object(asked)) = serde_json::to_value(asked) else { return Ok(()) };
    for (name, asked) in &asked {
        let Some(is) = configured.get(name).filter(|is| !is.is_null()) else { continue };
        let honoured = match (asked.as_u64(), is.as_u64()) {
            (Some(asked), Some(is)) => is >= asked,
            _ => asked == is,
        };
        if !honoured {
            let violation = Violation::SettingIgnored {
                role: role.word().to_owned(),
                setting: name.clone(),
                reported: is.clone(),
                requested: asked.clone(),
            };
            return Err(Outcome::failed(role.blame(), violation));
        }
    }
    Ok(())
}

/// Checks the client's window against the time between sending `go` and reading `end`.
pub(crate) fn window(window_ns: u64, passed: Duration, delays: Delays) -> Checked<()> {
    let window = Duration::from_nanos(window_ns);
    let longest_gap = delays.longest_gap(passed);
    let passed_ns = passed.as_nanos() as u64;
    if window > passed + CLOCK_SLACK {
        Err(client(Violation::WindowTooLong { window_ns, passed_ns }))
    } else if passed > window + longest_gap {
        let allowed_ns = longest_gap.as_nanos() as u64;
        Err(client(Violation::WindowTooShort { window_ns, passed_ns, allowed_ns }))
    } else {
        Ok(())
    }
}

/// Checks the results of a trial.
pub(crate) fn results(cell: &Cell, window_ns: u64, results: &Results) -> Checked<Tally> {
    let tally = match results {
        Results::Samples(samples) => self::samples(cell, window_ns, samples)?,
        Results::Histograms(histograms) => self::histograms(cell, window_ns, histograms)?,
        Results::Loads(loads) => loads::loads(cell, loads)?,
        Results::Totals(totals) => self::totals(totals, window_ns)?,
    };
    let all = tally.ok + tally.failed();
    match cell.job.load.extent {
        Extent::Requests(wanted) if all != wanted => {
            return Err(client(Violation::WrongRequestCount { recorded: all, wanted }));
        }
        _ if all == 0 => return Err(client(Violation::NoRequest)),
        _ => {}
    }
    if let (0, Target::Site(site)) = (tally.ok, &cell.job.target) {
        let (url, answers) = (site.url.clone(), answers(results));
        return Err(Outcome::failed(Blame::Server, Violation::NoPage { url, answers }));
    }
    let foreign = tally.handshakes.keys().find(|handshake| **handshake != Handshake::Full);
    if let (Resumption::None, Some(foreign)) = (cell.job.load.resumption, foreign) {
        return Err(client(Violation::NotNew { handshake: *foreign }));
    }
    Ok(tally)
}

/// Checks, in a trial with a timeline, that servers and clients agree about the number of answered requests, unless
/// some were lost.
pub(crate) fn answered(job: &Job, played: &TimelineRecord, tally: &Tally) -> Checked<()> {
    let lifetimes = Lifetimes::of(job);
    // Responses between a server's last report and its end are unknown.
    let someone_left = lifetimes.steps.iter().any(|step| step.killed.is_some() || !step.stopped.is_empty());
    let (Some(first), Some(last)) = (played.answered.first(), played.answered.last()) else { return Ok(()) };
    if someone_left || tally.failed() > 0 {
        return Ok(());
    }
    let answered = last.requests.iter().sum::<u64>() - first.requests.iter().sum::<u64>();
    let warm_up = match job.load.warm_up {
        Some(Extent::Requests(requests)) => requests,
        Some(Extent::DurationNs(_)) => return Ok(()),
        None => 0,
    };
    // Clients that start later send their check and warm-up requests within the window.
    let unrecorded = (1 + warm_up) * (played.clients.len() as u64 - 1);
    if answered == tally.ok + unrecorded {
        return Ok(());
    }
    Err(Outcome::failed(Blame::Server, Violation::AnsweredDiffer { answered, recorded: tally.ok, unrecorded }))
}

/// Checks, in a steady trial, that servers answered as many requests as the clients recorded. `answered` is the
/// servers' own count since `ready`.
pub(crate) fn served(job: &Job, answered: u64, tally: &Tally) -> Checked<()> {
    let recorded = tally.ok + tally.failed();
    let differ = |unrecorded| Err(client(Violation::ServedDiffer { answered, recorded, unrecorded }));
    if answered < tally.ok {
        return differ(0);
    }
    let warm_up = match job.load.warm_up {
        Some(Extent::Requests(requests)) => requests,
        Some(Extent::DurationNs(_)) => return Ok(()),
        None => 0,
    };
    if job.own_client.is_some() {
        // It sends no check request, and may send more than it counts.
        return if answered < recorded + warm_up { differ(warm_up) } else { Ok(()) };
    }
    // Each client sends a check request; with resumption it may send more, for session tickets.
    let unrecorded = u64::from(job.load.clients) + warm_up;
    let least = if tally.failed() > 0 { tally.ok } else { recorded + unrecorded };
    let has_limit = job.load.resumption == Resumption::None;
    if answered < least || has_limit && answered > recorded + unrecorded { differ(unrecorded) } else { Ok(()) }
}

/// Checks by the sidecars' own counts that every request passed the clients' sidecar and that of the answering
/// server. Servers with sidecars listen only on their own hosts, so no request can bypass them; this check proves it.
pub(crate) fn carried(job: &Job, carried: &Carried, played: Option<&TimelineRecord>, tally: &Tally) -> Checked<()> {
    let failed = |violation: Violation| Err(Outcome::failed(Blame::Sidecar, violation));
    let Carried { of_clients, of_servers } = carried;
    let of_clients = *of_clients;
    if of_clients < tally.ok {
        return failed(Violation::CarriedTooFew { carried: of_clients, responses: tally.ok });
    }
    // The count of a stopped sidecar is unknown, and a failed request may have ended at any hop.
    let Some(of_servers) = of_servers.iter().copied().collect::<Option<Vec<_>>>() else { return Ok(()) };
    if tally.failed() > 0 {
        return Ok(());
    }
    let sum: u64 = of_servers.iter().sum();
    if of_clients != sum {
        return failed(Violation::CarriedDiffer { of_clients, of_servers: sum });
    }
    let answered = played.and_then(|played| played.answered.last()).map(|answered| &answered.requests);
    if let Some(answered) = answered.filter(|answered| **answered != of_servers) {
        return failed(Violation::CarriedNotAnswered { answered: answered.clone(), carried: of_servers });
    }
    let warm_up = match job.load.warm_up {
        Some(Extent::Requests(requests)) => requests,
        Some(Extent::DurationNs(_)) => return Ok(()),
        None => 0,
    };
    let unrecorded = (1 + warm_up) * played.map_or(1, |played| played.clients.len() as u64);
    if of_clients == tally.ok + unrecorded {
        return Ok(());
    }
    failed(Violation::CarriedNotSent { carried: of_clients, recorded: tally.ok, unrecorded })
}

fn samples(cell: &Cell, window_ns: u64, samples: &[Sample]) -> Checked<Tally> {
    let latest = window_ns.saturating_add(CLOCK_SLACK.as_nanos() as u64);
    let mut tally = Tally::default();
    let mut connections = HashSet::new();
    for (index, sample) in samples.iter().enumerate() {
        let number = index as u64 + 1;
        let of = |blame, problem| Err(Outcome::failed(blame, Violation::ImpossibleRecord { number, problem }));
        if let Err(what) = sample.check() {
            return of(Blame::Client, RecordProblem::Contradiction { what: what.to_owned() });
        }
        if sample.last_byte_ns > latest {
            return of(Blame::Client, RecordProblem::EndedAfterWindow { ended_ns: sample.last_byte_ns, window_ns });
        }
        if let Some(handshake) = sample.handshake {
            *tally.handshakes.entry(handshake).or_default() += 1;
        }
        if let Some(kind) = sample.error {
            *tally.errors.entry(kind).or_default() += 1;
            continue;
        }
        tally.ok += 1;
        tally.bytes = tally.bytes.saturating_add(sample.bytes_in).saturating_add(sample.bytes_out);
        if let Some((blame, problem)) = wrong(cell, sample) {
            return of(blame, problem);
        }
        if cell.job.load.connections == ConnectionPolicy::PerRequest && !connections.insert(sample.connection) {
            return of(Blame::Client, RecordProblem::ConnectionUsedAgain { connection: sample.connection });
        }
    }
    Ok(tally)
}

/// Statuses and errors of requests that all failed, as text.
fn answers(results: &Results) -> String {
    let mut counts: IndexMap<String, u64> = IndexMap::new();
    match results {
        Results::Samples(samples) => {
            for sample in samples {
                let kind = sample.error.map_or("ok", ErrorKind::token);
                let status = sample.status.map_or_else(String::new, |status| format!(" {status}"));
                *counts.entry(format!("{kind}{status}")).or_default() += 1;
            }
        }
        Results::Histograms(histograms) => {
            counts.extend(histograms.errors.iter().map(|(kind, count)| (kind.to_string(), *count)));
        }
        // A failed load has already failed the trial.
        Results::Loads(_) | Results::Totals(_) => {}
    }
    let words: Vec<_> = counts.into_iter().map(|(what, count)| format!("{count} times `{what}`")).collect();
    words.join(", ")
}

/// Why a sample that reports success is impossible.
fn wrong(cell: &Cell, sample: &Sample) -> Option<(Blame, RecordProblem)> {
    let job = &cell.job;
    let [sent, received] = job.work.body_sizes().map(Size::bytes);
    let site = job.site();
    // The client has compared the responses to requests of the user with what these expect.
    let is_own = !job.own_requests().is_empty();
    // The length of a remote page is unknown.
    if sample.bytes_in != received && site.is_none() && !is_own {
        return Some((Blame::Client, RecordProblem::Received { bytes: sample.bytes_in, wanted: received }));
    }
    if sample.bytes_out != sent && !is_own {
        return Some((Blame::Client, RecordProblem::Sent { bytes: sample.bytes_out, wanted: sent }));
    }
    let is_right = |status| if site.is_some() { Site::is_page(status) } else { status == 200 };
    if job.protocol.is_http() && !is_own && !sample.status.is_some_and(is_right) {
        return Some((Blame::Client, RecordProblem::Status { status: sample.status }));
    }
    let opened = job.load.connections == ConnectionPolicy::PerRequest;
    if opened && job.protocol.is_secure() && sample.handshake.is_none() {
        return Some((Blame::Client, RecordProblem::NoHandshake));
    }
    let waited_ns = sample.first_byte_ns.unwrap_or(u64::MAX).saturating_sub(sample.start_ns);
    let delay_ns = least_delay(job);
    (waited_ns < delay_ns).then_some((Blame::Server, RecordProblem::TooEarly { waited_ns, delay_ns }))
}

/// The time that the server must wait before its response, in ns.
fn least_delay(job: &Job) -> u64 {
    job.requests().map_or(0, Requests::least_delay_ns)
}

fn histograms(cell: &Cell, window_ns: u64, histograms: &Histograms) -> Checked<Tally> {
    let h = histograms;
    let latest = window_ns.saturating_add(CLOCK_SLACK.as_nanos() as u64);
    let tally = Tally {
        ok: h.requests,
        errors: h.errors.iter().filter(|(_, count)| **count > 0).map(|(kind, count)| (*kind, *count)).collect(),
        bytes: h.bytes_in.saturating_add(h.bytes_out),
        handshakes: h.handshakes.iter().filter(|(_, count)| **count > 0).map(|(kind, count)| (*kind, *count)).collect(),
    };
    let failed = tally.failed();
    let [sent, received] = cell.job.work.body_sizes().map(Size::bytes);
    let is_own = !cell.job.own_requests().is_empty();
    let (all, is_ours) = (tally.ok + failed, cell.job.site().is_none() && !is_own);
    let must_equal = [
        ("values of `response`", h.response.count, tally.ok),
        ("values of `service`", h.service.count, tally.ok),
        ("values of `first_byte`", h.first_byte.count, tally.ok),
        ("values of `lag`", h.lag.count, all),
        ("values of `failure`", h.failure.count, failed),
        ("bytes received", h.bytes_in, if is_ours { tally.ok.saturating_mul(received) } else { h.bytes_in }),
        ("bytes sent", h.bytes_out, if is_own { h.bytes_out } else { tally.ok.saturating_mul(sent) }),
    ];
    if let Some((what, is, right)) = must_equal.into_iter().find(|(_, is, right)| is != right) {
        return Err(client(Violation::HistogramsDiffer { what: what.to_owned(), is, right }));
    }
    for (name, histogram) in [("response", &h.response), ("service", &h.service), ("failure", &h.failure)] {
        if histogram.max_ns > latest {
            let (what, max_ns) = (name.to_owned(), histogram.max_ns);
            return Err(client(Violation::LongerThanWindow { what, max_ns, window_ns }));
        }
    }
    let (waited_ns, delay_ns) = (h.first_byte.min_ns, least_delay(&cell.job));
    if tally.ok > 0 && waited_ns < delay_ns {
        return Err(Outcome::failed(Blame::Server, Violation::TooEarly { waited_ns, delay_ns }));
    }
    if cell.job.load.connections == ConnectionPolicy::PerRequest && h.connections < tally.ok {
        return Err(client(Violation::TooFewConnections { connections: h.connections, requests: tally.ok }));
    }
    Ok(tally)
}

fn totals(totals: &Totals, window_ns: u64) -> Checked<Tally> {
    for (value, ns) in totals.printed.iter().filter_map(|(value, ns)| Some((value.time()?, *ns))) {
        if ns > window_ns {
            let what = value.to_owned();
            return Err(client(Violation::LongerThanWindow { what, max_ns: ns, window_ns }));
        }
    }
    let failed = totals.failed().unwrap_or_default();
    let errors = (failed > 0).then_some((ErrorKind::Other, failed)).into_iter().collect();
    Ok(Tally { ok: totals.requests, errors, ..Tally::default() })
}

#[cfg(test)]
mod tests;
