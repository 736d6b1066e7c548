//! TCP connections as the kernel knows them: of every endpoint, whatever it is written in, because nobody asks it.
//!
//! The witness ([`crate::witness`]) asks in the network namespaces of client and servers. A server's connections are those at
//! ports where it listens. A client's are all others of its namespace; where it shares that with a server, as on loopback,
//! those to the server's ports.

mod metrics;
mod ports;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use wirelab_model::metric::Values;
use wirelab_model::transport::TransportReport;

pub use metrics::ABOUT;

use crate::tree::Pid;
use crate::window::{NO_WINDOW, Sides, values};
use crate::witness::{Answer, Order, Sought, Witness};
use crate::{About, Observer, Reaped, Stage, Targets, Window};

/// What was seen of each side.
type Seen = Sides<Result<TransportReport, String>>;

/// The observer.
#[derive(Debug)]
pub struct Tcp {
    witness: Witness,
    /// The user namespace that owns those of the network, where it is not wirelab's own.
    owner: Option<PathBuf>,
    /// While the witness looks.
    asked: Option<Result<Vec<Sought>, String>>,
    seen: Seen,
}

impl Default for Tcp {
    fn default() -> Self {
        Self { witness: Witness::default(), owner: None, asked: None, seen: nothing(NO_WINDOW) }
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
        self.asked = Some(self.look(targets));
    }

    fn end(&mut self, _: &Targets) {
        self.asked = self.asked.take().map(|asked| {
            let sought = asked?;
            self.witness.ask(&Order::EndConnections).map(|_| sought)
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

/// A network namespace, and whose processes are in it.
#[derive(Debug)]
struct Namespace {
    path: PathBuf,
    has_client: bool,
    servers: Vec<Pid>,
}

impl Tcp {
    /// Lets the witness look; gives what is to be sought in each namespace.
    fn look(&self, targets: &Targets) -> Result<Vec<Sought>, String> {
        let namespaces = namespaces(targets)?;
        let paths = namespaces.iter().map(|namespace| namespace.path.clone()).collect();
        let order = Order::WatchConnections { namespaces: paths, owner: self.owner.clone() };
        let Answer::Listening { listeners } = self.witness.ask(&order)? else {
            return Err("the process that looks at the network answers something else".to_owned());
        };
        let sought = |(namespace, listeners): (&Namespace, Vec<_>)| {
            let server_ports = ports::of(&namespace.servers, &listeners)?;
            Ok(Sought { server_ports, has_client: namespace.has_client })
        };
        namespaces.iter().zip(listeners).map(sought).collect()
    }

    /// Takes what was seen, once.
    fn collect(&mut self) {
        let Some(asked) = self.asked.take() else { return };
        let answer = asked.and_then(|sought| self.witness.ask(&Order::CollectConnections { sought }));
        self.seen = match answer {
            Ok(Answer::Connections { transports }) => {
                Sides { client: Ok(transports.client), server: Ok(transports.servers) }
            }
            Ok(other) => nothing(&format!("an answer to nothing: {other:?}")),
            Err(why) => nothing(&why),
        };
    }
}

fn nothing(why: &str) -> Seen {
    Sides { client: Err(why.to_owned()), server: Err(why.to_owned()) }
}

/// The namespaces of the processes that the lab shows, each once.
fn namespaces(targets: &Targets) -> Result<Vec<Namespace>, String> {
    let (Some(clients), Some(servers)) = (&targets.clients, &targets.servers) else {
        return Err("the lab does not show the processes, so their network is not known".to_owned());
    };
    let mut namespaces = BTreeMap::new();
    let clients = clients.iter().map(|pid| (*pid, true));
    for (pid, is_client) in clients.chain(servers.iter().map(|pid| (*pid, false))) {
        let path = PathBuf::from(format!("/proc/{pid}/ns/net"));
        let about = fs::metadata(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
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
    fn a_namespace_that_client_and_servers_share_is_looked_at_once() {
        let own = std::process::id();
        let targets = Targets { clients: Some(vec![own]), servers: Some(vec![own, own]), ..Targets::default() };
        let namespaces = namespaces(&targets).unwrap();
        assert_eq!(namespaces.len(), 1);
        assert!(namespaces[0].has_client);
        assert_eq!(namespaces[0].servers, [own, own]);
    }

    #[test]
    fn hidden_processes_are_a_reason() {
        let why = namespaces(&Targets { clients: Some(vec![1]), ..Targets::default() }).unwrap_err();
        assert!(why.contains("does not show the processes"), "{why}");
    }
}
