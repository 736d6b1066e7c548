//! A name that resolves to several addresses for one process and its descendants: an `/etc/hosts` of their own (hosts(5)), in
//! a mount namespace of their own. Nobody else sees it, and it goes with them.

use std::ffi::CString;
use std::fmt::Write;
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use wirelab_model::network::SERVER_NAME;

use crate::LabError;

/// What names resolve to.
#[derive(Debug)]
pub(crate) struct Names {
    /// The file that stands in for `/etc/hosts`.
    hosts: CString,
}

impl Names {
    /// Lets the name of the servers resolve to these addresses; `path` is the file to be written for it.
    pub(crate) fn write(path: &Path, servers: &[IpAddr]) -> Result<Self, LabError> {
        let wrong = |error: io::Error| LabError(format!("cannot give the servers a name: {}: {error}", path.display()));
        let path = std::path::absolute(path).map_err(wrong)?;
        let mut text = "127.0.0.1 localhost\n".to_owned();
        for server in servers {
            let _ = writeln!(text, "{server} {SERVER_NAME}");
        }
        std::fs::write(&path, text).map_err(wrong)?;
        let hosts = CString::new(path.as_os_str().as_bytes()).map_err(|error| wrong(error.into()))?;
        Ok(Self { hosts })
    }

    /// Lets them resolve so for the calling process. It makes three system calls and does not allocate.
    pub(crate) fn enter(&self) -> io::Result<()> {
        // SAFETY: only the mount namespace (and with it what the process shares of its working directory) changes; no memory
        // and no file descriptor is unshared.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        // What is mounted here is not to be seen anywhere else.
        mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
        Ok(mount_bind(&*self.hosts, c"/etc/hosts")?)
    }
}
