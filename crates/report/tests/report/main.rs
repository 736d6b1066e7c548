//! Reports in every format.

mod by_request;
mod fixture;
mod limits;
mod overhead;
mod page;
mod pipelines;
mod reports;
mod steady;
