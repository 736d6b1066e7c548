//! TCP connections as the kernel accounts them, for endpoints in any language, because it needs no help from the
//! endpoint.
//!
//! The witness ([`crate::witness`]) asks the kernel in the network namespaces of client and servers. A server's
//! connections are those at its listening ports. A client's connections are all others of its namespace. In a namespace
//! that client and server share, as on loopback, they are those to the server's ports.

mod metrics;
mod ports;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use wirelab_model::metric::Values;
use wirelab_model::missing::Missing;
use wirelab_model::transport::TransportReport;

pub use metrics::ABOUT;

use crate::tree::Pid;
use crate::window::{Sides, values};
use crate::witness::{Answer, Order, Selection, Witness};
use crate::{About, Observer, Reaped, Stage, Targets, Window};

/// The account of each side.
type Seen = Sides<Result<TransportReport, Missing>>;

/// The observer.
#[derive(Debug)]
pub struct Tcp {
    witness: Witness,
    /// The user namespace that owns the network namespaces, if it is not wirelab's own.
    owner: Option<PathBuf>,
    /// The connections to collect from the witness after the window, once it watches.
    pending: Option<Result<Vec<Selection>, Missing>>,
    seen: Seen,
}

impl Default for Tcp {
    fn default() -> Self {
        Self { witness: Witness::default(), owner: None, pending: None, seen: unknown(Missing::NoWindow) }
    }
}

impl Observer for Tcp {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn prepare(&mut self, stage: &Stage<'_>) {
        self.witness = stage.witness.clone();
        self.owner = stage.vantages.first().and_then(|vantage| vantage.owner.clone());
    }

    fn begin(&mut self, targets: &Targets) {
        self.pending = Some(self.watch(targets));
    }

    fn end(&mut self, _: &Targets) {
        self.pending = self.pending.take().map(|pending| {
            let selections = pending?;
            self.witness.ask(&Order::EndConnections).map(|_| selections)
        });
    }

    fn reaped(&mut self, _: &Reaped) {
        self.collect();
    }

    fn values(&mut self, window: &Window) -> Values {
        self.collect();
        values(ABOUT.metrics, metrics::readings(&self.seen, window))
    }
}

/// A network namespace with the processes in it.
#[derive(Debug)]
struct Namespace {
    path: PathBuf,
    has_client: bool,
    servers: Vec<Pid>,
}

impl Tcp {
    /// Starts the witness's watch; returns the connections to select in each namespace.
    fn watch(&self, targets: &Targets) -> Result<Vec<Selection>, Missing> {
        let namespaces = namespaces(targets)?;
        let paths = namespaces.iter().map(|namespace| namespace.path.clone()).collect();
        let order = Order::WatchConnections { namespaces: paths, owner: self.owner.clone() };
        let listeners = match self.witness.ask(&order)? {
            Answer::Listening { listeners } => listeners,
            other => return Err(other.to(&order)),
        };
        let selection = |(namespace, listeners): (&Namespace, Vec<_>)| {
            let server_ports = ports::of(&namespace.servers, &listeners)?;
            Ok(Selection { server_ports, has_client: namespace.has_client })
        };
        namespaces.iter().zip(listeners).map(selection).collect()
    }

    /// Takes the accounts from the witness, once.
    fn collect(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let answer = pending.and_then(|sought| {
            let order = Order::CollectConnections { sought };
            match self.witness.ask(&order)? {
                Answer::Connections { transports } => Ok(transports),
                other => Err(other.to(&order)),
            }
        });
        self.seen = match answer {
            Ok(transports) => Sides { client: Ok(transports.client), server: Ok(transports.servers) },
            Err(why) => unknown(why),
        };
    }
}

fn unknown(why: Missing) -> Seen {
    Sides { client: Err(why.clone()), server: Err(why) }
}

/// The namespaces of all visible processes, each once.
fn namespaces(targets: &Targets) -> Result<Vec<Namespace>, Missing> {
    let (Some(clients), Some(servers)) = (&targets.clients, &targets.servers) else {
        return Err(Missing::ProcessesHidden);
    };
    let mut namespaces = BTreeMap::new();
    let clients = clients.iter().map(|pid| (*pid, true));
    for (pid, is_client) in clients.chain(servers.iter().map(|pid| (*pid, false))) {
        let path = PathBuf::from(format!("/proc/{pid}/ns/net"));
        let about = fs::metadata(&path).map_err(|error| Missing::unreadable(path.display().to_string(), error))?;
        let namespace =
            namespaces.entry(about.ino()).or_insert_with(|| Namespace { path, has_client: false, servers: Vec::new() });
        if is_client {
            namespace.has_client = true;
        } else {
            namespace.servers.push(pid);
        }
    }
    Ok(namespaces.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_client_and_servers_share_is_watched_once() {
        let own = std::process::id();
        let targets = Targets { clients: Some(vec![own]), servers: Some(vec![own, own]), ..Targets::default() };
        let namespaces = namespaces(&targets).unwrap();
        assert_eq!(namespaces.len(), 1);
        assert!(namespaces[0].has_client);
        assert_eq!(namespaces[0].servers, [own, own]);
    }

    #[test]
    fn hidden_processes_give_a_reason() {
        let hidden = Targets { clients: Some(vec![1]), ..Targets::default() };
        assert_eq!(namespaces(&hidden).unwrap_err(), Missing::ProcessesHidden);
    }
}
