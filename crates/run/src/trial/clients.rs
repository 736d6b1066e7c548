//! The clients of a trial.

use std::ops::{Deref, DerefMut};

use wirelab_lab::many;

use crate::trial::endpoint_handle::EndpointHandle;

/// The clients of a trial. Drop kills the running ones.
pub(crate) struct Clients(Vec<EndpointHandle>);

impl Clients {
    pub(crate) const fn new(handles: Vec<EndpointHandle>) -> Self {
        Self(handles)
    }
}

impl Deref for Clients {
    type Target = [EndpointHandle];

    fn deref(&self) -> &[EndpointHandle] {
        &self.0
    }
}

impl DerefMut for Clients {
    fn deref_mut(&mut self) -> &mut [EndpointHandle] {
        &mut self.0
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        many::drop_all(std::mem::take(&mut self.0));
    }
}
