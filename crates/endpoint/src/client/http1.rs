//! The protocols `h1c` and `h1`.
//!
//! An HTTP/1.1 connection carries one request at a time, so its driver needs no task of its own. The waiting request
//! polls the driver, which saves wake-ups between two tasks on every request.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use hyper::Response;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::task::coop::consume_budget;
use tokio::time::timeout;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::requests::prepare;

use crate::client::failure::{self, final_status};
use crate::client::http::Recipe;
use crate::client::http_body::OutgoingBody;
use crate::client::stream::{Dialed, Dialer, Proof, Stream, TICKET_WAIT};
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// Opens HTTP/1.1 connections.
pub(crate) struct Http1Transport {
    dialer: Dialer,
    recipes: Rc<Vec<Recipe>>,
}

/// An HTTP/1.1 connection.
pub(crate) struct Http1Connection {
    sender: SendRequest<OutgoingBody>,
    /// Also polled to test whether the connection is open.
    driver: RefCell<Driver>,
    recipes: Rc<Vec<Recipe>>,
    proof: Rc<Proof>,
    wants_tickets: bool,
}

/// Moves bytes between a connection and its requests, only when polled.
struct Driver {
    connection: Pin<Box<http1::Connection<TokioIo<Stream>, OutgoingBody>>>,
    ended: Option<Result<(), hyper::Error>>,
}

impl Driver {
    fn poll(&mut self, cx: &mut Context<'_>) {
        if self.ended.is_none()
            && let Poll::Ready(result) = self.connection.as_mut().poll(cx)
        {
            self.ended = Some(result);
        }
    }

    /// Drives the connection until `future` completes.
    async fn until<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            self.poll(cx);
            future.as_mut().poll(cx)
        })
        .await
    }

    /// The error of the connection itself, which is more precise than the error of the request.
    fn failure(&mut self, attempt: &str, error: &hyper::Error) -> Failure {
        match &self.ended {
            Some(Err(cause)) => failure::http(attempt, cause),
            _ => failure::http(attempt, error),
        }
    }
}

impl Transport for Http1Transport {
    type Connection = Http1Connection;

    const OWN_REQUESTS: bool = true;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        Ok(Self { dialer: Dialer::new(spec)?, recipes: Rc::new(prepare(spec, Recipe::new)?) })
    }

    async fn connect(&self) -> Result<Opened<Http1Connection>, Failure> {
        let Dialed { stream, connected, ready } = self.dialer.dial().await?;
        let proof = stream.proof();
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| failure::http("starting HTTP/1.1", &error))?;
        let connection = Http1Connection {
            sender,
            driver: RefCell::new(Driver { connection: Box::pin(connection), ended: None }),
            recipes: Rc::clone(&self.recipes),
            proof,
            wants_tickets: self.dialer.wants_tickets(),
        };
        Ok(Opened { connection, connected, ready })
    }

    fn configured(&self) -> Configured {
        self.dialer.configured()
    }

    fn tickets(&self) -> usize {
        self.dialer.tickets()
    }

    fn accounts(&self) -> Option<&Accounts> {
        Some(self.dialer.accounts())
    }
}

impl Connection for Http1Connection {
    async fn request(&mut self, number: usize, mut sink: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let driver = self.driver.get_mut();
        if let Err(error) = driver.until(self.sender.ready()).await {
            return Err(driver.failure("sending the request", &error));
        }
        self.proof.expect_head();
        let sent = self.sender.send_request(self.recipes[number].request());
        let response = driver.until(sent).await;
        self.proof.has_head();
        let response: Response<Incoming> = match response {
            Ok(response) => response,
            Err(error) => return Err(driver.failure("waiting for the response", &error)),
        };
        let first_byte = Instant::now();
        let status = final_status(response.status())?;
        let mut body = response.into_body();
        let mut bytes_in = 0;
        while !body.is_end_stream() {
            // Many small pieces may arrive at once; the deadline must be looked at between them.
            consume_budget().await;
            match driver.until(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx))).await {
                None => break,
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        bytes_in += data.len() as u64;
                        if let Some(sink) = &mut sink {
                            sink(data);
                        }
                    }
                }
                Some(Err(error)) => return Err(driver.failure("receiving the response", &error)),
            }
        }
        Ok(Answer { first_byte, last_byte: Instant::now(), bytes_in, status: Some(status) })
    }

    fn is_open(&self) -> bool {
        // The server may have closed the connection since the last response, or announced a close. The next request
        // polls again, so this poll needs no waker.
        let mut driver = self.driver.borrow_mut();
        driver.poll(&mut Context::from_waker(Waker::noop()));
        driver.ended.is_none() && !self.sender.is_closed()
    }

    fn another(&self) -> Option<Self> {
        None
    }

    fn handshake(&self) -> Option<Handshake> {
        self.proof.handshake()
    }

    async fn close(self) {
        let Self { sender, driver, proof, wants_tickets, .. } = self;
        let mut driver = driver.into_inner();
        if wants_tickets && !proof.has_ticket() {
            let ticket = poll_fn(|cx| {
                driver.poll(cx);
                if proof.has_ticket() || driver.ended.is_some() { Poll::Ready(()) } else { Poll::Pending }
            });
            // Without a ticket the next connection has a full handshake, and its sample says so.
            let _ = timeout(TICKET_WAIT, ticket).await;
        }
        // Without a sender the driver shuts the connection down and ends.
        drop(sender);
        let end = poll_fn(|cx| {
            driver.poll(cx);
            if driver.ended.is_some() { Poll::Ready(()) } else { Poll::Pending }
        });
        let _ = timeout(TICKET_WAIT, end).await;
    }
}
