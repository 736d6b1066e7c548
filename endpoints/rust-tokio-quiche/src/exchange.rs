//! Requests of a client by HTTP/3. tokio-quiche reports on all of a connection's requests on one channel, from which a
//! task gives each request its own events.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use quiche::h3::{Header, WireErrorCode};
use tokio::sync::oneshot;
use tokio_quiche::http3::driver::{
    ClientEventStream, ClientH3Command, ClientH3Controller, ClientH3Event, ClientRequestSender, H3Command, H3Event,
    InboundFrame, IncomingH3Headers, NewClientRequest, OutboundFrame, OutboundFrameSender, RequestSender,
    StreamShutdown,
};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::{Answer, ClientSpec, Failure, Recipe, Refusal, RequestProtocol, Sink, piece};
use wirelab_quiche::{number, request};

use crate::client::{Dialer, Http, Link};
use crate::frames::put;

/// The action that a failure names.
const ATTEMPT: &str = "sending a request by HTTP/3";

/// The code that gives up a request.
const CANCELLED: u64 = WireErrorCode::RequestCancelled as u64;

/// The request to send.
pub struct Order {
    /// Pseudo-header fields first.
    fields: Vec<Header>,
    /// Bytes of body.
    body: u64,
}

/// HTTP/3 on a connection.
pub struct Requests {
    requests: ClientRequestSender,
    table: Rc<Table>,
    next: Cell<u64>,
}

impl RequestProtocol<Dialer<Http>> for Requests {
    type Order = Order;

    fn order(spec: &ClientSpec) -> Result<Order, Refusal> {
        let recipe = Recipe::new(spec)?;
        Ok(Order { fields: request(&recipe), body: recipe.body_size() })
    }

    async fn begin(mut controller: ClientH3Controller, _: &Link<Http>) -> Result<Self, Failure> {
        let requests = controller.request_sender();
        let table =
            Table { commands: controller.h3_cmd_sender(), waiting: RefCell::default(), streams: RefCell::default() };
        let table = Rc::new(table);
        // Ends with the connection.
        tokio::task::spawn_local(distribute(controller.take_event_receiver(), Rc::clone(&table)));
        Ok(Self { requests, table, next: Cell::new(0) })
    }

    async fn request(
        &self,
        _: &Dialer<Http>,
        link: &Link<Http>,
        order: &Order,
        body: Option<Sink<'_>>,
    ) -> Result<Answer, Failure> {
        tokio::select! {
            biased;
            result = self.exchange(order, body) => result.map_err(|failure| link.line.failure_or(failure)),
            // Its driver runs on for a while, and would report nothing more.
            failure = link.line.over() => Err(failure),
        }
    }
}

impl Requests {
    async fn exchange(&self, order: &Order, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let number = self.next.replace(self.next.get() + 1);
        let (head, arrives) = oneshot::channel();
        let (body_writer, writer) = if order.body == 0 { (None, None) } else { split(oneshot::channel()) };
        self.table.waiting.borrow_mut().insert(number, Waiting { head: Some(head), stream: None });
        // Where the future is dropped at its deadline, the stream is given up.
        let in_flight = InFlight { table: &self.table, number, is_over: Cell::new(false) };
        let request = NewClientRequest { request_id: number, headers: order.fields.clone(), body_writer };
        self.requests.send(request).map_err(|_| lost())?;
        let answer = match writer {
            None => receive(arrives, body).await?,
            Some(writer) => {
                let sending = async {
                    send(writer, order.body).await;
                    Ok::<(), Failure>(())
                };
                // At the same time, or an echo larger than the flow-control windows would never end.
                tokio::try_join!(sending, receive(arrives, body))?.1
            }
        };
        in_flight.is_over.set(true);
        Ok(answer)
    }
}

fn split<S, R>((sender, receiver): (S, R)) -> (Option<S>, Option<R>) {
    (Some(sender), Some(receiver))
}

fn lost() -> Failure {
    Failure::new(ErrorKind::Reset, format!("{ATTEMPT}: the connection is closed"))
}

/// Sends a body. If the server does not want the rest (RFC 9114, section 4.1), its response decides.
async fn send(writer: oneshot::Receiver<OutboundFrameSender>, size: u64) {
    let Ok(mut writer) = writer.await else { return };
    let mut sent = 0;
    while sent < size {
        let piece = piece(sent, size - sent);
        sent += piece.len() as u64;
        if put(&mut writer, OutboundFrame::Body(piece, sent == size)).await.is_none() {
            return;
        }
    }
}

/// The begin of a response: its moment and its head.
type Head = Result<(Instant, IncomingH3Headers), Failure>;

async fn receive(head: oneshot::Receiver<Head>, mut body: Option<Sink<'_>>) -> Result<Answer, Failure> {
    let (first_byte, IncomingH3Headers { headers, mut recv, read_fin, .. }) = head.await.map_err(|_| lost())??;
    let (mut bytes_in, mut is_whole) = (0, read_fin);
    while !is_whole {
        match recv.recv().await {
            Some(InboundFrame::Body(piece, is_last)) => {
                bytes_in += piece.len() as u64;
                if let Some(body) = &mut body {
                    body(&piece);
                }
                is_whole = is_last;
            }
            Some(InboundFrame::Datagram(_)) => {}
            None => return Err(reset()),
        }
    }
    let last_byte = Instant::now();
    if let Some(announced) = number::<u64>(&headers, b"content-length").filter(|announced| bytes_in < *announced) {
        let message = format!("{ATTEMPT}: the response ended after {bytes_in} of {announced} bytes");
        return Err(Failure::new(ErrorKind::Truncated, message));
    }
    Ok(Answer { first_byte, last_byte, bytes_in, status: number(&headers, b":status") })
}

fn reset() -> Failure {
    Failure::new(ErrorKind::Reset, format!("{ATTEMPT}: the server reset the stream"))
}

/// The requests in flight.
struct Table {
    commands: RequestSender<ClientH3Command, H3Command>,
    /// By their numbers.
    waiting: RefCell<HashMap<u64, Waiting>>,
    /// The numbers of those whose response has not begun, by stream.
    streams: RefCell<HashMap<u64, u64>>,
}

struct Waiting {
    /// The request that waits for the head of the response, until it comes.
    head: Option<oneshot::Sender<Head>>,
    /// The stream, once the request was sent.
    stream: Option<u64>,
}

impl Table {
    /// A request was sent.
    fn sent(&self, number: u64, stream: u64) {
        match self.waiting.borrow_mut().get_mut(&number) {
            Some(waiting) => {
                waiting.stream = Some(stream);
                self.streams.borrow_mut().insert(stream, number);
            }
            // It was given up in the meantime.
            None => self.give_up(stream),
        }
    }

    /// The response on a stream begins, or will not.
    fn answer(&self, stream: u64, head: Head) {
        let number = self.streams.borrow_mut().remove(&stream);
        let mut waiting = self.waiting.borrow_mut();
        let waiting = number.and_then(|number| waiting.get_mut(&number)?.head.take());
        if let Some(waiting) = waiting {
            // No receiver: the request was given up.
            let _ = waiting.send(head);
        }
    }

    fn give_up(&self, stream: u64) {
        let shutdown = StreamShutdown::Both { read_error_code: CANCELLED, write_error_code: CANCELLED };
        // No receiver: the connection is over, and the stream with it.
        let _ = self.commands.send(H3Command::ShutdownStream { stream_id: stream, shutdown });
    }
}

/// A request whose stream is given up unless it ended.
struct InFlight<'a> {
    table: &'a Table,
    number: u64,
    is_over: Cell<bool>,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let waiting = self.table.waiting.borrow_mut().remove(&self.number);
        if let Some(stream) = waiting.and_then(|waiting| waiting.stream).filter(|_| !self.is_over.get()) {
            self.table.streams.borrow_mut().remove(&stream);
            self.table.give_up(stream);
        }
    }
}

/// Gives each request its own events, until the connection is over.
async fn distribute(mut events: ClientEventStream, table: Rc<Table>) {
    while let Some(event) = events.recv().await {
        match event {
            ClientH3Event::NewOutboundRequest { stream_id, request_id } => table.sent(request_id, stream_id),
            ClientH3Event::Core(H3Event::IncomingHeaders(headers)) => {
                table.answer(headers.stream_id, Ok((Instant::now(), headers)));
            }
            ClientH3Event::Core(H3Event::ResetStream { stream_id }) => table.answer(stream_id, Err(reset())),
            // Bodies carry their own events; the line reports on the connection.
            ClientH3Event::Core(_) => {}
        }
    }
    table.waiting.borrow_mut().clear();
}
