//! One thread of the server: accepts, reads, answers.

use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::ServerConfig;

use super::connection::Connection;
use super::{Content, ServerMachine};
use crate::accounts::Accounts;
use crate::http2::windows::Windows;
use crate::poller::Poller;

/// Maximum bytes per read. The buffer belongs to the thread: its content is not used after a read.
const READ: usize = 64 * 1024;

/// Pause after a failed accept, usually because no file descriptor was left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Tokens that are no places of connections.
const LISTENER: u64 = u64::MAX - 1;
const STOPPED: u64 = u64::MAX - 2;

/// State that all threads share.
pub(super) struct Shared {
    pub listener: TcpListener,
    /// Ends at the stop.
    pub stopped: UnixStream,
    pub tls: Option<Arc<ServerConfig>>,
    pub content: Arc<dyn Content>,
    pub accounts: Accounts,
}

impl Shared {
    pub fn watch(&self, poller: &Poller) -> io::Result<()> {
        poller.listen(&self.listener, LISTENER)?;
        poller.add(&self.stopped, STOPPED)
    }
}

/// Serves until the stop.
pub(super) fn run<M: ServerMachine>(shared: &Shared, mut poller: Poller, windows: Windows) {
    let mut connections: Vec<Option<Connection<M>>> = Vec::new();
    let mut free = Vec::new();
    let mut scratch = vec![0; READ];
    while poller.wait(None).is_ok() {
        for index in 0..poller.count() {
            let event = poller.event(index);
            match event.token {
                // It is writable, too, from the start.
                STOPPED if event.ended => return,
                STOPPED => {}
                LISTENER => {
                    // One at a time, so that idle threads get their share.
                    let Some(connection) = accept::<M>(shared, windows) else { continue };
                    let place = free.pop().unwrap_or_else(|| {
                        connections.push(None);
                        connections.len() - 1
                    });
                    match poller.add(connection.socket(), place as u64) {
                        Ok(()) => connections[place] = Some(connection),
                        Err(_) => free.push(place),
                    }
                }
                token => {
                    let place = token as usize;
                    if let Some(connection) = &mut connections[place]
                        && !connection.proceed(event, &mut scratch)
                    {
                        connections[place] = None;
                        free.push(place);
                    }
                }
            }
        }
    }
}

fn accept<M: ServerMachine>(shared: &Shared, windows: Windows) -> Option<Connection<M>> {
    match shared.listener.accept() {
        Ok((socket, _)) => {
            socket.set_nonblocking(true).ok()?;
            let machine = M::new(&shared.content, windows);
            Connection::new(socket, shared.tls.as_ref(), machine, &shared.accounts).ok()
        }
        // Another thread was faster, or the client has gone.
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => None,
        Err(_) => {
            thread::sleep(ACCEPT_PAUSE);
            None
        }
    }
}
