//! The engine of one thread: prepares, warms up and measures, independent of the protocol.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use wirelab_contract::event::Configured;
use wirelab_contract::spec::{ClientSpec, ConnectionPolicy, Resumption, Schedule};
use wirelab_engine::progress::Progress;
use wirelab_engine::results::ThreadResults;

use crate::client::check;
use crate::client::lanes::{self, Period};
use crate::client::pool::Pool;
use crate::client::schedule::{Limit, Phase, Share};
use crate::client::thread_state::{Clock, ThreadState};
use crate::client::transport::{Failure, Transport};
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// Number of tickets to collect for an open loop, whose number of concurrent connections is unknown.
const TICKETS_FOR_OPEN_LOOP: usize = 64;

/// The engine of one thread.
pub(crate) struct Engine<T: Transport> {
    spec: Arc<ClientSpec>,
    share: Share,
    state: Rc<ThreadState<T>>,
    pool: Rc<Pool<T::Connection>>,
}

impl<T: Transport> Engine<T> {
    /// Creates the engine of one thread, without connections.
    pub fn build<K: Clock>(
        spec: Arc<ClientSpec>,
        share: Share,
        numbers: Arc<AtomicU32>,
        progress: Arc<Progress>,
    ) -> Result<Self, Refusal> {
        let state = ThreadState::build::<K>(&spec, share, numbers, progress)?;
        let state = Rc::new(state);
        // `open` creates the lanes of persistent connections.
        let pool = Rc::new(Pool::unlimited());
        Ok(Self { spec, share, state, pool })
    }

    /// The known effective settings.
    pub fn configured(&self) -> Configured {
        self.state.transport.configured()
    }

    /// The transport statistics of its connections.
    pub fn accounts(&self) -> Option<&Accounts> {
        self.state.transport.accounts()
    }

    /// Sends the check request on a connection of its own.
    pub async fn check(&self) -> Result<(), Failure> {
        check::check(&self.state, &self.spec).await
    }

    /// Collects tickets, opens persistent connections, warms up.
    pub async fn open<K: Clock>(&mut self) -> Result<(), Failure> {
        self.prime().await?;
        self.pool = Rc::new(Pool::open(&self.state, self.spec.connections, self.share).await?);
        if let Some(extent) = self.spec.warm_up {
            let start = K::now();
            let limit = Limit::of_warm_up(extent, self.share, start, self.state.judge());
            self.send::<K>(Phase::WarmUp, limit, start).await;
        }
        // Read now, while no request is in flight: reading must not be part of the window.
        if let Some(accounts) = self.state.transport.accounts() {
            accounts.begin();
        }
        Ok(())
    }

    /// Runs the measured window from `zero` on. Returns the end of its last request, if any.
    pub async fn measure<K: Clock>(&self, zero: Instant) -> Option<Instant> {
        self.state.begin_measuring();
        let limit = Limit::of(self.spec.extent, self.share, zero);
        self.send::<K>(Phase::Measured, limit, zero).await;
        self.state.end_measuring()
    }

    /// The end of the last request so far, if the window was cut short.
    pub fn stop(&self) -> Option<Instant> {
        self.state.end_measuring()
    }

    /// Closes connections and returns the results.
    pub async fn finish(self) -> ThreadResults {
        let transport = self.state.transport.accounts().map(Accounts::totals);
        self.pool.close().await;
        let (recorder, first_failure) = self.state.take();
        let sent_again = self.state.sent_again();
        ThreadResults { recorder, first_failure, sent_again, configured: self.configured(), transport }
    }

    async fn send<K: Clock>(&self, phase: Phase, limit: Limit, start: Instant) {
        let period = Period { phase, start, limit, share: self.share };
        lanes::send::<T, K>(&self.state, &self.pool, &self.spec, period).await;
    }

    /// Opens and closes connections until each concurrent connection has a ticket.
    ///
    /// A server without tickets is no failure here: each sample records its connection's handshake.
    async fn prime(&self) -> Result<(), Failure> {
        if self.spec.resumption == Resumption::None {
            return Ok(());
        }
        let wanted = match (self.spec.connections, self.spec.schedule) {
            (ConnectionPolicy::Persistent { connections, .. }, _) => self.share.part32(connections) as usize,
            (ConnectionPolicy::PerRequest, Schedule::Closed { workers, .. }) => self.share.part32(workers) as usize,
            (ConnectionPolicy::PerRequest, Schedule::Open { .. }) => TICKETS_FOR_OPEN_LOOP,
        };
        let mut before = self.state.transport.tickets();
        while before < wanted {
            check::once(&self.state, self.state.requests.pick(), &mut |_| {}).await?;
            let now = self.state.transport.tickets();
            if now <= before {
                break;
            }
            before = now;
        }
        Ok(())
    }
}
