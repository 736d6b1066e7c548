//! Checks a timeline: by itself, and in a cell.

use std::collections::HashSet;

use wirelab_model::network::Servers;
use wirelab_model::plan::{Course, Job, Reach, Target};
use wirelab_model::settings::MAX_CLIENTS;
use wirelab_model::spec::{Extent, Recording};
use wirelab_model::timeline::{Action, Change, Lifetimes, Timeline};

use crate::check::label;
use crate::error::StudyError;
use crate::limits::MAX_ACTIONS;
use crate::locate::{Step, steps};
use crate::words::{nearest, one_of};

type Checked = Result<(), StudyError>;

/// Checks the table `[timeline]` as written.
pub(crate) fn check(timeline: &Timeline) -> Checked {
    if timeline.actions.is_empty() {
        let message = "a timeline without actions changes nothing; add one, for example \
                       `actions = [{ name = \"T2\", at = \"50 %\", clients = 30 }]`, or leave the table out";
        return Err(StudyError::new(message).at_key(steps!["timeline"]));
    }
    for (list, entries) in [("actions", timeline.actions.len()), ("windows", timeline.windows.len())] {
        if entries > MAX_ACTIONS {
            let message = format!("{entries} {list}, at most {MAX_ACTIONS}");
            return Err(StudyError::new(message).at_key(steps!["timeline", list]));
        }
    }
    let mut names = HashSet::new();
    for (index, one) in timeline.actions.iter().enumerate() {
        let place = steps!["timeline", "actions", index];
        let before = index.checked_sub(1).map(|before| &timeline.actions[before]);
        action(one, before, &place)?;
        if !names.insert(&one.name) {
            let message = format!("two actions have the name `{}`", one.name);
            return Err(StudyError::new(message).at([&place[..], &steps!["name"]].concat()));
        }
    }
    timeline.windows.keys().try_for_each(|name| window(timeline, name))
}

fn action(action: &Action, before: Option<&Action>, place: &[Step]) -> Checked {
    let at = |key: &str| [place, &steps![key]].concat();
    label("action", &action.name).map_err(|error| error.at(at("name")))?;
    if !(action.at.0 > 0.0 && action.at.0 < 1.0) {
        let message =
            format!("`at` is {}, but must be within the measured window: above 0 % and below 100 %", action.at);
        return Err(StudyError::new(message).at(at("at")));
    }
    if let Some(before) = before.filter(|before| before.at >= action.at) {
        let message = format!("`{}` is not after `{}`; put the actions in the order of time", action.name, before.name);
        return Err(StudyError::new(message).at(at("at")));
    }
    match action.change() {
        None => {
            let message = format!(
                "the action `{}` has to set exactly one of `servers`, `clients`, `restart`, `kill` and `drain`",
                action.name
            );
            Err(StudyError::new(message).at(at("name")))
        }
        Some(Change::Clients(0)) => {
            let message = "`clients` is 0, but a trial without clients measures nothing; set it to 1 or more";
            Err(StudyError::new(message).at(at("clients")))
        }
        Some(Change::Clients(count)) if count > MAX_CLIENTS => {
            let message = format!("`clients` is {count}, but must be at most {MAX_CLIENTS}");
            Err(StudyError::new(message).at(at("clients")))
        }
        Some(_) => Ok(()),
    }
}

fn window(timeline: &Timeline, name: &str) -> Checked {
    let place = steps!["timeline", "windows", name];
    label("window", name).map_err(|error| error.at_key(place.to_vec()))?;
    let part = &timeline.windows[name];
    let number = |key: &str, action: &Option<String>| {
        let Some(action) = action else { return Ok(None) };
        let found = timeline.actions.iter().position(|one| one.name == *action);
        found.map(Some).ok_or_else(|| {
            let known: Vec<_> = timeline.actions.iter().map(|action| &action.name).collect();
            let message = format!("the timeline has no action `{action}`, only {}", one_of(&known));
            let meant = nearest(action, known.iter().map(|name| name.as_str()));
            StudyError::new(message).meant(meant).at([&place[..], &steps![key]].concat())
        })
    };
    match (number("from", &part.from)?, number("to", &part.to)?) {
        (Some(from), Some(to)) if from >= to => {
            let message = format!("the window `{name}` ends where it begins, or before");
            Err(StudyError::new(message).at([&place[..], &steps!["to"]].concat()))
        }
        _ => Ok(()),
    }
}

/// Adds the study's timeline to a job.
///
/// # Errors
/// If the timeline is invalid in this cell; the message says what to change.
pub(crate) fn with_timeline(job: Job, timeline: Option<&Timeline>) -> Result<Job, StudyError> {
    let Some(timeline) = timeline else { return Ok(job) };
    if !matches!(job.load.extent, Extent::DurationNs(_)) {
        return Err(StudyError::new(
            "a timeline needs a window of a known length; set `duration` in place of `requests`",
        ));
    }
    if job.load.recording != Recording::Samples {
        return Err(StudyError::new("a timeline needs the time of each response; set `recording = \"samples\"`"));
    }
    if job.load.clients > 1 {
        return Err(StudyError::new(format!(
            "`clients` is {}, but with a timeline each client runs the whole workload; remove it, and set the number \
             of clients in an action (`clients = 30`)",
            job.load.clients
        )));
    }
    if job.load.until_steady {
        return Err(StudyError::new(
            "with a timeline clients start within the window, and cannot warm up until response times are steady; set \
             `warm_up` to a time",
        ));
    }
    let Target::Servers(servers) = &job.target else {
        return Err(StudyError::new(
            "a timeline needs servers that are started here; leave `site` or `[timeline]` out",
        ));
    };
    let (is_single, places) = (servers.reach == Reach::Server, servers.places);
    let mut job = job;
    for action in &timeline.actions {
        let name = &action.name;
        match action.change() {
            Some(Change::Servers(_) | Change::Kill(_) | Change::Drain(_)) if is_single => {
                return Err(StudyError::new(format!(
                    "the action `{name}` needs an address that can stand for other servers; set `network = \"overlay\"` \
                     and `address` to `service` or `headless`"
                )));
            }
            Some(Change::Servers(wanted)) if wanted.near != places.near => {
                let near = Servers { far: wanted.far.max(1), ..places };
                return Err(StudyError::new(format!(
                    "the action `{name}` changes the number of `near` servers, but only `far` servers can come and go: \
                     `servers = \"{near}\"`, for example"
                )));
            }
            _ => {}
        }
        // Cut off after this action, so that `Lifetimes` ends with its effect.
        let so_far = timeline.actions.iter().take_while(|one| one.at <= action.at).cloned().collect();
        job.course = Course::Timeline(Timeline { actions: so_far, windows: Default::default() });
        let lifetimes = Lifetimes::of(&job);
        let step = lifetimes.steps.last().ok_or_else(|| StudyError::new("a timeline without actions"))?;
        for (verb, number) in [("kills", action.kill), ("drains", action.drain)] {
            if let Some(number) = number.filter(|number| !serving_before(&lifetimes, &job).contains(number)) {
                return Err(StudyError::new(format!(
                    "the action `{name}` {verb} the server {number}, which is not there at that time"
                )));
            }
        }
        if step.serving.as_ref().is_some_and(Vec::is_empty) {
            return Err(StudyError::new(format!(
                "the action `{name}` leaves no server; there must be one at any time"
            )));
        }
        if lifetimes.servers > Servers::MOST || lifetimes.clients.len() > MAX_CLIENTS as usize {
            return Err(StudyError::new(format!(
                "up to the action `{name}` the trial has {} servers and {} clients, restarted ones included; the most \
                 are {} and {MAX_CLIENTS}",
                lifetimes.servers,
                lifetimes.clients.len(),
                Servers::MOST
            )));
        }
    }
    Ok(Job { course: Course::Timeline(timeline.clone()), ..job })
}

/// Servers in service before the last step.
fn serving_before(lifetimes: &Lifetimes, job: &Job) -> Vec<u32> {
    let before = lifetimes.steps.iter().rev().skip(1).find_map(|step| step.serving.clone());
    before.unwrap_or_else(|| (0..job.server_count()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, plan};

    const STUDY: &str = r#"
name = "mine"
title = "Coming and going"
question = "Who gets what?"
lab = "netns"
[workload]
protocol = "grpcc"
network = "overlay"
placement = "lan"
servers = "2 far"
duration = "1 s"
[factors]
address = ["service", "headless"]
[timeline]
actions = [
    { name = "T2", at = "25 %", servers = "3 far" },
    { name = "T3", at = "50 %", restart = "clients" },
    { name = "T4", at = "70 %", clients = 30 },
]
[timeline.windows]
from-T2 = { from = "T2" }
alone = { from = "T2", to = "T4" }
[compare]
factor = "address"
baseline = "service"
"#;

    /// The error message of the study after replacing `old` by `new`.
    fn message(old: &str, new: &str) -> String {
        assert!(STUDY.contains(old), "{old}");
        let text = STUDY.replace(old, new);
        match parse(&text, "mine.toml") {
            Err(error) => error.to_string(),
            Ok(study) => plan(&study).map_or_else(|error| error.to_string(), |_| "right".to_owned()),
        }
    }

    #[test]
    fn every_cell_has_the_timeline() {
        let (plan, _) = plan(&parse(STUDY, "mine.toml").unwrap()).unwrap();
        let lifetimes = Lifetimes::of(&plan.cells[0].job);
        assert_eq!((lifetimes.servers, lifetimes.clients.len(), lifetimes.steps.len()), (3, 31, 3));
        assert!(plan.cells.iter().all(|cell| cell.job.course == plan.cells[0].job.course));
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        for (old, new, words) in [
            ("at = \"25 %\"", "at = \"100 %\"", "mine.toml:16:25: `at` is 100 %"),
            ("at = \"25 %\"", "at = \"60 %\"", "mine.toml:17:25: `T3` is not after `T2`"),
            ("name = \"T3\"", "name = \"T2\"", "two actions have the name `T2`"),
            ("restart = \"clients\"", "restart = \"clients\", clients = 2", "exactly one of `servers`"),
            ("restart = \"clients\"", "restart = \"client\"", "`clients`"),
            ("clients = 30", "clients = 0", "set it to 1 or more"),
            ("clients = 30", "client = 30", "`clients`"),
            ("from-T2 = { from = \"T2\" }", "from-T2 = { from = \"T1\" }", "has no action `T1`"),
            ("from = \"T2\", to = \"T4\"", "from = \"T4\", to = \"T3\"", "ends where it begins"),
        ] {
            let message = message(old, new);
            assert!(message.contains(words), "{new}: {message}");
        }
    }

    #[test]
    fn invalid_timelines_of_a_cell_are_refused_with_the_remedy() {
        for (old, new, words) in [
            ("duration = \"1 s\"", "requests = 5", "set `duration`"),
            ("duration = \"1 s\"", "duration = \"1 s\"\nrecording = \"histograms\"", "recording = \"samples\""),
            (
                "duration = \"1 s\"",
                "duration = \"1 s\"\nclients = 2\nworkers = 2",
                "each client runs the whole workload",
            ),
            ("\"3 far\"", "\"near + 2 far\"", "only `far` servers can"),
            ("servers = \"3 far\" }", "kill = 2 }", "kills the server 2, which is not there"),
            ("servers = \"2 far\"\nduration", "servers = \"far\"\nduration", "right"),
            ("servers = \"3 far\" }", "kill = 1 }", "right"),
            ("servers = \"3 far\" }", "drain = 2 }", "drains the server 2, which is not there"),
            ("servers = \"3 far\" }", "drain = 1 }", "right"),
            ("servers = \"3 far\" }", "drain = 1, kill = 0 }", "exactly one of"),
        ] {
            let message = message(old, new);
            assert!(message.contains(words), "{new}: {message}");
        }
        let alone =
            STUDY.replace("servers = \"2 far\"", "servers = \"far\"").replace("servers = \"3 far\" }", "kill = 0 }");
        let message = plan(&parse(&alone, "mine.toml").unwrap()).unwrap_err().to_string();
        assert!(message.contains("leaves no server"), "{message}");
    }
}
