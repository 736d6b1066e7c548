//! Null references: the same client against a server that answers at once, which shows what the client costs itself.
//!
//! A reference trial repeats a cell with the null server in place of its server. Reference trials are no part of the
//! plan and of no estimate; they have entries of their own in the journal.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::plan::{Course, ENGINE, Job, Reach, Target, Work};
use crate::protocol::Protocol;
use crate::settings::Exchange;
use crate::units::{Share, Span};

/// The null references of a run, decided when it is created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct References {
    /// Largest share of the time of all trials.
    pub time: Share,
    /// By cell number.
    pub cells: Vec<CellReference>,
}

/// The null reference of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellReference {
    /// The first cell whose trials against the null server are the same as those of this cell: cells that differ in
    /// their server only share their reference.
    Shared(usize),
    /// It has none.
    Nothing(NotReferenced),
}

/// The reason why a cell has no null reference.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum NotReferenced {
    /// The study or the user switched them off.
    #[error("null references are switched off (`references = \"0 %\"`)")]
    SwitchedOff,
    /// The null server does not support the protocol.
    #[error("the null server does not support `{protocol}`")]
    Protocol { protocol: Protocol },
    /// The lab or this wirelab cannot start the null server.
    #[error("the null server is not available in this lab")]
    NoNullServer,
    /// wirelab does not start the server.
    #[error("wirelab does not start the server of a site")]
    Site,
    /// The work is a page load.
    #[error("the null server has no pages")]
    Page,
    /// The user describes the requests.
    #[error("the requests are your own, and the null server does not know their answers")]
    OwnRequests,
    /// The client is a program of the user.
    #[error("the client is your program, whose requests wirelab does not see")]
    OwnClient,
    /// The server waits on request.
    #[error("the request asks for a delay, and the null server answers at once")]
    Delay,
    /// The trial has a timeline.
    #[error("a timeline changes the conditions during the trial")]
    Timeline,
    /// Requests pass through proxies, several servers share them, or the server has another protocol.
    #[error("requests pass through sidecars, or several servers share them")]
    Indirect,
    /// The server asks clients for new connections.
    #[error("the server limits the age of connections")]
    Aging,
}

impl References {
    /// The numbers of the cells whose jobs the reference trials repeat, in ascending order.
    #[must_use]
    pub fn repeated(&self) -> Vec<usize> {
        let own = self.cells.iter().enumerate();
        own.filter(|(number, cell)| **cell == CellReference::Shared(*number)).map(|(number, _)| number).collect()
    }
}

/// The job of a cell's reference trial: the same with the null server.
///
/// # Errors
/// If a server that answers at once cannot replace the server of the cell.
pub fn job(job: &Job) -> Result<Job, NotReferenced> {
    match &job.work {
        Work::Requests(requests) if requests.exchange == Exchange::Delay => return Err(NotReferenced::Delay),
        Work::Requests(_) => {}
        Work::Page(_) => return Err(NotReferenced::Page),
        Work::Own(_) => return Err(NotReferenced::OwnRequests),
    }
    if job.own_client.is_some() {
        return Err(NotReferenced::OwnClient);
    }
    let mut job = job.clone();
    let Target::Servers(servers) = &mut job.target else { return Err(NotReferenced::Site) };
    if job.course != Course::Steady {
        return Err(NotReferenced::Timeline);
    }
    let proxied = matches!(servers.reach, Reach::Mesh(_) | Reach::ControlPlane(_)) || servers.protocol.is_some();
    if proxied || servers.places.count() != 1 {
        return Err(NotReferenced::Indirect);
    }
    if servers.max_connection_age.is_some() {
        return Err(NotReferenced::Aging);
    }
    (servers.endpoint, servers.command, servers.added_work) = (ENGINE.to_owned(), None, Span(0));
    Ok(job)
}
