//! Observers on the hosts of a trial: an agent for each seat.

use std::sync::Arc;
use std::time::Instant;

use wirelab_agent::{ANSWERING, Remote, Watcher};
use wirelab_lab::{LabError, RemoteObserver, Role, many};
use wirelab_model::metric::{Side, Values};
use wirelab_model::missing::Missing;
use wirelab_observe::places;

/// The endpoints in a seat.
pub(crate) struct Seated {
    pub(crate) remote: Arc<dyn Remote>,
    pub(crate) side: Side,
    /// Roles, and specs as they were sent.
    pub(crate) endpoints: Vec<(Role, String)>,
}

/// The agents that observe a trial.
pub(crate) struct Observing {
    names: Vec<String>,
    agents: Vec<(Side, Watcher)>,
}

impl Observing {
    /// Starts agents for those of the wanted observers that need only the processes; `None` if none is wanted.
    ///
    /// # Errors
    /// If a host cannot be reached.
    pub(crate) fn start(seats: Vec<Seated>, wanted: &[&str]) -> Result<Option<Self>, LabError> {
        let names = places::PROCESS_OBSERVERS.iter().filter(|name| wanted.contains(name));
        let names: Vec<_> = names.map(|name| (*name).to_owned()).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let list = names.join(",");
        let agents = many::each(seats, |seat| {
            let endpoints = seat.endpoints.iter().map(|(role, spec)| (*role, spec.as_str()));
            Ok::<_, LabError>((seat.side, Watcher::start(seat.remote.as_ref(), &["observe", &list], endpoints)?))
        })?;
        let mut observing = Self { names, agents };
        observing.hear_all();
        Ok(Some(observing))
    }

    fn tell(&self, line: &str) {
        self.agents.iter().for_each(|(_, watcher)| watcher.tell(line));
    }

    fn hear_all(&mut self) {
        let deadline = Instant::now() + ANSWERING;
        self.agents.iter_mut().for_each(|(_, watcher)| watcher.acknowledge(deadline));
    }
}

impl RemoteObserver for Observing {
    fn begin(&mut self) {
        self.tell("begin");
        self.hear_all();
    }

    fn end(&mut self) {
        self.tell("end");
        self.hear_all();
    }

    fn values(&mut self, window_ns: u64, requests: u64, bytes: u64) -> Values {
        self.tell(&format!("values {window_ns} {requests} {bytes}"));
        let deadline = Instant::now() + ANSWERING;
        let read: Vec<_> = self.agents.iter_mut().map(|(side, watcher)| (*side, watcher.values(deadline))).collect();
        let of_side = |side: Side| {
            let here = read.iter().filter(|(of, _)| *of == side || side == Side::Link);
            let values: Result<Vec<_>, LabError> = here.map(|(_, values)| values.clone()).collect();
            match values {
                Ok(values) => places::merge(side, &self.names, &values),
                Err(error) => places::all_missing(side, &self.names, &Missing::Lab { reason: error.to_string() }),
            }
        };
        [Side::Client, Side::Server, Side::Link].into_iter().flat_map(of_side).collect()
    }
}
