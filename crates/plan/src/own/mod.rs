//! Requests of users: their rules, and the requests that clients send, with the values of placeholders. Those of gRPC
//! are encoded by the descriptors of their service.

mod calls;
mod check;
pub mod curl;
mod data;
mod error;
#[cfg(test)]
mod fixture;
mod job;
mod message;
mod render;
mod schema;
mod template;

pub use check::check;
pub use curl::Found;
pub use error::RequestError;
pub(crate) use job::with_requests;
pub use message::MessageError;
pub use render::{Sources, Unreported, credentials, render};
pub use schema::SchemaError;
