//! A fake lab whose trials a test observes and changes.

use std::net::IpAddr;

use wirelab_lab::{
    Addresses, Aftermath, Arena, Fake, Lab, LabError, LabInfo, Launch, Preparation, PreparedLab, Process,
};
use wirelab_model::plan::{Job, Trial};

/// A test's changes of the trials in the fake lab. The defaults change nothing.
pub trait Changes: Send {
    /// Called before an endpoint starts.
    fn starts(&mut self, _launch: &Launch<'_>) {}

    /// Addresses of the trial.
    fn addresses(&self, addresses: Addresses) -> Addresses {
        addresses
    }

    /// As [`Arena::sidecars`].
    fn sidecars(&self, sidecars: Vec<IpAddr>) -> Result<Vec<IpAddr>, LabError> {
        Ok(sidecars)
    }

    /// As [`Arena::control_plane`].
    fn control_plane(&self, address: IpAddr) -> Result<IpAddr, LabError> {
        Ok(address)
    }

    /// As [`Arena::publish`].
    fn publish(&mut self, ports: &[u16]) -> Result<u16, LabError> {
        Ok(ports[0])
    }

    /// As [`Arena::reach`].
    fn reach(&mut self, _servers: &[(u32, u16)]) -> Result<(), LabError> {
        Ok(())
    }

    /// As [`Arena::is_reached`].
    fn is_reached(&mut self) -> Result<bool, LabError> {
        Ok(true)
    }

    /// Called at the end of the window.
    fn window_ends(&mut self) {}
}

/// The fake lab with changes.
pub struct Changed<C> {
    pub fake: Fake,
    pub changes: C,
}

impl<C: Changes> Lab for Changed<C> {
    fn info(&self) -> &'static LabInfo {
        self.fake.info()
    }

    fn prepare<'a>(&'a mut self, preparation: &Preparation<'_>) -> Result<Box<dyn PreparedLab + 'a>, LabError> {
        Ok(Box::new(Prepared { fake: self.fake.prepare(preparation)?, changes: &mut self.changes }))
    }
}

struct Prepared<'a, C> {
    fake: Box<dyn PreparedLab + 'a>,
    changes: &'a mut C,
}

impl<C: Changes> PreparedLab for Prepared<'_, C> {
    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        self.fake.addresses(job)
    }

    fn open<'a>(&'a mut self, trial: &Trial, job: &'a Job) -> Result<Box<dyn Arena + 'a>, LabError> {
        let fake = self.fake.open(trial, job)?;
        let addresses = self.changes.addresses(fake.addresses().clone());
        Ok(Box::new(ChangedArena { fake, addresses, changes: &mut *self.changes }))
    }
}

struct ChangedArena<'a, C> {
    fake: Box<dyn Arena + 'a>,
    addresses: Addresses,
    changes: &'a mut C,
}

impl<C: Changes> Arena for ChangedArena<'_, C> {
    fn info(&self) -> &'static LabInfo {
        self.fake.info()
    }

    fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    fn sidecars(&self) -> Result<Vec<IpAddr>, LabError> {
        self.changes.sidecars(self.fake.sidecars()?)
    }

    fn control_plane(&self) -> Result<IpAddr, LabError> {
        self.changes.control_plane(self.fake.control_plane()?)
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        self.changes.starts(launch);
        self.fake.start(launch)
    }

    fn publish(&mut self, ports: &[u16]) -> Result<u16, LabError> {
        self.changes.publish(ports)
    }

    fn reach(&mut self, servers: &[(u32, u16)]) -> Result<(), LabError> {
        self.changes.reach(servers)
    }

    fn is_reached(&mut self) -> Result<bool, LabError> {
        self.changes.is_reached()
    }

    fn has_clock(&self) -> bool {
        self.fake.has_clock()
    }

    fn end_window(&mut self, cell: &str) -> Result<Aftermath, LabError> {
        self.changes.window_ends();
        self.fake.end_window(cell)
    }
}
