//! Selection of the server for a new connection, if the name has several addresses.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};

use wirelab_contract::spec::ClientSpec;
use wirelab_contract::via::Via;

/// Number of connections that took an address, over all threads of the process.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The servers, used in turn.
#[derive(Debug)]
pub struct Servers {
    known: Vec<SocketAddr>,
    /// Name and port to resolve again for each connection; absent: the addresses are fixed.
    name: Option<(String, u16)>,
}

impl Servers {
    /// The servers of a spec, or its proxy.
    #[must_use]
    pub fn new(spec: &ClientSpec) -> Self {
        let all = if spec.addresses.is_empty() { vec![spec.address] } else { spec.addresses.clone() };
        // A proxy has a port of its own.
        let port = match &spec.via {
            Some(Via::Proxy(proxy)) => proxy.port,
            Some(Via::UnixSocket(_)) | None => spec.port,
        };
        let known = all.into_iter().map(|address| SocketAddr::new(address, port)).collect();
        Self { known, name: spec.resolves.then(|| (spec.server_name.clone(), spec.port)) }
    }

    /// The first server.
    #[must_use]
    pub fn first(&self) -> SocketAddr {
        self.known[0]
    }

    /// The next server in turn.
    #[must_use]
    pub fn next(&self) -> SocketAddr {
        match &self.found()[..] {
            [only] => *only,
            several => several[TAKEN.fetch_add(1, Ordering::Relaxed) % several.len()],
        }
    }

    /// The current addresses of the name, or the initial ones if resolution fails or is off. The system's resolver
    /// blocks, for microseconds if it reads a file, as in labs with such names.
    fn found(&self) -> Vec<SocketAddr> {
        let found = self.name.as_ref().and_then(|(name, port)| (name.as_str(), *port).to_socket_addrs().ok());
        let found: Vec<_> = found.into_iter().flatten().collect();
        if found.is_empty() { self.known.clone() } else { found }
    }
}
