//! Configures network interfaces, addresses and neighbours by netlink, and offloads by ioctl.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rtnetlink::packet_route::neighbour::{NeighbourFlags, NeighbourState};
use rtnetlink::packet_route::route::RouteScope;
use rtnetlink::{Handle, LinkUnspec, LinkVeth, LinkVxlan, RouteMessageBuilder};
use wirelab_model::plan::Job;

use crate::netns::namespace::Namespace;

/// One end of a veth pair or tunnel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    /// Namespace of the end.
    pub namespace: &'a Namespace,
    /// Interface name.
    pub name: &'a str,
    /// Hardware address.
    pub mac: [u8; 6],
}

/// Temporary name of an end on its way to its namespace, where its final name may be taken.
const PASSING: &str = "passing";

/// Creates a veth pair between two namespaces, with both ends down.
pub(crate) fn pair(near: End<'_>, far: End<'_>) -> io::Result<()> {
    let far_namespace = std::fs::File::open(far.namespace.path())?;
    near.namespace.within(|| {
        netlink(async |handle| {
            let veth = LinkVeth::new(near.name, PASSING).address(near.mac.into()).build();
            handle.link().add(veth).execute().await?;
            let passing = LinkUnspec::new_with_name(PASSING).setns_by_fd(far_namespace.as_fd().as_raw_fd()).build();
            handle.link().set(passing).execute().await
        })
    })?;
    far.namespace.within(|| {
        let index = index(PASSING)?;
        netlink(async |handle| {
            let named = LinkUnspec::new_with_index(index).name(far.name).address(far.mac.into()).build();
            handle.link().set(named).execute().await
        })
    })
}

/// Creates a VXLAN device for IPv4 without address learning, and brings it up.
pub(crate) fn tunnel(end: End<'_>, identifier: u32, port: u16) -> io::Result<()> {
    let done = end.namespace.within(|| {
        netlink(async |handle| {
            let device = LinkVxlan::new(end.name, identifier).port(port).learning(false);
            handle.link().add(device.address(end.mac.into()).up().build()).execute().await
        })
    });
    done.map_err(attempt("making the tunnel", end.name))
}

/// Adds a forwarding entry to a VXLAN device: the outer address for an inner hardware address.
pub(crate) fn add_tunnel_entry(namespace: &Namespace, name: &str, mac: [u8; 6], through: Ipv4Addr) -> io::Result<()> {
    let done = namespace.within(|| {
        let index = index(name)?;
        netlink(async |handle| {
            let entry = handle.neighbours().add_bridge(index, &mac).destination(IpAddr::V4(through));
            entry.flags(NeighbourFlags::Own).replace().execute().await
        })
    });
    done.map_err(attempt("adding an entry to the tunnel", name))
}

/// Brings an interface up.
pub(crate) fn bring_up(namespace: &Namespace, name: &str) -> io::Result<()> {
    let done = namespace.within(|| {
        netlink(async |handle| handle.link().set(LinkUnspec::new_with_name(name).up().build()).execute().await)
    });
    done.map_err(attempt("bringing up", name))
}

/// Adds an address to an interface, in a network with a prefix of `bits` bits.
pub(crate) fn assign(namespace: &Namespace, name: &str, address: Ipv4Addr, bits: u8) -> io::Result<()> {
    let done = namespace.within(|| {
        let index = index(name)?;
        netlink(async |handle| handle.address().add(index, IpAddr::V4(address), bits).execute().await)
    });
    done.map_err(attempt("giving an address to", name))
}

/// Adds a route for a network with a prefix of `bits` bits through an interface: by the gateway `neighbour`, or
/// directly.
pub(crate) fn route(
    namespace: &Namespace,
    (network, bits): (Ipv4Addr, u8),
    name: &str,
    neighbour: Option<Ipv4Addr>,
) -> io::Result<()> {
    let done = namespace.within(|| {
        let index = index(name)?;
        netlink(async |handle| {
            let route =
                RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(network, bits).output_interface(index);
            let route = match neighbour {
                Some(neighbour) => route.gateway(neighbour).onlink(),
                None => route.scope(RouteScope::Link),
            };
            handle.route().add(route.build()).execute().await
        })
    });
    done.map_err(attempt("routing through", name))
}

/// Sets the MTU of an interface.
pub(crate) fn set_mtu(namespace: &Namespace, name: &str, mtu: u32) -> io::Result<()> {
    let done = namespace.within(|| {
        netlink(async |handle| handle.link().set(LinkUnspec::new_with_name(name).mtu(mtu).build()).execute().await)
    });
    done.map_err(attempt("setting the MTU of", name))
}

/// Adds a permanent neighbour entry to an interface. Without it, a lost or delayed ARP request would be measured as
/// part of the protocol.
pub(crate) fn add_neighbour(namespace: &Namespace, name: &str, address: Ipv4Addr, mac: [u8; 6]) -> io::Result<()> {
    let done = namespace.within(|| {
        let index = index(name)?;
        netlink(async |handle| {
            let neighbour = handle.neighbours().add(index, IpAddr::V4(address));
            neighbour.link_layer_address(&mac).state(NeighbourState::Permanent).execute().await
        })
    });
    done.map_err(attempt("adding a neighbour to", name))
}

/// Offloads of an interface (ethtool(8), `-k`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offloads {
    /// Transmit checksums and TCP segmentation: the interface gets packets without checksums and larger than the MTU.
    finishing: bool,
    /// GSO: the kernel segments packets just before the interface instead of at the sender.
    cutting_late: bool,
    /// GRO: received packets are merged.
    merging: bool,
}

impl Offloads {
    /// Packets reach the interface complete: with checksums, none larger than the MTU.
    pub(crate) const FINISHED: Self = Self { finishing: false, cutting_late: true, merging: false };

    /// Offloads of a job's hosts.
    pub(crate) const fn of(job: &Job) -> Self {
        match job.topology.offloads {
            // The kernel's defaults for veth.
            None => Self { finishing: true, cutting_late: true, merging: false },
            Some(on) => Self { finishing: on, cutting_late: on, merging: on },
        }
    }
}

/// Sets the offloads of an interface. Hardware segmentation depends on checksums and has the same value.
pub(crate) fn offload(namespace: &Namespace, name: &str, offloads: Offloads) -> io::Result<()> {
    // linux/ethtool.h
    const ETHTOOL_STXCSUM: u32 = 0x17;
    const ETHTOOL_STSO: u32 = 0x1f;
    const ETHTOOL_SGSO: u32 = 0x24;
    const ETHTOOL_SGRO: u32 = 0x2c;
    let Offloads { finishing, cutting_late, merging } = offloads;
    let done = namespace.within(|| {
        let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
        let [checksums, tso] = [ETHTOOL_STXCSUM, ETHTOOL_STSO].map(|cmd| (cmd, finishing));
        let order = [checksums, tso, (ETHTOOL_SGSO, cutting_late), (ETHTOOL_SGRO, merging)];
        order.into_iter().try_for_each(|(cmd, on)| ethtool(&socket, name, cmd, on))
    });
    done.map_err(attempt("setting the offloads of", name))
}

/// Switches a feature on or off, as ethtool(8) does.
fn ethtool(socket: &OwnedFd, name: &str, cmd: u32, on: bool) -> io::Result<()> {
    // linux/ethtool.h: struct ethtool_value.
    #[repr(C)]
    struct EthtoolValue {
        cmd: u32,
        data: u32,
    }
    let mut value = EthtoolValue { cmd, data: u32::from(on) };
    // SAFETY: `ifreq` is plain data, for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let characters = name.bytes().take(libc::IFNAMSIZ - 1);
    for (to, from) in request.ifr_name.iter_mut().zip(characters) {
        // `c_char` is signed on x86-64 and unsigned on arm64.
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the name is terminated, because its last byte is still zero; the data pointer is to a live value of the
    // type that the command asks for; both outlive the call.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Adds the attempt and the interface to an error.
fn attempt(what: &str, name: &str) -> impl FnOnce(io::Error) -> io::Error {
    let what = format!("{what} {name}");
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Index of an interface in the namespace of this thread.
pub(crate) fn index(name: &str) -> io::Result<u32> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: the name is a live, terminated string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) }
}

/// Runs netlink requests in the namespace of this thread.
fn netlink<T>(work: impl AsyncFnOnce(Handle) -> Result<T, rtnetlink::Error>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        let connection = tokio::spawn(connection);
        let result = work(handle).await.map_err(|error| match error {
            rtnetlink::Error::NetlinkError(message) => message.to_io(),
            other => io::Error::other(other.to_string()),
        });
        connection.abort();
        result
    })
}
