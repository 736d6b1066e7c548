//! Unnamed network namespaces. Each exists only while a process or file descriptor holds it, and its interfaces end
//! with it. So none outlives wirelab, and runs cannot interfere.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace(OwnedFd);

impl Namespace {
    /// Creates a namespace whose only interface is a loopback that is down.
    pub(crate) fn create() -> io::Result<Self> {
        // Uses a separate thread, because the thread stays in the namespace.
        on_thread(|| {
            // SAFETY: only the network namespace of this thread changes; no memory and no file descriptor is unshared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            Ok(Self(File::open("/proc/thread-self/ns/net")?.into()))
        })?
    }

    /// Runs `work` in the namespace. Sockets stay in the namespace in which they were created.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_thread(|| {
            enter(self.0.as_fd())?;
            work()
        })?
    }

    /// Path by which other processes of this user can open it while this process lives.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// Moves the calling thread into a network namespace. Makes one system call and allocates nothing.
pub(crate) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
