//! Interfaces, addresses and neighbours, by netlink; offloads, by ioctl.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};

use rtnetlink::packet_route::neighbour::NeighbourState;
use rtnetlink::{Handle, LinkUnspec, LinkVeth};

use crate::netns::namespace::Namespace;

/// An end of a veth pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    /// The namespace that it is in.
    pub namespace: &'a Namespace,
    /// The interface's name.
    pub name: &'a str,
    /// Its hardware address.
    pub mac: [u8; 6],
}

/// The name of an end on its way to its namespace, where its own name may be taken.
const PASSING: &str = "passing";

/// Makes a veth pair between two namespaces, both ends down.
pub(crate) fn pair(near: End<'_>, far: End<'_>) -> io::Result<()> {
    let far_namespace = std::fs::File::open(far.namespace.path())?;
    near.namespace.within(|| {
        talk(async |handle| {
            let veth = LinkVeth::new(near.name, PASSING).address(near.mac.into()).build();
            handle.link().add(veth).execute().await?;
            let passing = LinkUnspec::new_with_name(PASSING).setns_by_fd(far_namespace.as_fd().as_raw_fd()).build();
            handle.link().set(passing).execute().await
        })
    })?;
    far.namespace.within(|| {
        let index = index(PASSING)?;
        talk(async |handle| {
            let named = LinkUnspec::new_with_index(index).name(far.name).address(far.mac.into()).build();
            handle.link().set(named).execute().await
        })
    })
}

/// Gives an interface an address in a network of 24 bits and an MTU, and brings it up.
pub(crate) fn bring_up(end: End<'_>, address: Option<Ipv4Addr>, mtu: u32) -> io::Result<()> {
    let index = end.namespace.within(|| index(end.name))?;
    end.namespace.within(|| {
        talk(async |handle| {
            handle.link().set(LinkUnspec::new_with_index(index).mtu(mtu).up().build()).execute().await?;
            match address {
                Some(address) => handle.address().add(index, IpAddr::V4(address), 24).execute().await,
                None => Ok(()),
            }
        })
    })
}

/// Changes the MTU of an interface.
pub(crate) fn set_mtu(namespace: &Namespace, name: &str, mtu: u32) -> io::Result<()> {
    namespace.within(|| {
        talk(async |handle| handle.link().set(LinkUnspec::new_with_name(name).mtu(mtu).build()).execute().await)
    })
}

/// Tells an interface who its neighbour is, once and for all: a question that an emulated link loses or delays would be
/// measured as if it were the protocol's.
pub(crate) fn introduce(end: End<'_>, address: Ipv4Addr, mac: [u8; 6]) -> io::Result<()> {
    let index = end.namespace.within(|| index(end.name))?;
    end.namespace.within(|| {
        talk(async |handle| {
            let neighbour = handle.neighbours().add(index, IpAddr::V4(address));
            neighbour.link_layer_address(&mac).state(NeighbourState::Permanent).execute().await
        })
    })
}

/// Brings the loopback interface of a namespace up.
pub(crate) fn loopback_up(namespace: &Namespace) -> io::Result<()> {
    namespace
        .within(|| talk(async |handle| handle.link().set(LinkUnspec::new_with_name("lo").up().build()).execute().await))
}

/// Makes the kernel finish packets before they reach the interface: with full checksums, none larger than the MTU. It does what
/// `ethtool -K NAME tx off` does, on which segmentation offload depends.
pub(crate) fn finish_packets(namespace: &Namespace, name: &str) -> io::Result<()> {
    namespace.within(|| {
        let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
        // linux/ethtool.h: struct ethtool_value, and the command that sets the transmission of checksums.
        #[repr(C)]
        struct EthtoolValue {
            cmd: u32,
            data: u32,
        }
        const ETHTOOL_STXCSUM: u32 = 0x17;
        let mut value = EthtoolValue { cmd: ETHTOOL_STXCSUM, data: 0 };
        // SAFETY: `ifreq` is plain data, for which all zeroes is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let characters = name.bytes().take(libc::IFNAMSIZ - 1);
        for (to, from) in request.ifr_name.iter_mut().zip(characters) {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the name is terminated, because its last byte is still zero; the data pointer is to a live value of the
        // type that the command asks for; both outlive the call.
        let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    })
}

/// The number of an interface in the namespace of this thread.
pub(crate) fn index(name: &str) -> io::Result<u32> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: the name is a live, terminated string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) }
}

/// Speaks netlink in the namespace of this thread.
fn talk<T>(work: impl AsyncFnOnce(Handle) -> Result<T, rtnetlink::Error>) -> io::Result<T> {
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
