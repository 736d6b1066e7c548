//! A relay of datagrams between clients and a server, which treats them as a script says: a path with defects.

use std::collections::HashMap;
use std::io::Result;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UdpSocket as Receiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The largest datagram.
const LARGEST: usize = 65536;

/// Seed of random choices: the same datagrams are chosen in every run.
const SEED: u64 = 0x77_6972_656c_6162;

/// A line of a script.
#[derive(Clone)]
pub(crate) struct Rule {
    up: bool,
    down: bool,
    /// The first and the last datagram of the direction, counted from 1.
    first: u64,
    last: u64,
    /// One datagram in so many, chosen at random.
    one_in: u64,
    /// Only the connection of this number, counted from 1.
    connection: Option<u64>,
    /// Only datagrams of more bytes.
    larger: usize,
    action: Action,
}

#[derive(Clone)]
enum Action {
    Drop,
    Duplicate,
    /// Inverts a byte.
    Corrupt,
    /// Cuts to so many bytes.
    Truncate(usize),
    /// Adds so many bytes without a meaning.
    Append(usize),
    Delay(Duration),
    /// Loses everything in both directions for some time.
    Hole(Duration),
    /// The server sees another port of the client.
    Rebind,
    /// The server sees another address of the client.
    Readdress,
    /// Datagrams go to another server from now on.
    Other,
    /// The client gets a packet of version negotiation with these versions first.
    Versions(Vec<u32>),
    /// The client gets a Retry packet without a valid tag first.
    Retry,
    /// The client gets a stateless reset with a wrong token first.
    Reset,
}

impl Rule {
    /// Reads a line, as documented in `tests/peers/README.md`. `load` is the number of the load's first socket.
    pub(crate) fn read(line: &str, load: u64) -> Self {
        let mut words = line.split_whitespace();
        let direction = words.next().unwrap();
        let mut rule = Self {
            up: direction != "down",
            down: direction != "up",
            first: 1,
            last: u64::MAX,
            one_in: 1,
            connection: None,
            larger: 0,
            action: Action::Drop,
        };
        assert!(["up", "down", "both"].contains(&direction), "`{line}` has no direction");
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("`{text}` in `{line}`"));
        while let Some(word) = words.next() {
            let mut next = || number(words.next().unwrap_or_else(|| panic!("`{line}` lacks a number")));
            if let Some((first, last)) = word.split_once("..") {
                rule.first = if first.is_empty() { 1 } else { number(first) };
                rule.last = if last.is_empty() { u64::MAX } else { number(last) };
            } else if let Some(one_in) = word.strip_prefix("1/") {
                rule.one_in = number(one_in);
            } else if let Some(connection) = word.strip_prefix("connection=") {
                rule.connection = Some(if connection == "load" { load } else { number(connection) });
            } else if let Some(larger) = word.strip_prefix("larger=") {
                rule.larger = number(larger) as usize;
            } else {
                rule.action = match word {
                    "drop" => Action::Drop,
                    "duplicate" => Action::Duplicate,
                    "corrupt" => Action::Corrupt,
                    "truncate" => Action::Truncate(next() as usize),
                    "append" => Action::Append(next() as usize),
                    "delay" => Action::Delay(Duration::from_millis(next())),
                    "hole" => Action::Hole(Duration::from_millis(next())),
                    "rebind" => Action::Rebind,
                    "readdress" => Action::Readdress,
                    "other" => Action::Other,
                    "retry" => Action::Retry,
                    "reset" => Action::Reset,
                    "versions" => {
                        let version = |word| u32::from_str_radix(word, 16).unwrap();
                        Action::Versions(words.by_ref().map(version).collect())
                    }
                    _ => {
                        rule.first = number(word);
                        rule.last = rule.first;
                        continue;
                    }
                };
            }
        }
        rule
    }

    fn applies(&self, way: Way, connection: u64, number: u64, size: usize) -> bool {
        let is_way = if way == Way::Up { self.up } else { self.down };
        is_way
            && self.connection.is_none_or(|only| only == connection)
            && (self.first..=self.last).contains(&number)
            && size > self.larger
            && mixed(connection, way, number).is_multiple_of(self.one_in)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// A number that looks random (splitmix64).
fn mixed(connection: u64, way: Way, number: u64) -> u64 {
    let mut value = SEED ^ (connection << 40) ^ ((way as u64) << 32) ^ number;
    for _ in 0..2 {
        value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^= value >> 31;
    }
    value
}

/// The relay of a server.
pub(crate) struct Relay {
    front: Arc<Port>,
    server: SocketAddr,
    /// The server that does not know the connections of the other one.
    other: SocketAddr,
    rules: Vec<Rule>,
    flows: Mutex<HashMap<SocketAddr, Flow>>,
}

/// A socket that tokio reads. Datagrams go out past it, because it refuses to send before its first event.
struct Port {
    receiver: Receiver,
    sender: UdpSocket,
}

impl Port {
    fn new(socket: UdpSocket) -> Result<Arc<Self>> {
        socket.set_nonblocking(true)?;
        Ok(Arc::new(Self { sender: socket.try_clone()?, receiver: Receiver::from_std(socket)? }))
    }

    /// Sends, unless the socket is full: a network may lose a datagram, too.
    fn send(&self, bytes: &[u8], to: SocketAddr) {
        let _ = self.sender.send_to(bytes, to);
    }
}

/// The datagrams of a client's socket.
struct Flow {
    number: u64,
    up: u64,
    down: u64,
    server: SocketAddr,
    host: IpAddr,
    /// The socket that the server sees, and the task that receives there.
    back: Option<(Arc<Port>, JoinHandle<()>)>,
    /// The end of a time without datagrams.
    silent_until: Option<Instant>,
    /// The connection IDs of the client's first packet.
    ids: Option<(Vec<u8>, Vec<u8>)>,
}

/// What becomes of a datagram.
#[derive(Default)]
struct Fate {
    is_lost: bool,
    copies: usize,
    delay: Duration,
    /// What the client gets first.
    forged: Vec<Vec<u8>>,
}

impl Relay {
    pub(super) fn new(front: UdpSocket, server: SocketAddr, other: SocketAddr, rules: Vec<Rule>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { front: Port::new(front)?, server, other, rules, flows: Mutex::default() }))
    }

    /// Starts a relay of a server on a thread, which ends with the test's process.
    pub(crate) fn start(front: UdpSocket, server: SocketAddr, rules: Vec<Rule>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let inside = runtime.enter();
        let relay = Self::new(front, server, server, rules).unwrap();
        drop(inside);
        std::thread::spawn(move || runtime.block_on(relay.run()));
    }

    /// Relays for ever.
    pub(super) async fn run(self: Arc<Self>) {
        let mut bytes = vec![0; LARGEST];
        loop {
            // An error is a report about an earlier datagram.
            let Ok((size, client)) = self.front.receiver.recv_from(&mut bytes).await else { continue };
            self.up(client, bytes[..size].to_vec()).unwrap();
        }
    }

    fn up(self: &Arc<Self>, client: SocketAddr, mut bytes: Vec<u8>) -> Result<()> {
        let mut flows = self.flows.lock().unwrap();
        let number = flows.len() as u64 + 1;
        let flow = flows.entry(client).or_insert_with(|| Flow::new(number, self.server));
        flow.up += 1;
        flow.ids = flow.ids.take().or_else(|| connection_ids(&bytes));
        let fate = flow.fate(&self.rules, Way::Up, self.other, &mut bytes);
        for forged in &fate.forged {
            self.front.send(forged, client);
        }
        let back = match &flow.back {
            Some(back) => Arc::clone(&back.0),
            None => {
                let back = Port::new(UdpSocket::bind((flow.host, 0))?)?;
                let task = tokio::spawn(Arc::clone(self).receive(Arc::clone(&back), client));
                flow.back = Some((Arc::clone(&back), task));
                back
            }
        };
        deliver(&fate, bytes, back, flow.server);
        Ok(())
    }

    /// Relays what the server sends to a socket.
    async fn receive(self: Arc<Self>, back: Arc<Port>, client: SocketAddr) {
        let mut bytes = vec![0; LARGEST];
        loop {
            let Ok((size, _)) = back.receiver.recv_from(&mut bytes).await else { continue };
            self.down(client, bytes[..size].to_vec());
        }
    }

    fn down(&self, client: SocketAddr, mut bytes: Vec<u8>) {
        let mut flows = self.flows.lock().unwrap();
        let flow = flows.get_mut(&client).unwrap();
        flow.down += 1;
        let fate = flow.fate(&self.rules, Way::Down, self.other, &mut bytes);
        for forged in &fate.forged {
            self.front.send(forged, client);
        }
        deliver(&fate, bytes, Arc::clone(&self.front), client);
    }
}

impl Flow {
    fn new(number: u64, server: SocketAddr) -> Self {
        Self { number, up: 0, down: 0, server, host: server.ip(), back: None, silent_until: None, ids: None }
    }

    /// Applies the rules to a datagram.
    fn fate(&mut self, rules: &[Rule], way: Way, other: SocketAddr, bytes: &mut Vec<u8>) -> Fate {
        let number = if way == Way::Up { self.up } else { self.down };
        let mut fate = Fate { copies: 1, ..Fate::default() };
        let (flow, size) = (self.number, bytes.len());
        for rule in rules.iter().filter(|rule| rule.applies(way, flow, number, size)) {
            let random = mixed(flow, way, number) as usize;
            match &rule.action {
                Action::Drop => fate.is_lost = true,
                Action::Duplicate => fate.copies += 1,
                Action::Corrupt => {
                    let at = random / 1024 % bytes.len();
                    bytes[at] = !bytes[at];
                }
                Action::Truncate(size) => bytes.truncate(*size),
                Action::Append(more) => bytes.resize(size + more, random as u8 | 0x40),
                Action::Delay(time) => fate.delay += *time,
                Action::Hole(time) => {
                    self.silent_until.get_or_insert_with(|| Instant::now() + *time);
                }
                Action::Rebind => self.rebind(),
                Action::Readdress => {
                    self.rebind();
                    if let IpAddr::V4(host) = self.host {
                        self.host = Ipv4Addr::from_bits(host.to_bits() + 1).into();
                    }
                }
                Action::Other => self.server = other,
                Action::Versions(versions) => fate.forged.extend(self.negotiation(versions)),
                Action::Retry => fate.forged.extend(self.retry()),
                // A short header, and no token of the server.
                Action::Reset => fate.forged.push([vec![0x41], vec![0xa5; 59]].concat()),
            }
        }
        fate.is_lost |= self.silent_until.is_some_and(|until| Instant::now() < until);
        fate
    }

    /// Forgets the socket that the server sees, as a NAT does.
    fn rebind(&mut self) {
        if let Some((_, task)) = self.back.take() {
            task.abort();
        }
    }

    /// A packet of version negotiation (RFC 9000, section 17.2.1).
    fn negotiation(&self, versions: &[u32]) -> Option<Vec<u8>> {
        let (server, client) = self.ids.as_ref()?;
        let versions: Vec<u8> = versions.iter().flat_map(|version| version.to_be_bytes()).collect();
        Some([&[0xc0, 0, 0, 0, 0][..], &sized(client), &sized(server), &versions].concat())
    }

    /// A Retry packet (RFC 9000, section 17.2.5), but for its tag.
    fn retry(&self) -> Option<Vec<u8>> {
        let client = &self.ids.as_ref()?.1;
        Some([&[0xf0, 0, 0, 0, 1][..], &sized(client), &sized(&[7; 8]), b"a token", &[0; 16]].concat())
    }
}

/// A connection ID behind its length.
fn sized(id: &[u8]) -> Vec<u8> {
    [&[id.len() as u8][..], id].concat()
}

/// The destination's and the source's connection ID of a packet with a long header (RFC 9000, section 17.2).
fn connection_ids(packet: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (long, rest) = (packet.first()? & 0x80 != 0, packet.get(5..)?);
    let (destination, rest) = rest[1..].split_at_checked(usize::from(rest[0]))?;
    let (source, _) = rest.get(1..)?.split_at_checked(usize::from(rest[0]))?;
    long.then(|| (destination.to_vec(), source.to_vec()))
}

fn deliver(fate: &Fate, bytes: Vec<u8>, port: Arc<Port>, to: SocketAddr) {
    let copies = if fate.is_lost { 0 } else { fate.copies };
    if fate.delay.is_zero() {
        return (0..copies).for_each(|_| port.send(&bytes, to));
    }
    let delay = fate.delay;
    tokio::spawn(async move {
        sleep(delay).await;
        (0..copies).for_each(|_| port.send(&bytes, to));
    });
}
