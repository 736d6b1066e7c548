//! A connection of quiche, shared between the loop that drives it and the reader of its statistics.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quiche::Connection;
use wirelab_endpoint::program::{Meter, Reading};
use wirelab_quiche::reading;

/// A connection. Nothing else wants its lock while requests go on.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Connection>>);

impl Shared {
    /// A connection to share.
    pub fn new(connection: Connection) -> Self {
        Self(Arc::new(Mutex::new(connection)))
    }

    /// The connection, locked.
    pub fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Meter for Shared {
    fn read(&self) -> Reading {
        reading(&self.lock())
    }
}
