//! The process itself: one thread that waits for orders and for packets.

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

use crate::witness::connections::Connections;
use crate::witness::ring::Ring;
use crate::witness::watch::{SETTLING, Watch};
use crate::witness::{Answer, Order, Transports};

/// The whole process: `wirelab witness`. It has to have one thread, because only such a process may enter a user namespace.
pub fn main(orders: BorrowedFd<'_>, answers: &mut dyn Write) -> ExitCode {
    end_with_wirelab();
    let mut eyes = Eyes::default();
    let mut unread = Vec::new();
    loop {
        match eyes.wait(orders) {
            Ok(false) => {}
            Ok(true) => match read(orders, &mut unread) {
                Ok(0) => return ExitCode::SUCCESS,
                Ok(_) => {
                    while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                        let line: Vec<u8> = unread.drain(..=end).collect();
                        let answer = serde_json::from_slice(&line)
                            .map_err(|error| format!("reading an order: {error}"))
                            .and_then(|order| eyes.obey(order))
                            .unwrap_or_else(|why| Answer::Failed { why });
                        // Nobody listens any more where wirelab has ended; then the end of input ends this process too.
                        let _ = serde_json::to_writer(&mut *answers, &answer);
                        let _ = answers.write_all(b"\n").and_then(|()| answers.flush());
                    }
                }
                Err(_) => return ExitCode::FAILURE,
            },
            Err(_) => return ExitCode::FAILURE,
        }
        eyes.look();
    }
}

/// Besides the end of its input. The kernel forgets it when the process enters a user namespace.
fn end_with_wirelab() {
    // Without it the end of input does the same.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

fn read(orders: BorrowedFd<'_>, unread: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = [0; 4096];
    let count = rustix::io::retry_on_intr(|| rustix::io::read(orders, &mut buffer))?;
    unread.extend(&buffer[..count]);
    Ok(count)
}

/// What is looked at.
#[derive(Default)]
struct Eyes {
    /// Where that failed, why.
    interfaces: Vec<Result<Watch, String>>,
    connections: Vec<Connections>,
}

impl Eyes {
    fn obey(&mut self, order: Order) -> Result<Answer, String> {
        match order {
            Order::Watch { vantages } => {
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
                let tallies = self.interfaces.drain(..).map(|watch| watch.and_then(Watch::finish)).collect();
                return Ok(Answer::Collected { tallies });
            }
            Order::WatchConnections { namespaces, owner } => {
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
                let parts =
                    self.connections.drain(..).zip(&sought).map(|(connections, sought)| connections.finish(sought));
                let parts: Vec<_> = parts.collect::<Result<_, _>>()?;
                let transports = parts.iter().fold(Transports::default(), |sum, part| sum.and(part));
                return Ok(Answer::Connections { transports: Box::new(transports) });
            }
            Order::Try => attempt()?,
        }
        Ok(Answer::Done)
    }

    fn watches(&mut self) -> impl Iterator<Item = &mut Watch> {
        self.interfaces.iter_mut().flatten()
    }

    /// Reads what there is.
    fn look(&mut self) {
        self.watches().for_each(Watch::look);
        for connections in &mut self.connections {
            connections.look();
        }
    }

    /// Reads until everything that passed the interfaces is read, up to the deadline.
    fn settle(&mut self) {
        let deadline = Instant::now() + SETTLING;
        loop {
            let now = now_ns();
            let unsettled = self.watches().filter_map(|watch| (!watch.settle(now)).then_some(())).count();
            if unsettled == 0 || Instant::now() > deadline {
                return;
            }
            // What is in a block that is not full comes after a while, without an event where it is nothing.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for an order, a packet or the end of a connection. True: there is an order, or their end.
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

/// Enters the user namespace of the lab, if it has one, unless this process is there.
fn enter(owner: Option<&Path>) -> Result<(), String> {
    owner.map_or(Ok(()), enter_owner).map_err(|error| format!("entering the user namespace of the lab: {error}"))
}

fn enter_owner(owner: &Path) -> io::Result<()> {
    if fs::metadata("/proc/self/ns/user")?.ino() == fs::metadata(owner)?.ino() {
        return Ok(());
    }
    move_into_link_name_space(File::open(owner)?.as_fd(), Some(LinkNameSpaceType::User))?;
    end_with_wirelab();
    Ok(())
}

/// Opens a ring on the loopback interface of a new network namespace, with a user namespace around it where that is needed.
/// The process stays there: it is of no use for anything else then, and wirelab drops it.
fn attempt() -> Result<(), String> {
    let new = |flags| {
        // SAFETY: the process has one thread, and unshares neither memory nor file descriptors.
        unsafe { unshare_unsafe(flags) }
    };
    new(UnshareFlags::NEWNET)
        .or_else(|_| new(UnshareFlags::NEWUSER | UnshareFlags::NEWNET))
        .map_err(|error| format!("making a network namespace: {error}"))?;
    Ring::open("lo", false).map(drop).map_err(|error| format!("opening a packet socket with a ring: {error}"))
}

/// The clock of the kernel's time stamps of packets, in nanoseconds since 1970.
fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}
