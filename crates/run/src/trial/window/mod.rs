//! From the warm-up to the end of the measured window.

pub(crate) mod shared;
mod steady;
pub(crate) mod timeline;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wirelab_lab::Arena;
use wirelab_model::event::{Command, Event};
use wirelab_model::missing::Missing;
use wirelab_model::plan::{Course, Job};
use wirelab_model::reason::Attempt;
use wirelab_model::site::Site;
use wirelab_model::spec::ConnectionPolicy;
use wirelab_model::study::Artifact;
use wirelab_model::timeline::TimelineRecord;
use wirelab_model::units::Size;
use wirelab_observe::{Captures, Observer, Sidecars, Stage, Targets};

use crate::limits::longest;
use crate::pace::Pace;
use crate::trial::clients::Clients;
use crate::trial::context::{Facts, TrialContext, TrialInputs};
use crate::trial::distorted;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::preparation::Step;
use crate::trial::start::Serving;
use crate::trial::window::timeline::TimelineRun;

impl TrialContext<'_> {
    /// Prepares the observers, so that they see the network from the first packet on.
    pub(crate) fn prepare(&self, arena: &dyn Arena, inputs: &TrialInputs<'_>, observers: &mut [Box<dyn Observer>]) {
        let job = inputs.job;
        let captures = self.files.key_log.as_ref().filter(|_| self.keeps(Artifact::Pcap)).map(|keys| Captures {
            stem: self.folder.capture(inputs.trial),
            keys: job.protocol.is_secure().then(|| keys.clone()),
        });
        let vantages = arena.vantages();
        let films = inputs.films.as_deref();
        let stage = Stage { vantages: &vantages, witness: self.witness, captures: captures.as_ref(), films };
        observers.iter_mut().for_each(|observer| observer.prepare(&stage));
    }

    /// Keeps the minimum interval between requests to a foreign host.
    pub(crate) fn keep_interval(&self, job: &Job) -> Result<(), TrialAbort> {
        if job.site().is_none_or(Site::is_near) {
            return Ok(());
        }
        let mut pace = Pace::new(self.interval);
        pace.rest();
        pace.wait(self.stop);
        if self.stop.load(Ordering::Relaxed) { Err(TrialAbort::Interrupted) } else { Ok(()) }
    }

    /// Warms up the initial clients; those of a timeline's later actions warm up when they start.
    pub(crate) fn warm_up(
        &self,
        inputs: &TrialInputs<'_>,
        clients: &mut Clients,
        serving: &mut Serving,
        facts: &mut Facts,
    ) -> Result<(), TrialAbort> {
        const ATTEMPT: Attempt = Attempt::WarmingUp;
        let job = inputs.job;
        let begun = Instant::now();
        let first = &mut clients[..job.load.clients as usize];
        for client in first.iter_mut() {
            client.send(Command::Go)?;
        }
        let request = Duration::from_nanos(job.load.timeouts.connect_ns.saturating_add(job.load.timeouts.request_ns));
        let warm_up = job.load.warm_up.map_or(Duration::ZERO, |extent| longest(job, extent));
        let limit = self.limits.slack.saturating_add(request).saturating_add(warm_up);
        for client in first {
            match client.wait(ATTEMPT, limit, &mut serving.handles, self.stop)? {
                Event::Warm { until_steady } if until_steady.is_some() == job.load.until_steady => {
                    facts.warmed_up = until_steady;
                }
                other => return Err(client.unexpected(&other, ATTEMPT)),
            }
        }
        facts.preparation.took(Step::WarmUp, begun, clients[0].pid());
        Ok(())
    }

    /// Runs the measured window with all observers.
    pub(crate) fn window(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        clients: &mut Clients,
        serving: &mut Serving,
        observers: &mut [Box<dyn Observer>],
        facts: &mut Facts,
    ) -> Result<(), TrialAbort> {
        let targets = targets(inputs, clients, serving, facts.connect_port);
        for observer in observers.iter_mut() {
            observer.begin(&targets);
        }
        if let Some(remote_observer) = &mut facts.remote_observer {
            remote_observer.begin();
        }
        if let Some(exporter) = &inputs.exporter {
            exporter.pods(inputs.job.server_count() as usize, inputs.job.load.clients as usize);
        }
        // An observer that stops processes delays them by a time that no account has.
        let longest_idle = match distorted::by(observers) {
            None => steady::longest_idle(inputs.job),
            Some(_) => None,
        };
        let ended = self.run_clients(arena, inputs, clients, serving, longest_idle, facts);
        if let Some(exporter) = &inputs.exporter {
            exporter.pods(0, 0);
        }
        if let Some(remote_observer) = &mut facts.remote_observer {
            remote_observer.end();
        }
        // In reverse order, so that the first observer encloses the others.
        for observer in observers.iter_mut().rev() {
            observer.end(&targets);
        }
        facts.window_ns = ended?;
        Ok(())
    }

    /// Runs the clients' measurement; returns the length of the window in nanoseconds.
    fn run_clients(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        clients: &mut Clients,
        serving: &mut Serving,
        longest_idle: Option<Duration>,
        facts: &mut Facts,
    ) -> Result<u64, TrialAbort> {
        let (job, limits, stop) = (inputs.job, self.limits, self.stop);
        let limit = limits.slack.saturating_add(longest(job, job.load.extent));
        match job.course {
            Course::Timeline(_) => {
                let Serving { handles, ports, mesh, control_plane, .. } = serving;
                let of_control_plane = || control_plane.as_ref().map(|control_plane| &control_plane.membership);
                let played = facts.timeline.insert(TimelineRecord::default());
                TimelineRun {
                    arena,
                    job,
                    lifetimes: &inputs.lifetimes,
                    others: handles,
                    clients,
                    ports,
                    membership: mesh.as_ref().map(|mesh| &mesh.membership).or_else(of_control_plane),
                    limits,
                    stop,
                    played: &mut *played,
                    exporter: inputs.exporter.as_ref(),
                    changing: None,
                }
                .run()?;
                Ok(played.clients.iter().map(|one| one.from_ns + one.window_ns).max().unwrap_or_default())
            }
            Course::Steady if job.load.clients > 1 => {
                facts.portions = shared::measure(clients, &mut serving.handles, longest_idle, limit, stop)?;
                Ok(facts.portions.iter().map(|one| one.told_ns + one.window_ns).max().unwrap_or_default())
            }
            Course::Steady => self.run_client(longest_idle, &mut clients[0], &mut serving.handles, limit),
        }
    }
}

/// Processes for the observers.
fn targets(inputs: &TrialInputs<'_>, clients: &Clients, serving: &Serving, port: Option<u16>) -> Targets {
    let pids = |handles: &[EndpointHandle]| handles.iter().map(EndpointHandle::pid).collect();
    let (servers, rest) = serving.handles.split_at(serving.ports.len());
    let (sidecars, asked) = rest.split_at(if serving.mesh.is_some() { rest.len() } else { 0 });
    Targets {
        // With no server, the value is missing, not zero.
        servers: if servers.is_empty() { None } else { pids(servers) },
        clients: pids(clients),
        sidecars: sidecars.split_last().map(|(of_clients, of_servers)| Sidecars {
            of_servers: pids(of_servers),
            of_clients: of_clients.pid().map(|pid| vec![pid]),
        }),
        control_plane: asked.first().and_then(EndpointHandle::pid),
        ports: port.into_iter().collect(),
        mixed: mixed(inputs.job),
    }
}

/// The largest request body that no client announces first (`Expect: 100-continue`).
const LARGEST_BODY: u64 = 64 * 1024;

/// Why the kernel cannot tell the requests of a job apart, if so.
fn mixed(job: &Job) -> Option<Missing> {
    let protocol = job.protocol;
    let of_own_server = job.servers().is_some() && !job.has_mesh() && job.control_plane().is_none();
    let [sent, _] = job.work.body_sizes().map(Size::bytes);
    if !of_own_server || job.page().is_some() || matches!(job.course, Course::Timeline(_)) {
        Some(Missing::NotOneByOne)
    } else if protocol.multiplexes() || protocol.uses_udp() {
        Some(Missing::SharedConnections { protocol })
    } else if protocol.is_secure() && job.load.connections == ConnectionPolicy::PerRequest {
        Some(Missing::HandshakesInWindow)
    } else {
        (sent > LARGEST_BODY).then_some(Missing::LargeRequest { bytes: sent })
    }
}
