//! Which server the next connection goes to, where the name of the servers has several addresses.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use wirelab_model::spec::ClientSpec;

/// How many connections took an address, of all threads of this process together.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The servers, taken in turn.
#[derive(Debug)]
pub struct Servers(Vec<SocketAddr>);

impl Servers {
    /// The servers of a spec.
    #[must_use]
    pub fn new(spec: &ClientSpec) -> Self {
        let all = if spec.addresses.is_empty() { vec![spec.address] } else { spec.addresses.clone() };
        Self(all.into_iter().map(|address| SocketAddr::new(address, spec.port)).collect())
    }

    /// The first one.
    #[must_use]
    pub fn first(&self) -> SocketAddr {
        self.0[0]
    }

    /// The one whose turn it is.
    #[must_use]
    pub fn next(&self) -> SocketAddr {
        match &self.0[..] {
            [only] => *only,
            several => several[TAKEN.fetch_add(1, Ordering::Relaxed) % several.len()],
        }
    }
}
