//! Whose limit: the shares of client, server and network in the response time of each cell.

use wirelab_stats::analysis::{CannotTell, Interval, Verdict};
use wirelab_stats::client_share::{METRIC, Share, Shares, WhyNot};

use crate::Input;
use crate::numbers::{NBSP, quantity, significant};

pub(crate) const HEADING: &str = "Whose limit";

/// The columns of the rows.
pub(crate) const HEADER: [&str; 5] = ["cell", "null reference", "client", "server", "network"];

/// The shares of a run.
pub(crate) struct Section {
    /// A sentence that defines the shares.
    pub lead: String,
    /// A row for each cell with a share.
    pub rows: Vec<[String; 5]>,
    /// Missing values and withheld verdicts, one sentence each.
    pub notes: Vec<String>,
}

/// `None` for a table, or a run of a version without null references.
pub(crate) fn section(input: &Input) -> Option<Section> {
    let shares = &input.analysis.shares;
    if shares.is_empty() {
        return None;
    }
    // The twin of a cell shares its reference.
    let cells = input.manifest.plan.cells.iter().zip(shares).filter(|(cell, _)| cell.twin_of.is_none());
    let (measured, missing): (Vec<_>, Vec<_>) = cells.partition(|(_, shares)| is_measured(&shares.server));
    let rows: Vec<_> = measured.iter().map(|(cell, shares)| row(input, cell.label(), shares)).collect();
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (cell, shares) in &missing {
        let Share::Missing(why) = &shares.server else { continue };
        let why = words(why);
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, cells)) => cells.push(cell.label()),
            None => reasons.push((why, vec![cell.label()])),
        }
    }
    let only = missing.len() == input.manifest.plan.cells.iter().filter(|cell| cell.twin_of.is_none()).count();
    let mut notes: Vec<_> = reasons
        .into_iter()
        .map(|(why, cells)| match only && cells.len() == missing.len() {
            true => format!("Not measured: {why}."),
            false => format!("Not measured in {}: {why}.", named(&cells)),
        })
        .collect();
    let withheld = input.analysis.comparisons.iter().filter(|compared| compared.verdict == CLIENT_BOUND).count();
    if withheld > 0 {
        let verdicts = if withheld == 1 { "1 verdict is".to_owned() } else { format!("{withheld} verdicts are") };
        notes.push(format!(
            "{verdicts} withheld, because the client's own time may explain the difference: without it, the difference is \
             not beyond chance."
        ));
    }
    let lead = match rows.is_empty() {
        true => "The client's share of the response time is unknown.".to_owned(),
        false => format!(
            "In more trials the same client sent the same requests to a server that answers at once: the null reference. \
             Its response time, divided by that of the cell (`{METRIC}`), is the client's share, with the kernel's work \
             for both sides; the rest is the server's. With 95 % intervals. These trials are in none of the other results."
        ),
    };
    Some(Section { lead, rows, notes })
}

const CLIENT_BOUND: Verdict = Verdict::CannotTell { why: CannotTell::ClientBound };

const fn is_measured(share: &Share) -> bool {
    matches!(share, Share::Measured { .. })
}

fn row(input: &Input, label: String, shares: &Shares) -> [String; 5] {
    let unit = input.metric(METRIC).map(|metric| metric.unit);
    let reference = shares.reference.zip(unit).map_or_else(
        || "not measured".to_owned(),
        |(reference, unit)| {
            let trials = if shares.trials == 1 { "trial" } else { "trials" };
            format!("{}, {}{NBSP}{trials}", quantity(reference, unit), shares.trials)
        },
    );
    let network = match &shares.network {
        Share::Measured { share: part, .. } => format!("at least {}", percent(*part)),
        missing => shown(missing),
    };
    [label, reference, shown(&shares.client), shown(&shares.server), network]
}

fn shown(part: &Share) -> String {
    match part {
        Share::Measured { share, interval: Some(interval) } => format!("{} {}", percent(*share), ends(interval)),
        Share::Measured { share, interval: None } => format!("{}, no interval", percent(*share)),
        Share::Missing(why) => format!("not measured: {}", words(why)),
    }
}

fn percent(part: f64) -> String {
    format!("{}{NBSP}%", significant((part * 1e3).round() / 10.0))
}

fn ends(interval: &Interval) -> String {
    let [low, high] = [interval.low, interval.high].map(|end| significant((end * 1e3).round() / 10.0));
    format!("[{low}, {high}]")
}

/// Cells by their labels, or their number if there are many.
fn named(cells: &[String]) -> String {
    match cells {
        [one] => format!("`{one}`"),
        [one, other] => format!("`{one}` and `{other}`"),
        [one, ..] => format!("{} cells (`{one}` and others)", cells.len()),
        [] => String::new(),
    }
}

/// Why a share is not measured.
pub(crate) fn words(why: &WhyNot) -> String {
    match why {
        WhyNot::NotReferenced(why) => why.to_string(),
        WhyNot::TooFewTrials { trials, needed } => {
            format!("{trials} trials against the null server succeeded, {needed} are needed; raise `references`")
        }
        WhyNot::NoValues => "the cell has no response time".to_owned(),
        WhyNot::NoLink => "no link".to_owned(),
        WhyNot::LinkNotMeasured => "the link has no measured round trip".to_owned(),
        WhyNot::RoundTrips => "the null reference contains the link's round trips".to_owned(),
    }
}

/// A share as a row of a table: name, share with its interval, and the reason if it is missing.
pub(crate) type Row = (&'static str, Option<(f64, Option<Interval>)>, String);

/// The shares of a cell.
pub(crate) fn columns(shares: &Shares) -> [Row; 3] {
    let of = |part: &Share| match part {
        Share::Measured { share, interval } => (Some((*share, *interval)), String::new()),
        Share::Missing(why) => (None, words(why)),
    };
    [("client_share", &shares.client), ("server_share", &shares.server), ("network_share", &shares.network)].map(
        |(name, part)| {
            let (value, why) = of(part);
            (name, value, why)
        },
    )
}

/// The client's time in a comparison, which explains its difference.
pub(crate) fn client_bound(input: &Input, cells: [usize; 2]) -> String {
    let references = cells.map(|cell| input.analysis.shares.get(cell).and_then(|shares| shares.reference));
    let unit = input.metric(METRIC).map(|metric| metric.unit);
    let known = match (references, unit) {
        ([Some(one), Some(other)], Some(unit)) => {
            format!(
                ": against a server that answers at once it takes {}, and {} for the baseline",
                quantity(one, unit),
                quantity(other, unit)
            )
        }
        _ => String::new(),
    };
    format!("the client's own time may explain the difference{known}")
}
