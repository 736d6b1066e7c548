//! Which server the next connection goes to, where the name of the servers has several addresses.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};

use wirelab_model::spec::ClientSpec;

/// How many connections took an address, of all threads of this process together.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The servers, taken in turn.
#[derive(Debug)]
pub struct Servers {
    known: Vec<SocketAddr>,
    /// The name and port to resolve again for each connection; absent: those that are known stay.
    name: Option<(String, u16)>,
}

impl Servers {
    /// The servers of a spec.
    #[must_use]
    pub fn new(spec: &ClientSpec) -> Self {
        let all = if spec.addresses.is_empty() { vec![spec.address] } else { spec.addresses.clone() };
        let known = all.into_iter().map(|address| SocketAddr::new(address, spec.port)).collect();
        Self { known, name: spec.resolves.then(|| (spec.server_name.clone(), spec.port)) }
    }

    /// The first one.
    #[must_use]
    pub fn first(&self) -> SocketAddr {
        self.known[0]
    }

    /// The one whose turn it is.
    #[must_use]
    pub fn next(&self) -> SocketAddr {
        match &self.found()[..] {
            [only] => *only,
            several => several[TAKEN.fetch_add(1, Ordering::Relaxed) % several.len()],
        }
    }

    /// What the name resolves to now; those that were known at the start where it cannot be resolved, or is not to be. The system's
    /// resolver blocks, for microseconds where it reads a file, as in the labs with such names.
    fn found(&self) -> Vec<SocketAddr> {
        let found = self.name.as_ref().and_then(|(name, port)| (name.as_str(), *port).to_socket_addrs().ok());
        let found: Vec<_> = found.into_iter().flatten().collect();
        if found.is_empty() { self.known.clone() } else { found }
    }
}
