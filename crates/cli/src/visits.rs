//! Memory of the requests to foreign hosts, so that the limits hold for a user over all invocations.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp, Unit, tz::TimeZone};
use serde::{Deserialize, Serialize};
use wirelab_plan::polite;

use crate::failure::{Failure, Result};

/// Time after which a visit no longer counts.
const MEMORY: SignedDuration = SignedDuration::from_hours(1);

/// Requests or page loads that a command is about to send to a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Aim {
    /// The host of the URL.
    pub host: String,
    /// The protocol's token, or [`PAGES`].
    pub what: String,
}

/// [`Aim::what`] of page loads. The limit of page loads is over all protocols.
pub const PAGES: &str = "pages";

impl Aim {
    fn limit(&self) -> u64 {
        if self.what == PAGES { polite::LOADS.into() } else { polite::REQUESTS }
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
/// within an hour. `flag` is the option that lifts the limits.
pub fn admit(planned: &BTreeMap<Aim, u64>, flag: &str) -> Result {
    if planned.is_empty() {
        return Ok(());
    }
    let unusable = |why: String| {
        Failure::failed(format!(
            "cannot remember what foreign hosts are sent: {why}. Set XDG_STATE_HOME to a folder that can be written, or \
             confirm with {flag} that you may load the host"
        ))
    };
    let path = ledger().ok_or_else(|| unusable("neither XDG_STATE_HOME nor HOME is set".to_owned()))?;
    let now = Timestamp::now();
    match record(&path, planned, now) {
        Ok(None) => Ok(()),
        Ok(Some(excess)) => Err(Failure::input(excess.message(now, flag))),
        Err(error) => Err(unusable(format!("{}: {error}", path.display()))),
    }
}

/// The user's ledger.
fn ledger() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("wirelab/visits.jsonl"))
}

/// Why a host may not be visited now.
#[derive(Debug, PartialEq)]
struct Excess {
    aim: Aim,
    planned: u64,
    sent: u64,
    /// The time from which the planned requests are within the limit.
    next: Timestamp,
}

impl Excess {
    fn message(&self, now: Timestamp, flag: &str) -> String {
        let Self { aim, planned, sent, next } = self;
        let what = if aim.what == PAGES { "page loads".to_owned() } else { format!("requests of {}", aim.what) };
        let minutes = next.duration_since(now).as_secs() / 60 + 1;
        let clock = next.to_zoned(TimeZone::system()).round(Unit::Second);
        let clock = clock.map_or_else(|_| next.to_string(), |at| at.strftime("%H:%M:%S").to_string());
        format!(
            "{} got {sent} {what} from you within the last hour, and {planned} more exceed the {} that a host of another \
             owner gets. The next can go at {clock}, in {minutes} min; or confirm with {flag} that you may load the host",
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
    })?;
    Some(Excess { aim: aim.clone(), planned: count, sent, next: last.at + MEMORY })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aim(host: &str, what: &str) -> Aim {
        Aim { host: host.to_owned(), what: what.to_owned() }
    }

    fn one(host: &str, what: &str, count: u64) -> BTreeMap<Aim, u64> {
        [(aim(host, what), count)].into()
    }

    #[test]
    fn a_host_gets_no_more_than_the_limit_within_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wirelab/visits.jsonl");
        let begin: Timestamp = "2026-05-04T10:00:00Z".parse().unwrap();
        let after = |minutes: i64| begin + SignedDuration::from_mins(minutes);
        let visit = |minutes, host, what, count| record(&path, &one(host, what, count), after(minutes)).unwrap();
        assert_eq!(visit(0, "a.example", "h1", 20), None);
        assert_eq!(visit(10, "a.example", "h1", 10), None);
        let refused = visit(20, "a.example", "h1", 25).unwrap();
        assert_eq!((refused.sent, refused.planned, refused.next), (30, 25, after(70)), "both visits are in the way");
        let message = refused.message(after(20), "--flag");
        assert!(message.contains("a.example got 30 requests of h1") && message.contains("in 51 min"), "{message}");
        assert_eq!(visit(20, "a.example", "h1", 1).unwrap().next, after(60), "the first visit is in the way");
        // Other protocols, page loads and hosts have limits of their own.
        for (host, what) in [("a.example", "h2"), ("a.example", PAGES), ("b.example", "h1")] {
            assert_eq!(visit(20, host, what, 30), None, "{host} {what}");
        }
        assert_eq!(visit(60, "a.example", "h1", 20), None);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 5, "the first visit is forgotten");
    }

    #[test]
    fn nothing_is_recorded_of_a_refused_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("visits.jsonl");
        let now = Timestamp::UNIX_EPOCH;
        std::fs::write(&path, "damaged\n").unwrap();
        record(&path, &one("b.example", "h1", 30), now).unwrap();
        let both = [(aim("a.example", "h1"), 2), (aim("b.example", "h1"), 2)].into();
        assert!(record(&path, &both, now).unwrap().is_some());
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    }
}
