//! Two nodes and the two ways between them: `eth0` through the emulator, and `eth1`, a direct veth pair. Without an
//! overlay the nodes themselves are the hosts of client and server.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use wirelab_model::link::Link;

use crate::LabError;
use crate::netns::emulator::{Emulator, Order, Tallies};
use crate::netns::interface::{self, End, Offloads};
use crate::netns::namespace::Namespace;
use crate::netns::port::Port;
use crate::netns::{privilege, settings};

/// A network path between the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// Interface name on both nodes.
    pub interface: &'static str,
    /// Addresses of the client's node and of the other node.
    pub addresses: [Ipv4Addr; 2],
}

/// The path through the emulator.
const EMULATED: Way = Way { interface: "eth0", addresses: [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)] };

/// The direct veth pair.
const WIRED: Way = Way { interface: "eth1", addresses: [Ipv4Addr::new(10, 78, 0, 1), Ipv4Addr::new(10, 78, 0, 2)] };

impl Way {
    /// The path for a link.
    pub(crate) fn of(link: &Link) -> Self {
        if link.is_wire() { WIRED } else { EMULATED }
    }

    /// Address of a server on the other node.
    pub(crate) fn server(self, number: u32) -> Ipv4Addr {
        (u32::from(self.addresses[1]) + number).into()
    }
}

/// The nodes and the emulator between them.
pub(crate) struct Pair {
    pub nodes: [Namespace; 2],
    orders: Sender<Order>,
    bell: OwnedFd,
    /// Why the emulator ended, once it has.
    ended: Arc<OnceLock<String>>,
    /// Number of servers with an address on the other node: on the emulated path, and on the wired one.
    addressed: [u32; 2],
}

impl Pair {
    pub(crate) fn build() -> Result<Self, LabError> {
        let attempt = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| LabError::network(&what).because(error)
        };
        // Also for the emulator's namespace: unsolicited packets of its kernel would reach the nodes.
        let create = || {
            let namespace = Namespace::create().map_err(attempt("making a network namespace"))?;
            settings::apply(&namespace).map_err(attempt("setting up a network namespace"))?;
            Ok::<_, LabError>(namespace)
        };
        let (nodes, middle) = ([create()?, create()?], create()?);
        emulated(&nodes, &middle).map_err(attempt("making the emulated link"))?;
        wired(&nodes).map_err(attempt("making the veth pair"))?;
        let ports = [0, 1].map(|side| middle.within(|| Port::open(OUTER[side])));
        let [client, server] = ports;
        let listening = attempt("opening the emulator's interfaces");
        let ports = [client.map_err(&listening)?, server.map_err(&listening)?];
        let (reader, bell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| LabError::network("making a pipe").because(error))?;
        let (orders, inbox) = channel();
        let emulator = Emulator { ports, orders: inbox, bell: reader };
        let ended = Arc::new(OnceLock::new());
        let why = Arc::clone(&ended);
        std::thread::Builder::new()
            .name("emulator".to_owned())
            .spawn(move || {
                privilege::be_prompt();
                // Without the emulator the network is dead, and every further order reports this text.
                why.get_or_init(|| emulator.run().err().map_or_else(String::new, |error| error.to_string()));
            })
            .map_err(attempt("starting the emulator"))?;
        Ok(Self { nodes, orders, bell, ended, addressed: [1, 1] })
    }

    /// Shapes the link's path.
    pub(crate) fn shape(&self, link: &Link, seed: u64) -> Result<(), LabError> {
        for node in &self.nodes {
            interface::set_mtu(node, Way::of(link).interface, link.mtu)
                .map_err(|error| LabError::network(format!("setting an MTU of {} bytes", link.mtu)).because(error))?;
        }
        self.order(Order::Shape(*link, seed))?;
        // Orders run in sequence, so this waits for the shaping.
        self.tally().map(|_| ())
    }

    /// Gives the first `servers` servers an address each on the other node. Addresses of earlier trials stay.
    pub(crate) fn add_server_addresses(&mut self, way: Way, servers: u32) -> io::Result<()> {
        let number = usize::from(way == WIRED);
        while self.addressed[number] < servers {
            let address = way.server(self.addressed[number]);
            interface::assign(&self.nodes[1], way.interface, address, 24)?;
            interface::add_neighbour(&self.nodes[0], way.interface, address, mac(number as u8, 1, false))?;
            self.addressed[number] += 1;
        }
        Ok(())
    }

    /// Counters of the emulated link since it was shaped.
    pub(crate) fn tally(&self) -> Result<Tallies, LabError> {
        let (answer, inbox) = channel();
        self.order(Order::Tally(answer))?;
        inbox
            .recv()
            .map_err(|_| self.gone())?
            .map_err(|error| LabError::network("asking the emulator's sockets for their counters").because(error))
    }

    fn gone(&self) -> LabError {
        let cause = self.ended.get().map_or("it is not known why", String::as_str);
        LabError::network("the link emulator has ended").because(cause)
    }

    fn order(&self, order: Order) -> Result<(), LabError> {
        self.orders.send(order).map_err(|_| self.gone())?;
        rustix::io::write(&self.bell, b"!")
            .map(|_| ())
            .map_err(|error| LabError::network("waking the emulator").because(error))
    }
}

/// The emulator's interfaces: towards the client, and towards the server.
const OUTER: [&str; 2] = ["client", "server"];

/// The link's MTU is set later, so the emulator's interfaces accept frames of any length.
const WIDEST: u32 = 65_535;

fn emulated(nodes: &[Namespace; 2], middle: &Namespace) -> io::Result<()> {
    for side in [0, 1] {
        let inner = End { namespace: &nodes[side], name: EMULATED.interface, mac: mac(0, side, false) };
        let outer = End { namespace: middle, name: OUTER[side], mac: mac(0, side, true) };
        interface::pair(outer, inner)?;
        interface::offload(&nodes[side], EMULATED.interface, Offloads::FINISHED)?;
        interface::set_mtu(middle, OUTER[side], WIDEST)?;
        interface::bring_up(middle, OUTER[side])?;
        join(&nodes[side], EMULATED, side, mac(0, 1 - side, false))?;
    }
    Ok(())
}

fn wired(nodes: &[Namespace; 2]) -> io::Result<()> {
    let ends = [0, 1].map(|side| End { namespace: &nodes[side], name: WIRED.interface, mac: mac(1, side, false) });
    interface::pair(ends[0], ends[1])?;
    for side in [0, 1] {
        join(&nodes[side], WIRED, side, mac(1, 1 - side, false))?;
    }
    Ok(())
}

/// Brings up a node's end of a path; the other node has this hardware address.
fn join(node: &Namespace, way: Way, side: usize, other: [u8; 6]) -> io::Result<()> {
    interface::bring_up(node, way.interface)?;
    interface::assign(node, way.interface, way.addresses[side], 24)?;
    interface::add_neighbour(node, way.interface, way.addresses[1 - side], other)
}

fn mac(way: u8, side: usize, outer: bool) -> [u8; 6] {
    // Locally administered, so it conflicts with no device.
    [0x02, 0x77, way, 0, u8::from(outer), side as u8 + 1]
}
