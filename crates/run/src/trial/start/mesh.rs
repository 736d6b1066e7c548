//! The sidecars of a trial: one beside each server, and one beside the clients, which forwards each request to the
//! sidecar of the next server. Sidecars of later servers also run from the start, without traffic.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use wirelab_lab::{Arena, Beside, Launch, Role};
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Configured, Event};
use wirelab_model::plan::{Job, Trial};
use wirelab_model::protocol::Protocol;
use wirelab_model::reason::Attempt;
use wirelab_model::spec::SidecarSpec;

use crate::limits::Limits;
use crate::spec;
use crate::trial::context::TrialContext;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::membership::{Membership, write_addresses};
use crate::trial::names::server_name;
use crate::trial::verify;

/// Properties shared by the sidecars of a trial.
#[derive(Debug)]
pub(crate) struct Mesh {
    /// Port of the clients' sidecar, on the clients' host.
    pub port: u16,
    /// Effective configuration that sidecars report: that of the clients, and the merged one of the servers.
    pub of_clients: Configured,
    pub of_servers: Configured,
    /// Server list of the clients' sidecar.
    pub membership: Membership,
}

/// A sidecar to start.
struct SidecarLaunch<'a> {
    beside: Beside,
    number: u32,
    name: String,
    /// Protocol that it accepts, and protocol that it forwards with.
    protocols: [Protocol; 2],
    address: IpAddr,
    upstreams: &'a Path,
}

impl TrialContext<'_> {
    /// Starts the sidecars of a trial whose servers listen on these ports; server sidecars bind `hosts`. Also returns
    /// the handles: those of the servers in server order, then that of the clients.
    pub(crate) fn start_mesh(
        &self,
        arena: &mut dyn Arena,
        (trial, job): (&Trial, &Job),
        endpoint: &Endpoint,
        hosts: &[IpAddr],
        ports: &[u16],
        servers: &mut [EndpointHandle],
    ) -> Result<(Mesh, Vec<EndpointHandle>), TrialAbort> {
        let addresses = arena.addresses().clone();
        let (limits, stop) = (self.limits, self.stop);
        let mut handles = Vec::new();
        for (number, (host, port)) in (0..).zip(hosts.iter().zip(ports)) {
            let upstreams = self.files.folder.join(format!("upstreams{number}.json"));
            write_addresses(&upstreams, &[SocketAddr::new(addresses.servers[number as usize], *port)])?;
            let protocols = [sidecar_protocol(job.protocol), job.protocol];
            let (name, upstreams) = (of_server(number), &upstreams);
            let launch = SidecarLaunch { beside: Beside::Server, number, name, protocols, address: *host, upstreams };
            handles.push(self.start_sidecar(arena, (trial, job), endpoint, &launch)?);
        }
        let (mut places, mut of_servers) = (Vec::new(), Configured::new());
        for (handle, host) in handles.iter_mut().zip(hosts) {
            let (port, configured) = ready(handle, job, limits, servers, stop)?;
            places.push(SocketAddr::new(*host, port));
            of_servers.extend(configured);
        }
        let membership = Membership::create(self.files.folder.join("upstreams.json"), places, job.server_count())?;
        let launch = SidecarLaunch {
            beside: Beside::Clients,
            number: 0,
            name: of_clients(),
            protocols: [job.protocol, sidecar_protocol(job.protocol)],
            address: addresses.connect,
            upstreams: membership.file(),
        };
        let mut handle = self.start_sidecar(arena, (trial, job), endpoint, &launch)?;
        let (port, of_clients) = ready(&mut handle, job, limits, servers, stop)?;
        handles.push(handle);
        Ok((Mesh { port, of_clients, of_servers, membership }, handles))
    }

    fn start_sidecar(
        &self,
        arena: &mut dyn Arena,
        (trial, job): (&Trial, &Job),
        endpoint: &Endpoint,
        launch: &SidecarLaunch<'_>,
    ) -> Result<EndpointHandle, TrialAbort> {
        let SidecarLaunch { beside, number, name, protocols: [protocol, upstream_protocol], address, upstreams } =
            launch;
        let path = self.files.folder.join(format!("{name}.json"));
        let of_sidecar = SidecarSpec {
            contract: CONTRACT_VERSION,
            protocol: *protocol,
            upstream_protocol: *upstream_protocol,
            address: *address,
            port: 0,
            upstreams: upstreams.to_path_buf(),
            threads: None,
            transport: job.transport.clone(),
        };
        spec::write(&path, &of_sidecar)?;
        let log = self.folder.log(trial, &format!("{name}.log"));
        let role = Role::Sidecar(*beside);
        EndpointHandle::start(arena, job, &Launch { role, number: *number, endpoint, spec: &path, log: &log })
    }
}

/// File names of the sidecars' logs.
pub(crate) fn logs(job: &Job, servers: u32) -> impl Iterator<Item = String> {
    let count = if job.sidecar().is_some() { servers } else { 0 };
    let names = (0..count).map(of_server).chain(job.sidecar().is_some().then(of_clients));
    names.map(|name| format!("{name}.log"))
}

fn of_server(number: u32) -> String {
    format!("{}-sidecar", server_name(number))
}

fn of_clients() -> String {
    "client-sidecar".to_owned()
}

/// Protocol between sidecars: always HTTP/2.
const fn sidecar_protocol(protocol: Protocol) -> Protocol {
    match protocol {
        Protocol::Grpcc => Protocol::Grpcc,
        _ => Protocol::H2c,
    }
}

/// Waits until a sidecar is ready. Returns its port and effective configuration.
fn ready(
    handle: &mut EndpointHandle,
    job: &Job,
    limits: Limits,
    servers: &mut [EndpointHandle],
    stop: &AtomicBool,
) -> Result<(u16, Configured), TrialAbort> {
    let attempt = Attempt::Starting;
    match handle.wait(attempt, limits.startup, servers, stop)? {
        Event::Ready { port: Some(port), configured, .. } => {
            verify::in_force(handle.role(), &job.transport, &configured).map_err(TrialAbort::Outcome)?;
            Ok((port, configured))
        }
        Event::Ready { port: None, .. } => Err(handle.without_port()),
        other => Err(handle.unexpected(&other, attempt)),
    }
}
