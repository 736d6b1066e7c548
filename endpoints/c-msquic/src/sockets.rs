//! The sockets that MsQuic opened, as the kernel sees them: MsQuic itself says nothing of their buffers.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, RawFd};

use socket2::{SockRef, Type};
use wirelab_endpoint::program::{Configured, udp_socket};

/// Adds the active settings of this process' UDP socket with this port, if it exists.
pub fn report(port: u16, configured: &mut Configured) {
    let descriptors = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    for descriptor in descriptors.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok()) {
        // SAFETY: the number is that of a file that was open a moment ago. If it was closed meanwhile, the call below
        // fails, or answers for another socket, which the port reveals. Nothing is changed and nothing closed.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        if is_udp(descriptor, port) {
            udp_socket::report(&descriptor, configured);
            configured.insert("gro".to_owned(), udp_socket::joins_on_receive(&descriptor).into());
            return;
        }
    }
}

fn is_udp(descriptor: BorrowedFd<'_>, port: u16) -> bool {
    let descriptor = descriptor.as_fd();
    let socket = SockRef::from(&descriptor);
    let bound = || socket.local_addr().ok()?.as_socket();
    socket.r#type().is_ok_and(|kind| kind == Type::DGRAM) && bound().is_some_and(|bound| bound.port() == port)
}
