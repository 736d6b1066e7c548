//! The null server of bare UDP: reads datagrams in batches, and answers complete requests at once.
//!
//! Each thread has a socket at the same port, and the clients that the kernel gives it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wirelab_contract::spec::ServerSpec;
use wirelab_engine::poller::Poller;

use super::null_threads::{Threads, failed};
use super::udp::{LARGEST_RESPONSE, OpenRequests};
use crate::refusal::Refusal;
use crate::server::{Bound, Site, Stop};
use crate::udp_message::{Header, Outgoing, configured, datagram_size};
use crate::udp_socket;

/// Tokens of the poller.
const SOCKET: u64 = 0;
const STOPPED: u64 = 1;

/// Datagrams that are read before the next ones are sent, so that long answers leave room in the receive buffer.
const BATCH: usize = 64;

/// Binds a null server with this number of threads.
pub(super) fn bind(spec: &ServerSpec, site: &Arc<Site>, stop: Stop, threads: usize) -> Result<Bound, Refusal> {
    let size = datagram_size(&spec.transport)?;
    let mut running = Threads::new()?;
    let open = |port| udp_socket::open_shared(SocketAddr::new(spec.address, port), &spec.transport);
    let mut sockets = vec![open(spec.port)?];
    let port = sockets[0].local_addr().map_err(failed)?.port();
    let mut configured = configured(&sockets[0], size);
    configured.insert("threads".to_owned(), json!(threads));
    for _ in 1..threads {
        sockets.push(open(port)?);
    }
    for socket in sockets {
        let worker = Worker::new(socket, Arc::clone(site), size, &running.stopped()).map_err(failed)?;
        running.start(move || worker.run())?;
    }
    Ok(Bound { port, configured, accounts: None, run: Box::pin(running.run(stop)) })
}

/// A thread's state.
struct Worker {
    socket: UdpSocket,
    site: Arc<Site>,
    /// The size of datagrams.
    size: usize,
    poller: Poller,
    buffer: Vec<u8>,
    open: OpenRequests,
    /// Answers that are not sent yet, or in part.
    answers: VecDeque<(SocketAddr, Outgoing)>,
    /// A datagram that the kernel did not take yet.
    unsent: Option<(SocketAddr, Vec<u8>)>,
}

/// What a socket does next.
#[derive(PartialEq, Eq)]
enum Next {
    /// It has more to read, or to take.
    Now,
    /// The poller reports when there is more to do.
    Later,
}

impl Worker {
    fn new(socket: UdpSocket, site: Arc<Site>, size: usize, stopped: &UnixStream) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&socket, SOCKET)?;
        poller.add(stopped, STOPPED)?;
        let (open, answers) = Default::default();
        Ok(Self { socket, site, size, poller, buffer: vec![0; usize::from(u16::MAX)], open, answers, unsent: None })
    }

    /// Serves until the stop.
    fn run(mut self) {
        let mut next = Next::Later;
        loop {
            let limit = (next == Next::Now).then_some(Duration::ZERO);
            if self.poller.wait(limit).is_err() {
                return;
            }
            let mut events = (0..self.poller.count()).map(|index| self.poller.event(index));
            if events.any(|event| event.token == STOPPED && event.ended) {
                return;
            }
            let (read, sent) = (self.read(), self.send());
            next = if read == Next::Later && sent == Next::Later { Next::Later } else { Next::Now };
        }
    }

    /// Reads a batch of datagrams.
    fn read(&mut self) -> Next {
        for _ in 0..BATCH {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((length, client)) => self.take(length, client),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Later,
                // Reports about clients that have gone.
                Err(_) => {}
            }
        }
        Next::Now
    }

    fn take(&mut self, length: usize, client: SocketAddr) {
        let Some((header, piece)) = Header::split(&self.buffer[..length]) else { return };
        // `bind` refuses the feature, so that no request has a delay.
        if header.delay_us == 0 && header.wanted <= LARGEST_RESPONSE && self.open.complete(client, header, piece) {
            let answer = Outgoing::new(Header { total: header.wanted, ..header }, self.size);
            self.answers.push_back((client, answer));
        }
    }

    /// Sends a batch of datagrams.
    fn send(&mut self) -> Next {
        if let Some((client, datagram)) = self.unsent.take()
            && !is_sent(self.socket.send_to(&datagram, client))
        {
            self.unsent = Some((client, datagram));
            return Next::Later;
        }
        for _ in 0..BATCH {
            let Some((client, answer)) = self.answers.front_mut() else { return Next::Later };
            match answer.next() {
                Some(datagram) if !is_sent(self.socket.send_to(datagram, *client)) => {
                    self.unsent = Some((*client, datagram.to_vec()));
                    return Next::Later;
                }
                Some(_) => {}
                None => {
                    self.answers.pop_front();
                    self.site.count();
                }
            }
        }
        Next::Now
    }
}

/// Whether the kernel took a datagram, or refused it for good: the report of a client that has gone.
fn is_sent(sent: io::Result<usize>) -> bool {
    !matches!(sent, Err(error) if error.kind() == ErrorKind::WouldBlock)
}
