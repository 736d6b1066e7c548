//! The witness process: one thread that waits for orders and for packets.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use tracing::{debug, info, warn};
use wirelab_model::missing::Missing;

use crate::witness::connections::Connections;
use crate::witness::ring::Ring;
use crate::witness::watch::{SETTLING, Watch};
use crate::witness::{Answer, Order, Transports};

/// Runs `wirelab witness`. The process must have one thread, because only such a process may enter a user namespace.
/// `keep_log` opens its log.
pub fn main(orders: BorrowedFd<'_>, answers: &mut dyn Write, keep_log: &dyn Fn(&Path)) -> ExitCode {
    end_with_wirelab();
    let mut state = State { interfaces: Vec::new(), connections: Vec::new(), keep_log };
    let mut unread = Vec::new();
    loop {
        match state.wait(orders) {
            Ok(false) => {}
            Ok(true) => match read(orders, &mut unread) {
                Ok(0) => return ExitCode::SUCCESS,
                Ok(_) => {
                    while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                        let line: Vec<u8> = unread.drain(..=end).collect();
                        let answer = serde_json::from_slice(&line)
                            .map_err(|error| Missing::failed("reading an order", error))
                            .and_then(|order| state.execute(order))
                            .unwrap_or_else(|why| {
                                warn!(%why, "order failed");
                                Answer::Failed { why }
                            });
                        // If wirelab has ended, nothing reads the answer; the end of input then ends this process, too.
                        let _ = serde_json::to_writer(&mut *answers, &answer);
                        let _ = answers.write_all(b"\n").and_then(|()| answers.flush());
                    }
                }
                Err(_) => return ExitCode::FAILURE,
            },
            Err(_) => return ExitCode::FAILURE,
        }
        state.look();
    }
}

/// Makes the kernel end this process with wirelab, besides the end of input. The kernel drops the setting when the
/// process enters a user namespace.
fn end_with_wirelab() {
    // On failure, the end of input still ends the process.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

fn read(orders: BorrowedFd<'_>, unread: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = [0; 4096];
    let count = rustix::io::retry_on_intr(|| rustix::io::read(orders, &mut buffer))?;
    unread.extend(&buffer[..count]);
    Ok(count)
}

/// The active watches.
struct State<'a> {
    /// The watched interfaces, or why the watch could not start.
    interfaces: Vec<Result<Watch, Missing>>,
    connections: Vec<Connections>,
    keep_log: &'a dyn Fn(&Path),
}

impl State<'_> {
    fn execute(&mut self, order: Order) -> Result<Answer, Missing> {
        match order {
            Order::Log { path } => (self.keep_log)(&path),
            Order::Watch { vantages } => {
                info!(interfaces = vantages.len(), "watching packets");
                self.interfaces.clear();
                for (vantage, capture) in vantages {
                    enter(vantage.owner.as_deref())?;
                    self.interfaces.push(Watch::open(&vantage, capture.as_deref()));
                }
            }
            Order::Begin => {
                let now = now_ns();
                self.watches().for_each(|watch| watch.begin(now));
            }
            Order::End => {
                let now = now_ns();
                self.watches().for_each(|watch| watch.end(now));
            }
            Order::Collect => {
                self.settle();
                info!("collecting packets");
                let tallies = self.interfaces.drain(..).map(|watch| watch.and_then(Watch::finish)).collect();
                return Ok(Answer::Collected { tallies });
            }
            Order::WatchConnections { namespaces, owner } => {
                debug!(namespaces = namespaces.len(), "watching connections");
                self.connections.clear();
                enter(owner.as_deref())?;
                for namespace in &namespaces {
                    self.connections.push(Connections::open(namespace)?);
                }
                let listeners = self.connections.iter().map(|connections| connections.listeners().to_vec()).collect();
                return Ok(Answer::Listening { listeners });
            }
            Order::EndConnections => self.connections.iter_mut().try_for_each(Connections::end)?,
            Order::CollectConnections { sought } => {
                info!("collecting connections");
                let parts =
                    self.connections.drain(..).zip(&sought).map(|(connections, sought)| connections.finish(sought));
                let parts: Vec<_> = parts.collect::<Result<_, _>>()?;
                let transports = parts.iter().fold(Transports::default(), |sum, part| sum.and(part));
                return Ok(Answer::Connections { transports: Box::new(transports) });
            }
            Order::Try => test_capture()?,
        }
        Ok(Answer::Done)
    }

    fn watches(&mut self) -> impl Iterator<Item = &mut Watch> {
        self.interfaces.iter_mut().flatten()
    }

    /// Reads all that has arrived.
    fn look(&mut self) {
        self.watches().for_each(Watch::look);
        for connections in &mut self.connections {
            connections.look();
        }
    }

    /// Reads until every packet that passed was read, or until the deadline.
    fn settle(&mut self) {
        let deadline = Instant::now() + SETTLING;
        loop {
            let now = now_ns();
            let unsettled = self.watches().filter_map(|watch| (!watch.settle(now)).then_some(())).count();
            if unsettled == 0 || Instant::now() > deadline {
                return;
            }
            // The kernel hands over a partly filled block after a time-out, and an empty block raises no event.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for an order, a packet or the end of a connection. Returns true if an order or the end of input arrived.
    fn wait(&self, orders: BorrowedFd<'_>) -> io::Result<bool> {
        let mut sources = vec![PollFd::new(&orders, PollFlags::IN)];
        let rings = self.interfaces.iter().flatten().map(AsFd::as_fd);
        let news: Vec<_> = rings.chain(self.connections.iter().map(AsFd::as_fd)).collect();
        sources.extend(news.iter().map(|source| PollFd::new(source, PollFlags::IN)));
        match poll(&mut sources, None) {
            Ok(_) => Ok(!sources[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Enters the lab's user namespace, if it has one and this process is in another.
fn enter(owner: Option<&Path>) -> Result<(), Missing> {
    owner.map_or(Ok(()), enter_owner).map_err(|error| Missing::failed("entering the lab's user namespace", error))
}

fn enter_owner(owner: &Path) -> io::Result<()> {
    if fs::metadata("/proc/self/ns/user")?.ino() == fs::metadata(owner)?.ino() {
        return Ok(());
    }
    move_into_link_name_space(File::open(owner)?.as_fd(), Some(LinkNameSpaceType::User))?;
    end_with_wirelab();
    Ok(())
}

/// Opens a ring on the loopback interface of a new network namespace, inside a new user namespace if needed. The
/// process stays in these namespaces and cannot be used further; wirelab drops it.
fn test_capture() -> Result<(), Missing> {
    let new = |flags| {
        // SAFETY: the process has one thread, and unshares neither memory nor file descriptors.
        unsafe { unshare_unsafe(flags) }
    };
    new(UnshareFlags::NEWNET)
        .or_else(|_| new(UnshareFlags::NEWUSER | UnshareFlags::NEWNET))
        .map_err(|error| Missing::failed("making a network namespace", error))?;
    Ring::open("lo", false).map(drop).map_err(|error| Missing::failed("opening a packet socket with a ring", error))
}

/// The clock of the kernel's packet time stamps, in nanoseconds of Unix time.
fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}
