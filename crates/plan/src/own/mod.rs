//! Requests of users: their rules, and the requests that clients send, with the values of placeholders.

mod check;
mod data;
mod error;
mod job;
mod render;
mod template;

pub use check::check;
pub use error::RequestError;
pub(crate) use job::with_requests;
pub use render::{Sources, render};
