//! Lanes: each carries one request at a time, over a connection or one stream of a connection.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::sync::{Mutex, Semaphore};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ConnectionPolicy;

use crate::client::deadline::{Deadline, Elapsed};
use crate::client::schedule::Share;
use crate::client::thread_state::ThreadState;
use crate::client::transport::{Connection, Failure, Opened, Transport};

/// A persistent connection, shared by the lanes that use its streams.
#[derive(Debug)]
struct Link<C> {
    /// Locked while one lane reopens the connection and others wait.
    current: Mutex<Current<C>>,
}

#[derive(Debug)]
struct Current<C> {
    /// A handle to copy for further lanes; absent if the protocol does not multiplex.
    handle: Option<C>,
    number: u32,
}

/// A lane, which carries one request at a time.
#[derive(Debug)]
pub(crate) struct Lane<C> {
    /// The deadline of its request.
    pub deadline: Deadline,
    /// Its persistent connection; absent if every request opens its own.
    link: Option<Rc<Link<C>>>,
    /// Its current connection.
    pub held: Option<Held<C>>,
}

/// A connection in a lane.
#[derive(Debug)]
pub(crate) struct Held<C> {
    pub connection: C,
    pub number: u32,
}

impl<C: Connection> Lane<C> {
    fn new<T: Transport<Connection = C>>(state: &ThreadState<T>, link: Option<Rc<Link<C>>>) -> Self {
        Self { deadline: Deadline::new(state.now() + state.timeouts.request), link, held: None }
    }

    /// Ensures a connection. Returns `Some` if it had to open one.
    pub async fn connect<T: Transport<Connection = C>>(
        &mut self,
        state: &ThreadState<T>,
        by: std::time::Instant,
    ) -> Result<Option<Moments>, Failure> {
        if self.held.as_ref().is_some_and(|held| held.connection.is_open()) {
            return Ok(None);
        }
        self.held = None;
        let (held, moments) = match self.deadline.guard(by, obtain(state, self.link.as_deref())).await {
            Ok(result) => result?,
            Err(Elapsed) => return Err(state.connect_timeout()),
        };
        self.held = Some(held);
        Ok(moments)
    }
}

/// Times of connection and readiness.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    /// Time of the transport's connection.
    pub connected: Option<std::time::Instant>,
    /// Time from which it could send.
    pub ready: Option<std::time::Instant>,
}

async fn obtain<T: Transport>(
    state: &ThreadState<T>,
    link: Option<&Link<T::Connection>>,
) -> Result<(Held<T::Connection>, Option<Moments>), Failure> {
    let Some(link) = link else {
        let Opened { connection, connected, ready } = state.transport.connect().await?;
        return Ok((Held { connection, number: state.next_number() }, Some(Moments { connected, ready })));
    };
    let mut current = link.current.lock().await;
    if let Some(connection) = current.handle.as_ref().filter(|handle| handle.is_open()).and_then(Connection::another) {
        return Ok((Held { connection, number: current.number }, None));
    }
    current.handle = None;
    let Opened { connection, connected, ready } = state.transport.connect().await?;
    current.handle = connection.another();
    current.number = state.next_number();
    Ok((Held { connection, number: current.number }, Some(Moments { connected, ready })))
}

/// The lanes of one thread. A request takes a free lane, or waits in line.
#[derive(Debug)]
pub(crate) struct Pool<C> {
    free: RefCell<VecDeque<Lane<C>>>,
    /// One permit per free lane; absent if lanes are created as needed.
    permits: Option<Semaphore>,
}

impl<C: Connection> Pool<C> {
    /// An unlimited number of lanes without connections.
    pub fn unlimited() -> Self {
        Self { free: RefCell::default(), permits: None }
    }

    /// Creates a thread's lanes, with open connections if these are persistent. Successive lanes belong to different
    /// connections, to distribute requests over all of them.
    pub async fn open<T: Transport<Connection = C>>(
        state: &ThreadState<T>,
        policy: ConnectionPolicy,
        share: Share,
    ) -> Result<Self, Failure> {
        let ConnectionPolicy::Persistent { connections, streams } = policy else {
            return Ok(Self::unlimited());
        };
        let links: Vec<_> = (0..share.part32(connections))
            .map(|_| Rc::new(Link { current: Mutex::new(Current { handle: None, number: 0 }) }))
            .collect();
        let mut free = VecDeque::with_capacity(links.len() * streams as usize);
        for _ in 0..streams {
            for link in &links {
                let mut lane = Lane::new(state, Some(Rc::clone(link)));
                lane.connect(state, state.now() + state.timeouts.connect).await?;
                free.push_back(lane);
            }
        }
        if free.is_empty() {
            return Err(Failure::new(ErrorKind::Other, "a client without connections cannot send anything"));
        }
        let permits = Some(Semaphore::new(free.len()));
        Ok(Self { free: RefCell::new(free), permits })
    }

    /// Takes a free lane, if any.
    pub fn try_take<T: Transport<Connection = C>>(&self, state: &ThreadState<T>) -> Option<Lane<C>> {
        match &self.permits {
            None => {
                let free = self.free.borrow_mut().pop_front();
                Some(free.unwrap_or_else(|| Lane::new(state, None)))
            }
            Some(permits) => {
                permits.try_acquire().ok()?.forget();
                self.free.borrow_mut().pop_front()
            }
        }
    }

    /// Takes a lane, first come, first served.
    pub async fn take<T: Transport<Connection = C>>(&self, state: &ThreadState<T>) -> Lane<C> {
        loop {
            if let Some(lane) = self.try_take(state) {
                return lane;
            }
            if let Some(permits) = &self.permits {
                match permits.acquire().await {
                    Ok(permit) => permit.forget(),
                    Err(_) => unreachable!("the semaphore is never closed"),
                }
                if let Some(lane) = self.free.borrow_mut().pop_front() {
                    return lane;
                }
            }
        }
    }

    /// Returns a lane.
    pub fn put(&self, lane: Lane<C>) {
        self.free.borrow_mut().push_back(lane);
        if let Some(permits) = &self.permits {
            permits.add_permits(1);
        }
    }

    /// Closes the connections of all lanes.
    pub async fn close(&self) {
        let lanes = std::mem::take(&mut *self.free.borrow_mut());
        let mut last = Vec::new();
        for lane in lanes {
            if let Some(link) = lane.link {
                last.extend(link.current.lock().await.handle.take());
            }
            last.extend(lane.held.map(|held| held.connection));
        }
        for connection in last {
            connection.close().await;
        }
    }
}
