//! The server of bare UDP: counts the bytes of each request, and answers when all have arrived.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use wirelab_contract::spec::ServerSpec;

use crate::refusal::Refusal;
use crate::server::{Bound, Site, Stop};
use crate::udp_message::{Coverage, Header, Outgoing, configured, datagram_size};
use crate::{udp_socket, wait};

/// Maximum number of incomplete requests; one more drops the oldest. Bodies are counted, not stored.
const MOST_OPEN: usize = 1 << 14;

/// The largest response in bytes, limited because no handshake proves the client's address.
pub(super) const LARGEST_RESPONSE: u64 = 1 << 32;

/// Binds a UDP server.
pub(crate) async fn bind(spec: &ServerSpec, site: Arc<Site>, mut stop: Stop) -> Result<Bound, Refusal> {
    let size = datagram_size(&spec.transport)?;
    let address = SocketAddr::new(spec.address, spec.port);
    let socket = udp_socket::open(address, &spec.transport)?;
    let failed = |error: io::Error| Refusal::failed(format!("binding {address}: {error}"));
    let port = socket.local_addr().map_err(failed)?.port();
    let configured = configured(&socket, size);
    let socket = Arc::new(UdpSocket::from_std(socket).map_err(failed)?);
    let run = async move {
        tokio::select! {
            () = serve(socket, site, size) => {}
            () = stop.asked() => {}
        }
    };
    Ok(Bound { port, configured, accounts: None, run: Box::pin(run) })
}

async fn serve(socket: Arc<UdpSocket>, site: Arc<Site>, size: usize) {
    let mut open = OpenRequests::default();
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        // An error here comes from a client's ICMP message; the socket stays usable.
        let Ok((length, peer)) = socket.recv_from(&mut buffer).await else { continue };
        let Some((header, piece)) = Header::split(&buffer[..length]) else { continue };
        let delays = header.delay_us > 0;
        if header.wanted > LARGEST_RESPONSE || (delays && !site.offers_delay()) || !open.complete(peer, header, piece) {
            continue;
        }
        let arrival = Instant::now();
        let mut response = Outgoing::new(Header { total: header.wanted, ..header }, size);
        let (socket, site) = (Arc::clone(&socket), Arc::clone(&site));
        let fits = header.wanted as usize <= size - crate::udp_message::HEADER;
        if fits && !delays {
            if send(&site, &socket, peer, &mut response).await.is_ok() {
                site.count();
            }
        } else {
            // A separate task, because long sending or waiting would leave the next datagrams in the receive buffer,
            // which overflows.
            tokio::spawn(async move {
                if delays {
                    wait::until(arrival + Duration::from_micros(header.delay_us)).await;
                }
                if send(&site, &socket, peer, &mut response).await.is_ok() {
                    site.count();
                }
            });
        }
    }
}

async fn send(site: &Site, socket: &UdpSocket, peer: SocketAddr, response: &mut Outgoing) -> io::Result<()> {
    site.work();
    while let Some(datagram) = response.next() {
        socket.send_to(datagram, peer).await?;
    }
    Ok(())
}

/// Incomplete requests.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    coverage: HashMap<(SocketAddr, u64), Coverage>,
    /// Requests in order of arrival, including completed ones.
    order: VecDeque<(SocketAddr, u64)>,
}

impl OpenRequests {
    /// Counts a piece. Returns whether its request is now complete.
    pub fn complete(&mut self, peer: SocketAddr, header: Header, piece: &[u8]) -> bool {
        if header.is_whole(piece.len()) {
            return true;
        }
        let key = (peer, header.request);
        let coverage = self.coverage.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            Coverage::default()
        });
        let fits = coverage.add(header.offset, header.offset + piece.len() as u64);
        let complete = coverage.bytes() == header.total;
        if complete || !fits {
            self.coverage.remove(&key);
        }
        while self.order.len() > MOST_OPEN {
            if let Some(oldest) = self.order.pop_front() {
                self.coverage.remove(&oldest);
            }
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    fn header(request: u64, offset: u64) -> Header {
        Header { request, offset, total: 20, wanted: 0, delay_us: 0 }
    }

    #[test]
    fn a_request_is_complete_once_when_all_its_bytes_arrived() {
        let mut open = OpenRequests::default();
        assert!(!open.complete(PEER, header(1, 10), &[0; 10]));
        assert!(!open.complete(PEER, header(1, 10), &[0; 10]), "the same bytes again");
        assert!(!open.complete(PEER, header(2, 0), &[0; 10]), "another request");
        assert!(open.complete(PEER, header(1, 0), &[0; 10]));
        assert!(open.complete(PEER, header(3, 0), &[0; 20]), "in one datagram");
        assert_eq!(open.coverage.len(), 1);
    }

    #[test]
    fn the_oldest_request_is_dropped_when_there_are_too_many() {
        let mut open = OpenRequests::default();
        for request in 0..=MOST_OPEN as u64 {
            assert!(!open.complete(PEER, header(request, 0), &[0; 10]));
        }
        assert_eq!(open.coverage.len(), MOST_OPEN);
        assert!(!open.complete(PEER, header(0, 10), &[0; 10]), "its first bytes are forgotten");
        assert!(open.complete(PEER, header(MOST_OPEN as u64, 10), &[0; 10]));
    }
}
