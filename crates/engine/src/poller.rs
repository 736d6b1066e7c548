//! The reactor: epoll (epoll(7)), edge-triggered, and an alarm.
//!
//! A socket is registered once, for reading and writing. An edge is reported once, so a reader reads until a short read
//! or until the kernel has nothing more; after `ended` only the latter is enough, because the end of the stream was
//! part of the same edge.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Number of events per wait.
const BATCH: usize = 256;

/// The events that the poller reports of a socket.
const WANTED: i32 = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;

/// The token of the alarm.
const ALARM: u64 = u64::MAX;

/// The events of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The token of the socket.
    pub token: u64,
    /// The socket may be readable.
    pub readable: bool,
    /// The socket may be writable.
    pub writable: bool,
    /// The peer ended its stream, or the connection failed.
    pub ended: bool,
}

/// An epoll instance with an alarm.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    alarm: OwnedFd,
    armed: Option<Instant>,
    events: Vec<libc::epoll_event>,
    /// Whether the kernel has `epoll_pwait2`.
    has_wait: bool,
}

impl Poller {
    /// Creates an instance without sockets.
    ///
    /// # Errors
    ///
    /// Those of the kernel, for example if no descriptor is left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the results are checked, and the descriptors are owned by nothing else.
        let (epoll, alarm) = unsafe {
            let epoll = owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
            let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
            (epoll, owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?)
        };
        // SAFETY: the option takes a number. It shortens the kernel's tolerance of this thread's waits from 50 us.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let poller = Self { epoll, alarm, armed: None, events: Vec::with_capacity(BATCH), has_wait: true };
        poller.register(poller.alarm.as_raw_fd(), ALARM, libc::EPOLLIN)?;
        Ok(poller)
    }

    /// Watches a socket, until it is closed.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn add(&self, socket: &impl AsRawFd, token: u64) -> io::Result<()> {
        self.register(socket.as_raw_fd(), token, WANTED)
    }

    /// Watches a listening socket that several threads share: a connection wakes one waiting thread, and is reported
    /// until a thread accepts it.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn listen(&self, socket: &impl AsRawFd, token: u64) -> io::Result<()> {
        self.register(socket.as_raw_fd(), token, libc::EPOLLIN | libc::EPOLLEXCLUSIVE)
    }

    /// Watches a socket that is watched already under another token. What is ready is reported again.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn rename(&self, socket: &impl AsRawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket.as_raw_fd(), token, WANTED)
    }

    fn register(&self, socket: RawFd, token: u64, wanted: i32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, token, wanted)
    }

    fn control(&self, operation: i32, socket: RawFd, token: u64, wanted: i32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: wanted as u32, u64: token };
        // SAFETY: `event` lives through the call, which copies it.
        let status = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, socket, &raw mut event) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Ensures that a wait ends at `at` or earlier. Almost free if the alarm is set for an earlier time already.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn wake_at(&mut self, at: Instant) -> io::Result<()> {
        if self.armed.is_some_and(|armed| armed <= at) {
            return Ok(());
        }
        // A value of zero would disarm it.
        let length = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let setting =
            libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: timespec(length) };
        // SAFETY: `setting` lives through the call, and the kernel accepts a null pointer for the old value.
        let status =
            unsafe { libc::timerfd_settime(self.alarm.as_raw_fd(), 0, &raw const setting, std::ptr::null_mut()) };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        self.armed = Some(at);
        Ok(())
    }

    /// Waits for events, at most for `limit`. Returns whether the alarm went off.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<bool> {
        let limit = limit.map(timespec);
        let limit = limit.as_ref().map_or(std::ptr::null(), |limit| limit as *const libc::timespec);
        self.events.clear();
        let count = match self.take(limit) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(error),
        };
        // SAFETY: the kernel initialised the first `count` events.
        unsafe { self.events.set_len(count) };
        let Some(place) = self.events.iter().position(|event| event.u64 == ALARM) else { return Ok(false) };
        self.events.swap_remove(place);
        self.armed = None;
        let mut expirations = 0_u64;
        // SAFETY: the buffer is a live `u64`, and its exact size is passed. An error means that it did not expire.
        unsafe { libc::read(self.alarm.as_raw_fd(), (&raw mut expirations).cast(), size_of::<u64>()) };
        Ok(true)
    }

    /// Waits, and has the kernel write events to the empty vector. Returns how many.
    fn take(&mut self, limit: *const libc::timespec) -> io::Result<usize> {
        if self.has_wait {
            // SAFETY: the kernel writes at most `BATCH` events to the vector, which has that capacity; `limit` is null
            // or lives through the call; no signal mask is given.
            let count = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.epoll.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    BATCH as libc::c_int,
                    limit,
                    std::ptr::null::<libc::sigset_t>(),
                    0_usize,
                )
            };
            match counted(count) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.has_wait = false,
                result => return result,
            }
        }
        self.take_on_an_old_kernel(limit)
    }

    /// The same with calls of Linux before 5.11. `epoll_wait` alone counts its limit in milliseconds.
    fn take_on_an_old_kernel(&mut self, limit: *const libc::timespec) -> io::Result<usize> {
        let mut epoll = libc::pollfd { fd: self.epoll.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor that lives through the call, as does `limit` unless it is null; no signal mask.
        counted(unsafe { libc::ppoll(&raw mut epoll, 1, limit, std::ptr::null()) }.into())?;
        // SAFETY: the kernel writes at most `BATCH` events to the vector, which has that capacity.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), BATCH as libc::c_int, 0) };
        counted(count.into())
    }

    /// Number of sockets that the last wait returned.
    #[must_use]
    pub fn count(&self) -> usize {
        self.events.len()
    }

    /// The events of one of them.
    #[must_use]
    pub fn event(&self, index: usize) -> Readiness {
        let event = self.events[index];
        let is = |flags: i32| event.events & flags as u32 != 0;
        let ended = is(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR);
        Readiness { token: event.u64, readable: ended || is(libc::EPOLLIN), writable: is(libc::EPOLLOUT), ended }
    }
}

/// The result of a call that counts, or is negative for an error.
fn counted(count: libc::c_long) -> io::Result<usize> {
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

fn timespec(length: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(length.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: length.subsec_nanos().into(),
    }
}

/// # Safety
///
/// `fd` is negative, or a descriptor that nothing else owns.
unsafe fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as the caller guarantees.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn with_and_without_epoll_pwait2_waits_end_at_events_alarms_and_limits() {
        for has_wait in [true, false] {
            let mut poller = Poller::new().unwrap();
            poller.has_wait = has_wait;
            let (mut near, far) = UnixStream::pair().unwrap();
            poller.add(&far, 7).unwrap();
            poller.wait(None).unwrap();
            assert_eq!((poller.count(), poller.event(0).token, poller.event(0).readable), (1, 7, false), "writable");
            assert!(!poller.wait(Some(Duration::from_micros(10))).unwrap());
            assert_eq!(poller.count(), 0);
            near.write_all(b"x").unwrap();
            assert!(!poller.wait(None).unwrap());
            assert!(poller.event(0).readable);
            poller.wake_at(Instant::now()).unwrap();
            assert!(poller.wait(None).unwrap());
            assert_eq!(poller.has_wait, has_wait, "the kernel of the tests has epoll_pwait2");
        }
    }
}
