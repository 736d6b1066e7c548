//! The arena of labs whose endpoints are processes on this machine, in the network that the machine has.

use std::sync::Arc;

use crate::guard::Guard;
use crate::process::{Home, LocalProcess};
use crate::{Addresses, Arena, Confinement, LabError, LabInfo, Launch, Process};

/// A trial on this machine.
pub(crate) struct LocalArena<'a> {
    pub info: &'static LabInfo,
    pub addresses: Addresses,
    pub guard: &'a Arc<Guard>,
    pub confinement: Confinement,
}

impl Arena for LocalArena<'_> {
    fn info(&self) -> &'static LabInfo {
        self.info
    }

    fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        let Launch { role, endpoint, spec, log, .. } = *launch;
        let home = Home { processors: self.confinement.kernel_set(role), ..Home::default() };
        let guard = Some(Arc::clone(self.guard));
        Ok(Box::new(LocalProcess::start_in(endpoint, role, spec, log, guard, Some(Arc::new(home)))?))
    }

    fn confinement(&self) -> Option<&Confinement> {
        Some(&self.confinement)
    }
}
