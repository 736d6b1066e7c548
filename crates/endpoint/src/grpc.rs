//! The service of `contract/heron.proto`, for both roles: encoding of its messages.
//!
//! Both messages are protobuf's own `DoubleValue`, an `f64` in prost, so that no code is generated from the proto.

use bytes::Buf;
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// A received message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Received {
    /// Its content.
    pub number: f64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Encodes and decodes messages.
#[derive(Debug, Clone, Copy)]
pub struct Numbers;

impl Codec for Numbers {
    type Encode = f64;
    type Decode = Received;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Numbers {
    type Item = f64;
    type Error = Status;

    fn encode(&mut self, number: f64, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Message::encode(&number, buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Numbers {
    type Item = Received;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Received>, Status> {
        let bytes = buffer.remaining() as u64;
        let number = <f64 as Message>::decode(buffer).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Some(Received { number, bytes }))
    }
}
