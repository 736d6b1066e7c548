//! The protocols `grpcc` (with prior knowledge) and `grpc`: tonic's calls on the connections of `http2_channel.rs`.

use std::error::Error;
use std::rc::Rc;
use std::time::Instant;

use http::uri::PathAndQuery;
use http::{HeaderMap, Uri};
use prost::Message;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::heron;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::ClientSpec;

use crate::client::grpc_wire::{ServerError, Wire};
use crate::client::http::Recipe;
use crate::client::http2_channel::{Channel, Channels};
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::grpc::Numbers;
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

const ATTEMPT: &str = "calling by gRPC";

/// Opens connections for gRPC.
pub(crate) struct GrpcTransport {
    channels: Channels,
    call: Rc<Call>,
}

/// The call that every connection makes.
struct Call {
    number: f64,
    /// The correct answer; NaN if the server should refuse the call.
    root: f64,
    /// Scheme and authority.
    origin: Uri,
    method: PathAndQuery,
    metadata: HeaderMap,
}

/// A handle to a connection that carries calls.
pub(crate) struct GrpcConnection {
    client: Grpc<Wire>,
    channel: Channel<Body>,
    call: Rc<Call>,
}

impl Call {
    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let path = &spec.request.path;
        let number = heron::number(path)
            .ok_or_else(|| Refusal::unsupported(format!("the path `{path}`: gRPC supports only `/heron/NUMBER`")))?;
        let (asked, size) = (spec.request.body_size, number.encoded_len() as u64);
        if asked != size {
            let why = format!("`body_size` is {asked}; the message that holds {number} has {size} bytes");
            return Err(Refusal::unsupported(why));
        }
        let (head, ()) = Recipe::new(spec)?.head().into_parts();
        let mut place = head.uri.into_parts();
        place.path_and_query = Some(PathAndQuery::from_static("/"));
        let origin =
            Uri::from_parts(place).map_err(|error| Refusal::failed(format!("the address of the server: {error}")))?;
        let method = PathAndQuery::from_static(heron::METHOD);
        Ok(Self { number, root: heron::root(number), origin, method, metadata: head.headers })
    }

    fn request(&self) -> Request<f64> {
        let mut request = Request::new(self.number);
        if !self.metadata.is_empty() {
            *request.metadata_mut() = MetadataMap::from_headers(self.metadata.clone());
        }
        request
    }
}

impl Transport for GrpcTransport {
    type Connection = GrpcConnection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        Ok(Self { channels: Channels::new(spec)?, call: Rc::new(Call::new(spec)?) })
    }

    async fn connect(&self) -> Result<Opened<GrpcConnection>, Failure> {
        let Opened { connection: channel, connected, ready } = self.channels.open().await?;
        let client = Grpc::with_origin(Wire(channel.sender.clone()), self.call.origin.clone());
        let connection = GrpcConnection { client, channel, call: Rc::clone(&self.call) };
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

impl Connection for GrpcConnection {
    async fn request(&mut self, _: usize, sink: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let Self { client, channel, call } = self;
        let failed = |status: Status| failure(channel, &status);
        client.ready().await.map_err(|error| failed(Status::from_error(error)))?;
        // On the wire this is a unary call; tonic's `unary` does not report the beginning of the answer.
        let response = client.server_streaming(call.request(), call.method.clone(), Numbers).await.map_err(failed)?;
        let first_byte = Instant::now();
        let mut answers = response.into_inner();
        let answer = answers.message().await.map_err(failed)?.ok_or_else(|| broken("has no message"))?;
        if answers.message().await.map_err(failed)?.is_some() {
            return Err(broken("has more than one message"));
        }
        let last_byte = Instant::now();
        if let Some(sink) = sink {
            sink(&answer.number.encode_to_vec());
        }
        if answer.number != call.root {
            let message = format!("the answer to {} is {} instead of {}", call.number, answer.number, call.root);
            return Err(Failure::new(ErrorKind::Digest, message));
        }
        Ok(Answer { first_byte, last_byte, bytes_in: answer.bytes, status: None })
    }

    fn is_open(&self) -> bool {
        self.channel.is_open()
    }

    fn another(&self) -> Option<Self> {
        let (client, channel) = (self.client.clone(), self.channel.another());
        Some(Self { client, channel, call: Rc::clone(&self.call) })
    }

    fn handshake(&self) -> Option<Handshake> {
        self.channel.handshake()
    }

    async fn close(self) {
        // The client holds a handle too, which would keep the connection open.
        drop(self.client);
        self.channel.close().await;
    }
}

/// Converts an error status.
fn failure(channel: &Channel<Body>, status: &Status) -> Failure {
    let source = status.source();
    if let Some(ServerError(failure)) = source.and_then(|source| source.downcast_ref()) {
        return failure.clone();
    }
    match source.and_then(|source| source.downcast_ref()) {
        Some(error) => channel.failure(ATTEMPT, error),
        None => Failure::new(ErrorKind::Protocol, format!("{ATTEMPT}: {}", status.message())),
    }
}

fn broken(how: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, format!("{ATTEMPT}: the answer {how}"))
}
