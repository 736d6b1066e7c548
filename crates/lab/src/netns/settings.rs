//! The kernel's settings of a host's network namespace.

use std::io;

use wirelab_model::plan::Job;

use crate::netns::interface;
use crate::netns::namespace::Namespace;

/// What differs from the kernel's defaults, and why.
const SYSCTLS: [(&str, &str); 4] = [
    // A trial must not know the path from an earlier one (tcp_metrics).
    ("net/ipv4/tcp_no_metrics_save", "1"),
    // For clients and servers; each socket still has to ask for it.
    ("net/ipv4/tcp_fastopen", "3"),
    // Nothing but the endpoints' packets on the link: no router solicitations, no multicast reports.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
];

/// What a node needs besides to pass packets on between its pods and the other node.
const ROUTING: [(&str, &str); 2] = [
    ("net/ipv4/ip_forward", "1"),
    // Answers may come from where the node would not send to (through the tunnel, for a service).
    ("net/ipv4/conf/all/rp_filter", "0"),
];

/// What hosts need whose URLs name no port: whoever lives there may listen at 443.
const EVERY_PORT: [(&str, &str); 1] = [("net/ipv4/ip_unprivileged_port_start", "0")];

/// Applies the settings of a host, and brings the loopback interface up.
pub(crate) fn apply(host: &Namespace) -> io::Result<()> {
    interface::bring_up(host, "lo")?;
    set(host, &SYSCTLS)
}

/// Makes a host pass packets on.
pub(crate) fn route(node: &Namespace) -> io::Result<()> {
    set(node, &ROUTING)
}

/// Lets everybody on a host listen at every port.
pub(crate) fn open_ports(host: &Namespace) -> io::Result<()> {
    set(host, &EVERY_PORT)
}

/// What a trial wants of the hosts of its endpoints: the congestion control that its sockets have, so that those libraries
/// have it too that cannot ask for it.
pub(crate) fn adapt(host: &Namespace, job: &Job) -> io::Result<()> {
    let Some(congestion) = job.transport.congestion else { return Ok(()) };
    match set(host, &[("net/ipv4/tcp_congestion_control", congestion.token())]) {
        // The machine does not let namespaces have it as their default (net.ipv4.tcp_allowed_congestion_control). Endpoints ask
        // for it by socket, and say what they got.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        done => done,
    }
}

fn set(host: &Namespace, settings: &[(&str, &str)]) -> io::Result<()> {
    host.within(|| {
        for (name, value) in settings {
            match std::fs::write(format!("/proc/sys/{name}"), value) {
                // A kernel without IPv6 sends nothing of it either.
                Err(error) if error.kind() == io::ErrorKind::NotFound && name.contains("ipv6") => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("sysctl {name}={value}: {error}"))),
                Ok(()) => {}
            }
        }
        Ok(())
    })
}
