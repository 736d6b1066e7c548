//! An application on a connection of tokio-quiche that also reports to its [`Line`].

use std::sync::Arc;

use tokio_quiche::metrics::Metrics;
use tokio_quiche::quic::{HandshakeInfo, QuicheConnection};
use tokio_quiche::{ApplicationOverQuic, QuicResult};

use crate::line::Line;

/// The application `A`, watched.
pub struct Watched<A> {
    application: A,
    line: Arc<Line>,
}

impl<A> Watched<A> {
    /// `application` on the connection of `line`.
    pub const fn new(application: A, line: Arc<Line>) -> Self {
        Self { application, line }
    }
}

impl<A> Drop for Watched<A> {
    fn drop(&mut self) {
        self.line.end();
    }
}

impl<A: ApplicationOverQuic> ApplicationOverQuic for Watched<A> {
    fn on_conn_established(&mut self, connection: &mut QuicheConnection, handshake: &HandshakeInfo) -> QuicResult<()> {
        self.line.begin(connection);
        self.application.on_conn_established(connection, handshake)
    }

    fn should_act(&self) -> bool {
        self.application.should_act()
    }

    async fn wait_for_data(&mut self, connection: &mut QuicheConnection) -> QuicResult<()> {
        // All pending packets were sent before.
        self.line.look(connection);
        tokio::select! {
            biased;
            result = self.application.wait_for_data(connection) => return result,
            code = self.line.is_to_close() => {
                // An error: it is closed already.
                let _ = connection.close(true, code, b"");
            }
        }
        Ok(())
    }

    fn process_reads(&mut self, connection: &mut QuicheConnection) -> QuicResult<()> {
        self.application.process_reads(connection)
    }

    fn process_writes(&mut self, connection: &mut QuicheConnection) -> QuicResult<()> {
        self.application.process_writes(connection)
    }

    fn on_conn_close<M: Metrics>(&mut self, connection: &mut QuicheConnection, metrics: &M, result: &QuicResult<()>) {
        self.line.look(connection);
        self.application.on_conn_close(connection, metrics, result);
    }
}
