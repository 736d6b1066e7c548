//! The protocols `h2c` (with prior knowledge) and `h2`.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Instant;

use hyper::body::{Body, Incoming};
use tokio::task::coop::consume_budget;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::requests::prepare;

use crate::client::failure::final_status;
use crate::client::http::Recipe;
use crate::client::http_body::OutgoingBody;
use crate::client::http2_channel::{Channel, Channels};
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// Opens HTTP/2 connections.
pub(crate) struct Http2Transport {
    channels: Channels,
    recipes: Rc<Vec<Recipe>>,
}

/// A handle to an HTTP/2 connection.
pub(crate) struct Http2Connection {
    channel: Channel<OutgoingBody>,
    turned_away: bool,
    recipes: Rc<Vec<Recipe>>,
}

impl Transport for Http2Transport {
    type Connection = Http2Connection;

    const OWN_REQUESTS: bool = true;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        Ok(Self { channels: Channels::new(spec)?, recipes: Rc::new(prepare(spec, Recipe::new)?) })
    }

    async fn connect(&self) -> Result<Opened<Http2Connection>, Failure> {
        let Opened { connection: channel, connected, ready } = self.channels.open().await?;
        let connection = Http2Connection { channel, turned_away: false, recipes: Rc::clone(&self.recipes) };
        Ok(Opened { connection, connected, ready })
    }

    fn configured(&self) -> Configured {
        self.channels.configured()
    }

    fn tickets(&self) -> usize {
        self.channels.tickets()
    }

    fn accounts(&self) -> Option<&Accounts> {
        Some(self.channels.accounts())
    }
}

impl Connection for Http2Connection {
    async fn request(&mut self, number: usize, mut sink: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let Self { channel, turned_away, recipes } = self;
        let mut failed = |channel: &Channel<OutgoingBody>, attempt: &str, error: hyper::Error| {
            *turned_away = channel.turns_away(&error);
            channel.failure(attempt, &error)
        };
        let ready = channel.sender.ready().await;
        ready.map_err(|error| failed(channel, "sending the request", error))?;
        let sent = channel.sender.send_request(recipes[number].request());
        let response = sent.await.map_err(|error| failed(channel, "waiting for the response", error))?;
        let first_byte = Instant::now();
        let status = final_status(response.status())?;
        let mut body: Incoming = response.into_body();
        let mut bytes_in = 0;
        while !body.is_end_stream() {
            // As in HTTP/1.1: the deadline must be looked at between pieces.
            consume_budget().await;
            let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await else { break };
            let frame = frame.map_err(|error| channel.failure("receiving the response", &error))?;
            if let Some(data) = frame.data_ref() {
                bytes_in += data.len() as u64;
                if let Some(sink) = &mut sink {
                    sink(data);
                }
            }
        }
        Ok(Answer { first_byte, last_byte: Instant::now(), bytes_in, status: Some(status) })
    }

    fn was_turned_away(&self) -> bool {
        self.turned_away
    }

    fn is_open(&self) -> bool {
        self.channel.is_open()
    }

    fn another(&self) -> Option<Self> {
        Some(Self { channel: self.channel.another(), turned_away: false, recipes: Rc::clone(&self.recipes) })
    }

    fn handshake(&self) -> Option<Handshake> {
        self.channel.handshake()
    }

    async fn close(self) {
        self.channel.close().await;
    }
}
