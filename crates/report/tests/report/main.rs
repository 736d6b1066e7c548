//! Reports in every format.

mod fixture;
mod overhead;
mod page;
mod pipelines;
mod reports;
