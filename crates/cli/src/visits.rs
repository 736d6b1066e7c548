//! Memory of the requests to foreign hosts, so that the limits hold for a user over all invocations.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use wirelab_lab::endpoints::of_user;
use wirelab_model::protocol::Protocol;
use wirelab_plan::polite;

use crate::failure::{Failure, Result};

/// Time after which a visit no longer counts.
const MEMORY: SignedDuration = SignedDuration::from_hours(1);

/// The option that lifts the limits.
pub const FLAG: &str = "--i-may-load-these-hosts";

/// A host, and what it is sent. Each has a limit of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Aim {
    /// The host of the URL.
    pub host: String,
    /// The kind of visit.
    pub what: What,
}

/// A kind of visit, with limits of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Page loads, over all protocols.
    Pages,
    /// Requests of this protocol.
    Requests(Protocol),
}

impl Aim {
    fn limit(&self) -> u64 {
        match self.what {
            What::Pages => polite::LOADS.into(),
            What::Requests(_) => polite::REQUESTS,
        }
    }
}

/// A line of the ledger.
#[derive(Debug, Serialize, Deserialize)]
struct Visit {
    #[serde(flatten)]
    aim: Aim,
    count: u64,
    at: Timestamp,
}

/// Records what a command is about to send to foreign hosts, or refuses it if a host would get more than the limit
/// within an hour.
pub fn admit(planned: &BTreeMap<Aim, u64>) -> Result {
    if planned.is_empty() {
        return Ok(());
    }
    let unusable = |why: String| {
        Failure::failed(format!(
            "cannot remember what foreign hosts are sent: {why}. Set XDG_STATE_HOME to a folder that can be written, or \
             confirm with {FLAG} that you may load the host"
        ))
    };
    let path = ledger().ok_or_else(|| unusable("neither XDG_STATE_HOME nor HOME is set".to_owned()))?;
    let now = Timestamp::now();
    match record(&path, planned, now) {
        Ok(None) => Ok(()),
        Ok(Some(excess)) => Err(Failure::input(excess.message(now))),
        Err(error) => Err(unusable(format!("{}: {error}", path.display()))),
    }
}

/// The user's ledger.
fn ledger() -> Option<PathBuf> {
    Some(of_user("XDG_STATE_HOME", ".local/state")?.join("wirelab/visits.jsonl"))
}

/// Why a host may not be visited now.
#[derive(Debug, PartialEq)]
struct Excess {
    aim: Aim,
    planned: u64,
    sent: u64,
    /// The time from which the planned requests are within the limit; `None` if they exceed it by themselves.
    next: Option<Timestamp>,
}

impl Excess {
    fn message(&self, now: Timestamp) -> String {
        let Self { aim, planned, sent, next } = self;
        let what = match aim.what {
            What::Pages => "page loads".to_owned(),
            What::Requests(protocol) => format!("requests of {}", protocol.title()),
        };
        let when = next.map_or_else(
            || "Plan fewer".to_owned(),
            |next| {
                let minutes = next.duration_since(now).as_secs() / 60 + 1;
                let clock = next.to_zoned(TimeZone::system());
                format!("The next can go at {}, in {minutes} min", clock.strftime("%H:%M:%S"))
            },
        );
        format!(
            "{} got {sent} {what} from you within the last hour, and {planned} more exceed the {} that a host of another \
             owner gets. {when}; or confirm with {FLAG} that you may load the host",
            aim.host,
            aim.limit()
        )
    }
}

/// Adds the planned visits to the ledger, unless one of them exceeds its limit. Old visits are dropped.
fn record(path: &Path, planned: &BTreeMap<Aim, u64>, now: Timestamp) -> io::Result<Option<Excess>> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    // Until the file is closed, so that two commands at the same time do not both see the same remainder.
    file.lock()?;
    let mut visits = recent(&mut file, now)?;
    for (aim, count) in planned {
        if let Some(excess) = excess(&visits, aim, *count) {
            return Ok(Some(excess));
        }
    }
    visits.extend(planned.iter().map(|(aim, count)| Visit { aim: aim.clone(), count: *count, at: now }));
    let mut text = Vec::new();
    for visit in &visits {
        serde_json::to_writer(&mut text, visit)?;
        text.push(b'\n');
    }
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(&text)?;
    Ok(None)
}

/// The visits of the last hour, oldest first. Damaged lines do not count.
fn recent(file: &mut File, now: Timestamp) -> io::Result<Vec<Visit>> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let visits = text.lines().filter_map(|line| serde_json::from_str::<Visit>(line).ok());
    // A visit in the future is from before the clock was set back.
    let is_recent = |visit: &Visit| (SignedDuration::ZERO..MEMORY).contains(&now.duration_since(visit.at));
    Ok(visits.filter(is_recent).collect())
}

/// Why `count` more visits exceed the limit, or `None`.
fn excess(visits: &[Visit], aim: &Aim, count: u64) -> Option<Excess> {
    let of_aim = || visits.iter().filter(|visit| visit.aim == *aim);
    let sent: u64 = of_aim().map(|visit| visit.count).sum();
    let mut left = sent.saturating_add(count).saturating_sub(aim.limit());
    if left == 0 {
        return None;
    }
    // The first visit after whose end the rest is within the limit.
    let last = of_aim().find(|visit| {
        left = left.saturating_sub(visit.count);
        left == 0
    });
    Some(Excess { aim: aim.clone(), planned: count, sent, next: last.map(|visit| visit.at + MEMORY) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const H1: What = What::Requests(Protocol::H1);

    fn aim(host: &str, what: What) -> Aim {
        Aim { host: host.to_owned(), what }
    }

    fn one(host: &str, what: What, count: u64) -> BTreeMap<Aim, u64> {
        [(aim(host, what), count)].into()
    }

    #[test]
    fn a_host_gets_no_more_than_the_limit_within_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wirelab/visits.jsonl");
        let begin: Timestamp = "2026-05-04T10:00:00Z".parse().unwrap();
        let after = |minutes: i64| begin + SignedDuration::from_mins(minutes);
        let visit = |minutes, host, what, count| record(&path, &one(host, what, count), after(minutes)).unwrap();
        assert_eq!(visit(0, "a.example", H1, 20), None);
        assert_eq!(visit(10, "a.example", H1, 10), None);
        let refused = visit(20, "a.example", H1, 25).unwrap();
        assert_eq!(
            (refused.sent, refused.planned, refused.next),
            (30, 25, Some(after(70))),
            "both visits are in the way"
        );
        let message = refused.message(after(20));
        assert!(
            message.contains("a.example got 30 requests of HTTP/1.1") && message.contains("in 51 min"),
            "{message}"
        );
        assert_eq!(visit(20, "a.example", H1, 1).unwrap().next, Some(after(60)), "the first visit is in the way");
        assert_eq!(visit(20, "c.example", H1, 31).unwrap().next, None, "more than the limit is never admitted");
        // Other protocols, page loads and hosts have limits of their own.
        for (host, what) in [("a.example", What::Requests(Protocol::H2)), ("a.example", What::Pages), ("b.example", H1)]
        {
            assert_eq!(visit(20, host, what, 30), None, "{host} {what:?}");
        }
        assert_eq!(visit(60, "a.example", H1, 20), None);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 5, "the first visit is forgotten");
    }

    #[test]
    fn nothing_is_recorded_of_a_refused_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("visits.jsonl");
        let now = Timestamp::UNIX_EPOCH;
        std::fs::write(&path, "damaged\n").unwrap();
        record(&path, &one("b.example", H1, 30), now).unwrap();
        let both = [(aim("a.example", H1), 2), (aim("b.example", H1), 2)].into();
        assert!(record(&path, &both, now).unwrap().is_some());
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    }
}
