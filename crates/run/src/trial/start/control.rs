//! The control plane of a trial: clients get the list of servers from it, and connect to them directly.

use std::net::{IpAddr, SocketAddr};

use wirelab_lab::{Arena, Launch, Role};
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Configured, Event};
use wirelab_model::network::SERVER_NAME;
use wirelab_model::plan::{Job, Trial};
use wirelab_model::reason::Attempt;
use wirelab_model::spec::ControlPlaneSpec;

use crate::spec;
use crate::trial::context::TrialContext;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::membership::Membership;

/// File name of its log.
pub(crate) const LOG: &str = "control-plane.log";

/// A control plane that is ready.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    /// Address that clients connect to.
    pub place: SocketAddr,
    /// Effective configuration that it reports.
    pub configured: Configured,
    /// The server list that it reads.
    pub membership: Membership,
}

impl TrialContext<'_> {
    /// Starts the control plane on `address`, for a trial whose servers listen at `places`. Returns it with its
    /// handle.
    pub(crate) fn start_control_plane(
        &self,
        arena: &mut dyn Arena,
        (trial, job): (&Trial, &Job),
        endpoint: &Endpoint,
        address: IpAddr,
        places: Vec<SocketAddr>,
        servers: &mut [EndpointHandle],
    ) -> Result<(ControlPlane, EndpointHandle), TrialAbort> {
        let folder = &self.files.folder;
        let membership = Membership::create(folder.join("members.json"), places, job.server_count())?;
        let path = folder.join("control-plane.json");
        let of_control_plane = ControlPlaneSpec {
            contract: CONTRACT_VERSION,
            protocol: job.protocol,
            address,
            port: 0,
            server_name: SERVER_NAME.to_owned(),
            members: membership.file().to_owned(),
        };
        spec::write(&path, &of_control_plane)?;
        let log = self.folder.log(trial, LOG);
        let launch = Launch { role: Role::ControlPlane, number: 0, endpoint, spec: &path, log: &log };
        let mut handle = EndpointHandle::start(arena, job, &launch)?;
        let attempt = Attempt::Starting;
        match handle.wait(attempt, self.limits.startup, servers, self.stop)? {
            Event::Ready { port: Some(port), configured, .. } => {
                let place = SocketAddr::new(address, port);
                Ok((ControlPlane { place, configured, membership }, handle))
            }
            Event::Ready { port: None, .. } => Err(handle.without_port()),
            other => Err(handle.unexpected(&other, attempt)),
        }
    }
}
