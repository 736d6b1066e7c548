//! Waits for file descriptors with a deadline.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until a descriptor is readable or closed; returns one flag per descriptor. All false: the deadline passed.
///
/// # Errors
/// If the kernel refuses to wait, for example because it is out of memory.
pub fn readable<const N: usize>(descriptors: [Option<BorrowedFd<'_>>; N], deadline: Instant) -> io::Result<[bool; N]> {
    loop {
        let mut polled: Vec<_> =
            descriptors.iter().flatten().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 });
        match poll(&mut polled, Some(&timeout)) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                let mut answers = polled.iter().map(|polled| !polled.revents().is_empty());
                return Ok(descriptors.map(|descriptor| descriptor.is_some() && answers.next() == Some(true)));
            }
        }
    }
}
