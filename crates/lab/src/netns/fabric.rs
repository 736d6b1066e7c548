//! The process that holds the network: it makes the namespaces, joins them, carries the frames of the emulated link, and
//! measures that link. A process of its own, so that its processor time is known apart, and so that the whole network goes with
//! it.
//!
//! Between the namespaces of client and server there are two ways: `eth0`, through the emulator, and `eth1`, a veth pair
//! without anything between. It is told what to do by JSON lines on standard input, and answers each by one on standard
//! output; the end of its input ends it.

use std::io::{self, BufRead, Write};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use wirelab_model::link::{Link, Reading};

use crate::netns::emulator::{Emulator, Order, Tallies};
use crate::netns::interface::{self, End};
use crate::netns::measure;
use crate::netns::namespace::Namespace;
use crate::netns::port::Port;
use crate::netns::{privilege, settings};

/// The word on wirelab's command line that makes it this process.
pub const SUBCOMMAND: &str = "fabric";

/// The addresses of the emulated way: of the client and of the server.
pub(crate) const EMULATED: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

/// Those of the veth pair.
pub(crate) const WIRED: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 78, 0, 1), Ipv4Addr::new(10, 78, 0, 2)];

/// What it is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Shape the emulated link anew.
    Shape {
        /// What it is to do.
        link: Link,
        /// Seeds its random choices.
        seed: u64,
    },
    /// What did the link do since?
    Tally,
    /// Shape the link and measure what it does.
    Measure {
        /// What it is to do.
        link: Link,
        /// Seeds its random choices.
        seed: u64,
    },
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The network is there.
    Ready {
        /// The network namespaces of client and server.
        hosts: [PathBuf; 2],
        /// The user namespace that owns them, where it is not that of wirelab.
        owner: Option<PathBuf>,
    },
    /// It is shaped.
    Shaped,
    /// What the link did.
    Tallied {
        /// The lines.
        lines: Tallies,
        /// Processor time of this process so far, in nanoseconds.
        cpu_ns: u64,
    },
    /// What the link does.
    Measured(Reading),
    /// It could not be done.
    Failed {
        /// What was attempted, and what happened.
        why: String,
    },
}

/// The whole process: `wirelab fabric`.
#[must_use]
pub fn main() -> ExitCode {
    let fabric = match Fabric::build() {
        Ok(fabric) => fabric,
        Err(why) => {
            say(&Answer::Failed { why });
            return ExitCode::FAILURE;
        }
    };
    say(&Answer::Ready { hosts: [fabric.hosts[0].path(), fabric.hosts[1].path()], owner: fabric.owner.clone() });
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = serde_json::from_str(&line)
            .map_err(|error| format!("reading an order: {error}"))
            .and_then(|ask| fabric.obey(ask))
            .unwrap_or_else(|why| Answer::Failed { why });
        say(&answer);
    }
    ExitCode::SUCCESS
}

fn say(answer: &Answer) {
    let mut out = io::stdout().lock();
    // Nobody listens any more where wirelab has ended; then the end of input ends this process too.
    let _ = serde_json::to_writer(&mut out, answer);
    let _ = out.write_all(b"\n").and_then(|()| out.flush());
}

struct Fabric {
    /// Those of client and server.
    hosts: [Namespace; 2],
    owner: Option<PathBuf>,
    orders: Sender<Order>,
    bell: OwnedFd,
    /// Why the emulator ended, once it has.
    ended: Arc<OnceLock<String>>,
}

impl Fabric {
    fn build() -> Result<Self, String> {
        let owner = privilege::obtain()?;
        let attempt = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let create = || Namespace::create().map_err(attempt("making a network namespace"));
        let (hosts, middle) = ([create()?, create()?], create()?);
        for host in &hosts {
            settings::apply(host).map_err(attempt("setting up a network namespace"))?;
        }
        emulated(&hosts, &middle).map_err(attempt("making the emulated link"))?;
        wired(&hosts).map_err(attempt("making the veth pair"))?;
        let ports = [0, 1].map(|side| middle.within(|| Port::open(OUTER[side])));
        let [client, server] = ports;
        let listening = attempt("opening the emulator's interfaces");
        let ports = [client.map_err(&listening)?, server.map_err(&listening)?];
        let (reader, bell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| format!("making a pipe: {error}"))?;
        let (orders, inbox) = channel();
        let emulator = Emulator { ports, orders: inbox, bell: reader };
        let ended = Arc::new(OnceLock::new());
        let why = Arc::clone(&ended);
        std::thread::Builder::new()
            .name("emulator".to_owned())
            .spawn(move || {
                privilege::be_prompt();
                // Without it the network is dead, and every further order says so.
                why.get_or_init(|| emulator.run().err().map_or_else(String::new, |error| error.to_string()));
            })
            .map_err(attempt("starting the emulator"))?;
        Ok(Self { hosts, owner, orders, bell, ended })
    }

    fn obey(&self, ask: Ask) -> Result<Answer, String> {
        match ask {
            Ask::Shape { link, seed } => self.shape(&link, seed).map(|()| Answer::Shaped),
            Ask::Tally => {
                let lines = self.tally()?;
                Ok(Answer::Tallied { lines, cpu_ns: privilege::cpu_ns() })
            }
            Ask::Measure { link, seed } => {
                self.shape(&link, seed)?;
                measure::measure(&self.hosts, EMULATED, &link, || self.tally()).map(Answer::Measured)
            }
        }
    }

    fn shape(&self, link: &Link, seed: u64) -> Result<(), String> {
        for host in &self.hosts {
            interface::set_mtu(host, EMULATED_NAME, link.mtu)
                .map_err(|error| format!("setting an MTU of {}: {error}", link.mtu))?;
        }
        self.order(Order::Shape(*link, seed))?;
        // Orders are done one after the other, so this waits for that.
        self.tally().map(|_| ())
    }

    fn tally(&self) -> Result<Tallies, String> {
        let (answer, inbox) = channel();
        self.order(Order::Tally(answer))?;
        inbox
            .recv()
            .map_err(|_| self.gone())?
            .map_err(|error| format!("asking the emulator's sockets for their counters: {error}"))
    }

    fn gone(&self) -> String {
        format!("the link emulator has ended: {}", self.ended.get().map_or("it is not known why", String::as_str))
    }

    fn order(&self, order: Order) -> Result<(), String> {
        self.orders.send(order).map_err(|_| self.gone())?;
        rustix::io::write(&self.bell, b"!").map(|_| ()).map_err(|error| format!("waking the emulator: {error}"))
    }
}

/// The hosts' end of the emulated way.
pub(crate) const EMULATED_NAME: &str = "eth0";

/// The hosts' ends of the veth pair.
pub(crate) const WIRED_NAME: &str = "eth1";

/// The emulator's ends, of the client and of the server.
const OUTER: [&str; 2] = ["client", "server"];

/// Frames may be as long as the link's MTU, which is set later; the emulator's ends take whatever comes.
const WIDEST: u32 = 65_535;

fn mac(way: u8, side: usize, outer: bool) -> [u8; 6] {
    // Locally administered, so that it is nobody's.
    [0x02, 0x77, way, 0, u8::from(outer), side as u8 + 1]
}

fn emulated(hosts: &[Namespace; 2], middle: &Namespace) -> io::Result<()> {
    for side in [0, 1] {
        let inner = End { namespace: &hosts[side], name: EMULATED_NAME, mac: mac(0, side, false) };
        let outer = End { namespace: middle, name: OUTER[side], mac: mac(0, side, true) };
        interface::pair(outer, inner)?;
        interface::finish_packets(&hosts[side], EMULATED_NAME)?;
        interface::bring_up(outer, None, WIDEST)?;
        interface::bring_up(inner, Some(EMULATED[side]), Link::wire().mtu)?;
        interface::introduce(inner, EMULATED[1 - side], mac(0, 1 - side, false))?;
    }
    Ok(())
}

fn wired(hosts: &[Namespace; 2]) -> io::Result<()> {
    let ends = [0, 1].map(|side| End { namespace: &hosts[side], name: WIRED_NAME, mac: mac(1, side, false) });
    interface::pair(ends[0], ends[1])?;
    for side in [0, 1] {
        interface::bring_up(ends[side], Some(WIRED[side]), Link::wire().mtu)?;
        interface::introduce(ends[side], WIRED[1 - side], mac(1, 1 - side, false))?;
    }
    Ok(())
}
