//! The lab `internet`: the client on this machine, and remote servers that wirelab does not start.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use wirelab_model::plan::{Job, OwnServers, Target, Trial};
use wirelab_model::settings::Settings;
use wirelab_model::site::Site;
use wirelab_model::via::unfit_for_socket;

use crate::congestion;
use crate::guard::Guard;
use crate::local::LocalArena;
use crate::loopback::no_timeline;
use crate::{Addresses, Arena, Confinement, Lab, LabError, LabInfo, Preparation, PreparedLab};

/// Static facts for `wirelab labs`.
pub static INFO: LabInfo = LabInfo {
    name: "internet",
    summary: "The client on this machine, servers that are not started here: the pages that `site` names, by their URLs.",
    needs: None,
    starts_endpoints: true,
    defaults: Settings::default,
    permits: congestion::is_permitted,
    supports: |job| site(job).map(drop),
    open: |opening| Ok(Box::new(Internet::start(opening.program)?)),
};

/// A client on this machine with remote servers.
#[derive(Debug)]
pub struct Internet {
    guard: Arc<Guard>,
    /// Address of each host, looked up once, so that every trial uses the same server.
    found: Mutex<HashMap<String, IpAddr>>,
}

impl Internet {
    /// Opens the lab. `program` is wirelab's executable; `program guard` must run [`crate::guard::main`].
    ///
    /// # Errors
    /// If the guard cannot be started.
    pub fn start(program: &Path) -> Result<Self, LabError> {
        let guard = Arc::new(Guard::start(program)?);
        guard.share();
        Ok(Self { guard, found: Mutex::default() })
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        Ok(Addresses { servers: Vec::new(), connect: self.address(site(job)?)? })
    }

    /// The address that the client connects to: that of the server or of its proxy.
    fn address(&self, site: &Site) -> Result<IpAddr, LabError> {
        if let Some(path) = &site.unix_socket {
            check_socket(path)?;
            return Ok(Ipv4Addr::LOCALHOST.into());
        }
        let literal = site.address.or_else(|| site.host.parse().ok());
        match (&site.proxy, literal) {
            (None, Some(address)) => Ok(address),
            (None, None) => self.look_up(&site.host, site.port, "set `site_address` to its address"),
            (Some(proxy), literal) => {
                if literal.is_none() && !site.is_looked_up_by_proxy() {
                    let remedy = "set `site_address` to its address, or have the proxy look it up (socks5h://)";
                    self.look_up(&site.host, site.port, remedy)?;
                }
                match proxy.host.parse() {
                    Ok(address) => Ok(address),
                    Err(_) => self.look_up(&proxy.host, proxy.port, "write its address in `site_proxy`"),
                }
            }
        }
    }

    /// The address of a host, the same in all trials.
    fn look_up(&self, host: &str, port: u16, remedy: &str) -> Result<IpAddr, LabError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = found.get(host) {
            return Ok(*address);
        }
        let address = look_up(host, port, remedy)?;
        found.insert(host.to_owned(), address);
        Ok(address)
    }
}

/// Checks that a path can be that of a server's Unix socket.
fn check_socket(path: &Path) -> Result<(), LabError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Some(why) = unfit_for_socket(&absolute) {
        return Err(LabError::unsupported(format!("`site_unix_socket` is {why}")));
    }
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(file) if file.file_type().is_socket() => Ok(()),
        Ok(_) => Err(LabError::unsupported(format!("`site_unix_socket` ({shown}) is a file of another kind"))
            .remedy("give the path at which your server listens")),
        Err(error) => Err(LabError::unsupported(format!("cannot use the Unix socket {shown} (`site_unix_socket`)"))
            .because(error)
            .remedy("start your server first; a relative path begins in the directory where wirelab starts")),
    }
}

fn look_up(host: &str, port: u16, remedy: &str) -> Result<IpAddr, LabError> {
    let found = (host, port).to_socket_addrs().map_err(|error| {
        LabError::network(format!("cannot find the address of `{host}`")).because(error).remedy(remedy)
    })?;
    // IPv4 first: a name such as localhost often has an IPv6 address on which the server does not listen.
    let mut addresses: Vec<_> = found.map(|socket| socket.ip()).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.first().copied().ok_or_else(|| LabError::unsupported(format!("`{host}` has no address")).remedy(remedy))
}

fn site(job: &Job) -> Result<&Site, LabError> {
    no_timeline(INFO.name, job)?;
    job.site().ok_or_else(|| {
        LabError::unsupported(format!("the lab `{}` starts no servers", INFO.name))
            .remedy("set `site` to a URL, or use another lab")
    })
}

impl Lab for Internet {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn check(&self, job: &Job) -> Result<(), LabError> {
        self.addresses(job)?;
        Confinement::choose(&job.topology.cpus).map(drop)
    }

    fn prepare<'a>(&'a mut self, _: &Preparation<'_>) -> Result<Box<dyn PreparedLab + 'a>, LabError> {
        Ok(Box::new(Prepared(self)))
    }
}

/// The lab during a session, which needs no preparation.
struct Prepared<'a>(&'a Internet);

impl PreparedLab for Prepared<'_> {
    fn check_helpers(&self) -> Result<(), LabError> {
        self.0.guard.check()
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        self.0.addresses(job)
    }

    fn open<'a>(&'a mut self, _: &Trial, job: &'a Job) -> Result<Box<dyn Arena + 'a>, LabError> {
        let confinement = Confinement::choose(&job.topology.cpus)?;
        Ok(Box::new(LocalArena { info: &INFO, addresses: self.0.addresses(job)?, guard: &self.0.guard, confinement }))
    }
}

/// Rejects node labels in a lab without labelled nodes.
///
/// # Errors
/// If the job has node labels.
pub fn no_labels(lab: &str, job: &Job) -> Result<(), LabError> {
    let of_servers = job.servers().and_then(|servers| servers.nodes.as_ref());
    let set = [("client_nodes", job.topology.client_nodes.as_ref()), ("server_nodes", of_servers)];
    match set.into_iter().find_map(|(key, labels)| Some((key, labels?))) {
        None => Ok(()),
        Some((key, labels)) => {
            Err(LabError::unsupported(format!("`{key}` is `{labels}`, but the lab `{lab}` has no nodes with labels"))
                .remedy("leave it out, or use the lab `kubernetes`"))
        }
    }
}

/// The servers that a lab starts, in a lab that cannot reach a remote site, or would not measure it.
///
/// # Errors
/// If the job has a remote site.
pub fn own_servers<'a>(lab: &str, job: &'a Job) -> Result<&'a OwnServers, LabError> {
    match &job.target {
        Target::Servers(servers) => Ok(servers),
        Target::Site(Site { url, .. }) => {
            Err(LabError::unsupported(format!("{url} is not reachable in the lab `{lab}`"))
                .remedy(format!("use `--lab {}`", INFO.name)))
        }
    }
}
