//! A host of another owner, without any traffic to one: a public address of a network that only the test is in.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::{Skip, skip};

/// An address for documentation (RFC 5737), which wirelab takes for a host of another owner.
pub const FOREIGN: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));

/// Moves this thread into a network of its own, whose only interface also has the address [`FOREIGN`]. Threads and
/// processes that this thread starts are in the same network. Records a skip and returns false if the kernel forbids
/// it.
#[track_caller]
pub fn enter_foreign_network() -> bool {
    // SAFETY: only the network namespace of this thread changes; no memory and no file descriptor is unshared.
    if let Err(error) = unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
        skip(Skip::NoNetworkNamespaces { why: error.to_string() });
        return false;
    }
    let address = format!("{FOREIGN}/32");
    for args in [&["link", "set", "lo", "up"][..], &["address", "add", &address, "dev", "lo"]] {
        let status = Command::new("ip").args(args).status().unwrap();
        assert!(status.success(), "ip {args:?}: {status}");
    }
    true
}
