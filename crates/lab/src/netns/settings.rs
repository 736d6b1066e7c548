//! Kernel settings of a host's network namespace.

use std::io;

use wirelab_model::plan::Job;

use crate::netns::interface;
use crate::netns::namespace::Namespace;

/// Settings that differ from the kernel's defaults, with the reason.
const SYSCTLS: [(&str, &str); 4] = [
    // A trial must not reuse path metrics of an earlier one (tcp_metrics).
    ("net/ipv4/tcp_no_metrics_save", "1"),
    // Enabled for clients and servers; each socket still has to request it.
    ("net/ipv4/tcp_fastopen", "3"),
    // Only the endpoints' packets on the link: no router solicitations, no multicast reports.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
];

/// Settings for a node that forwards packets between its pods and the other node.
const ROUTING: [(&str, &str); 2] = [
    ("net/ipv4/ip_forward", "1"),
    // Replies may arrive from another interface than the route's (through the tunnel, for a service).
    ("net/ipv4/conf/all/rp_filter", "0"),
];

/// Settings for hosts whose URLs have no port: unprivileged processes may listen on 443.
const EVERY_PORT: [(&str, &str); 1] = [("net/ipv4/ip_unprivileged_port_start", "0")];

/// Applies the settings of a host, and brings up its loopback interface.
pub(crate) fn apply(host: &Namespace) -> io::Result<()> {
    interface::bring_up(host, "lo")?;
    set(host, &SYSCTLS)
}

/// Enables forwarding on a host.
pub(crate) fn route(node: &Namespace) -> io::Result<()> {
    set(node, &ROUTING)
}

/// Permits every process on a host to listen on any port.
pub(crate) fn open_ports(host: &Namespace) -> io::Result<()> {
    set(host, &EVERY_PORT)
}

/// Applies a job's congestion control to the hosts of its endpoints, for libraries that cannot set it by socket.
pub(crate) fn adapt(host: &Namespace, job: &Job) -> io::Result<()> {
    let Some(congestion) = job.transport.congestion else { return Ok(()) };
    match set(host, &[("net/ipv4/tcp_congestion_control", congestion.token())]) {
        // The machine may forbid it as a namespace default (net.ipv4.tcp_allowed_congestion_control). Endpoints then
        // request it by socket, and report what they got.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        done => done,
    }
}

fn set(host: &Namespace, settings: &[(&str, &str)]) -> io::Result<()> {
    host.within(|| {
        for (name, value) in settings {
            match std::fs::write(format!("/proc/sys/{name}"), value) {
                // A kernel without IPv6 sends no IPv6 packets either.
                Err(error) if error.kind() == io::ErrorKind::NotFound && name.contains("ipv6") => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("sysctl {name}={value}: {error}"))),
                Ok(()) => {}
            }
        }
        Ok(())
    })
}
