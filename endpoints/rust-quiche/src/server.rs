//! The server: one loop per thread, each with a socket of its own at the same port; the kernel keeps a client at one.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use boring::rand::rand_bytes;
use quiche::{ConnectionId, Type};
use tokio::task::JoinSet;
use wirelab_contract::protocol::Protocol;
use wirelab_endpoint::program::{Accounts, Bound, Refusal, SERVER_IDLE, ServerSpec, Site, Stop, Timer};

use crate::outbox::Sent;
use crate::peer::Peer;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::timers::Timers;

/// Bytes of the connection IDs that this server gives.
const ID: usize = 16;

/// The buffer for one read of a stream.
const PIECE: usize = 65_536;

/// Binds a server.
pub async fn bind(spec: ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    // quiche itself has no threads; its own programs have one.
    let threads = spec.threads.unwrap_or(1);
    let mut ticket_key = [0; 48];
    rand_bytes(&mut ticket_key).map_err(|error| Refusal::failed(format!("making a ticket key: {error}")))?;
    let accounts = Accounts::default();
    let mut address = SocketAddr::new(spec.address, spec.port);
    let mut loops = Vec::new();
    for _ in 0..threads {
        let settings = Settings::server(&spec, SERVER_IDLE, &ticket_key)?;
        let socket = Socket::open(address, None, threads > 1, &spec.transport)?;
        // The others get the port that the kernel chose for the first.
        address = socket.local();
        let (site, accounts, is_http) = (Arc::clone(&site), accounts.clone(), spec.protocol == Protocol::H3);
        loops.push(Loop {
            socket,
            settings,
            site,
            accounts,
            is_http,
            peers: HashMap::new(),
            ids: HashMap::new(),
            next: 0,
        });
    }
    let Some(first) = loops.first() else { return Err(Refusal::unsupported("0 threads")) };
    let mut configured = first.settings.report(&first.socket);
    configured.insert("threads".to_owned(), threads.into());
    let run = async move {
        let mut running: JoinSet<()> = loops.into_iter().map(|each| each.run(stop.clone())).collect();
        while running.join_next().await.is_some() {}
    };
    Ok(Bound { port: address.port(), configured, accounts: Some(accounts), run: Box::pin(run) })
}

struct Loop {
    socket: Socket,
    settings: Settings,
    site: Arc<Site>,
    accounts: Accounts,
    is_http: bool,
    peers: HashMap<u64, Peer>,
    ids: HashMap<ConnectionId<'static>, u64>,
    next: u64,
}

impl Loop {
    async fn run(mut self, mut stop: Stop) {
        let mut scratch = vec![0; PIECE];
        // quiche's own timers may be late by a millisecond; a delay that was asked for may not.
        let mut timeouts = Timers::<u64>::default();
        let mut delays = Timers::<(u64, u64)>::default();
        let mut precise = Timer::default();
        let mut touched = Vec::new();
        let mut blocked = Vec::new();
        loop {
            let timeout = timeouts.next();
            let delay = delays.next();
            tokio::select! {
                biased;
                () = stop.asked() => break,
                _ = self.socket.readable() => self.receive(&mut touched),
                () = precise.until(delay.unwrap_or_else(Instant::now)), if delay.is_some() => {}
                () = tokio::time::sleep_until(timeout.unwrap_or_else(Instant::now).into()), if timeout.is_some() => {}
                _ = self.socket.writable(), if !blocked.is_empty() => touched.append(&mut blocked),
            }
            let now = Instant::now();
            while let Some((key, stream)) = delays.take(now) {
                if let Some(peer) = self.peers.get_mut(&key) {
                    peer.is_due(stream);
                    touched.push(key);
                }
            }
            while let Some(key) = timeouts.take(now) {
                if let Some(peer) = self.peers.get_mut(&key) {
                    peer.on_timer(now);
                    peer.armed = None;
                    touched.push(key);
                }
            }
            touched.sort_unstable();
            touched.dedup();
            for key in touched.drain(..) {
                let Some(peer) = self.peers.get_mut(&key) else { continue };
                for (at, stream) in peer.attend(&self.site, &mut scratch) {
                    delays.add(at, (key, stream));
                }
                if peer.flush(&self.socket) == Sent::Blocked {
                    blocked.push(key);
                }
                if peer.is_over() {
                    self.forget(key);
                } else if let Some(due) = peer.timeout()
                    && peer.armed.is_none_or(|armed| due < armed)
                {
                    peer.armed = Some(due);
                    timeouts.add(due, key);
                }
            }
        }
        // H3_NO_ERROR; raw requests have no codes of their own.
        let code = if self.is_http { 0x100 } else { 0 };
        for peer in self.peers.values_mut() {
            peer.close(code);
            peer.flush(&self.socket);
        }
    }

    /// Takes everything that is there; whose it was.
    fn receive(&mut self, touched: &mut Vec<u64>) {
        let Self { socket, settings, accounts, is_http, peers, ids, next, .. } = self;
        let mut reception =
            Reception { settings, accounts, is_http: *is_http, peers, ids, next, local: socket.local() };
        let mut replies = Vec::new();
        // Errors of a socket that is not connected are about single datagrams; the next receipt goes on.
        while let Ok(true) = socket.receive(|datagram, from| match reception.take(datagram, from) {
            Some(Taken::By(key)) => touched.push(key),
            Some(Taken::Reply(reply)) => replies.push((reply, from)),
            None => {}
        }) {}
        for (reply, to) in replies {
            let _ = socket.send(to, &reply, reply.len());
        }
    }

    fn forget(&mut self, key: u64) {
        if let Some(peer) = self.peers.remove(&key) {
            for id in &peer.ids {
                self.ids.remove(id);
            }
        }
    }
}

/// The state to find or to accept the connection of a datagram.
struct Reception<'a> {
    settings: &'a mut Settings,
    accounts: &'a Accounts,
    is_http: bool,
    peers: &'a mut HashMap<u64, Peer>,
    ids: &'a mut HashMap<ConnectionId<'static>, u64>,
    next: &'a mut u64,
    local: SocketAddr,
}

enum Taken {
    By(u64),
    Reply(Vec<u8>),
}

impl Reception<'_> {
    fn take(&mut self, datagram: &mut [u8], from: SocketAddr) -> Option<Taken> {
        let header = quiche::Header::from_slice(datagram, ID).ok()?;
        let key = match self.ids.get(&header.dcid) {
            Some(key) => *key,
            None if header.ty != Type::Initial => return None,
            None if !quiche::version_is_supported(header.version) => {
                let mut reply = vec![0; 1200];
                let length = quiche::negotiate_version(&header.scid, &header.dcid, &mut reply).ok()?;
                reply.truncate(length);
                return Some(Taken::Reply(reply));
            }
            None => self.accept(&header.dcid, from)?,
        };
        self.peers.get(&key)?.take(datagram, from, self.local);
        Some(Taken::By(key))
    }

    /// `chosen` is the client's ID for the server, until the server sends its own.
    fn accept(&mut self, chosen: &ConnectionId<'_>, from: SocketAddr) -> Option<u64> {
        let mut id = vec![0; ID];
        rand_bytes(&mut id).ok()?;
        let id = ConnectionId::from_vec(id);
        let mut connection = quiche::accept(&id, None, self.local, from, &mut self.settings.config).ok()?;
        if let Err(failure) = self.settings.attach_logs(&mut connection) {
            // A connection without its requested log would differ from the requested one.
            eprintln!("refusing a connection: {}", failure.message);
            return None;
        }
        let key = *self.next;
        *self.next += 1;
        let ids = vec![id, chosen.clone().into_owned()];
        for id in &ids {
            self.ids.insert(id.clone(), key);
        }
        let connection = Shared::new(connection);
        let account = self.accounts.of(Arc::new(connection.clone()));
        self.peers.insert(key, Peer::new(connection, self.is_http, ids, account));
        Some(key)
    }
}
