//! Reports: pure functions from a run's manifest, journal, samples and analysis to text.
//!
//! No function here reads a file or a clock. The same run folder gives the same report on every machine.

mod between;
mod by_request;
mod charts;
mod claims;
mod columns;
mod contests;
mod csv;
mod failures;
mod fate;
mod figures;
mod github;
mod grid;
mod history;
mod html;
mod input;
mod interaction;
mod json;
mod junit;
mod layout;
mod links;
mod markdown;
mod means;
mod no_requests;
mod numbers;
mod openmetrics;
mod overhead;
mod pairs;
mod planted;
mod processors;
mod published;
mod requirements;
mod shares;
mod source;
mod summary;
mod tally;
mod terminal;
mod tile;
mod warnings;
mod words;

pub use crate::between::{Sides, between_json, between_terminal, failed_changes};
pub use crate::by_request::OfRequest;
pub use crate::csv::{cells_csv, comparisons_csv, contests_csv, pairs_csv};
pub use crate::github::github;
pub use crate::history::{History, HistoryRun, Series, history_csv, history_json, history_terminal};
pub use crate::html::html;
pub use crate::input::{Input, Pooled};
pub use crate::json::{SCHEMA_VERSION, json};
pub use crate::junit::junit;
pub use crate::links::links;
pub use crate::markdown::markdown;
pub use crate::no_requests::NoRequests;
pub use crate::openmetrics::openmetrics;
pub use crate::requirements::{failed_requirements, unmet_requirements};
pub use crate::terminal::terminal;
