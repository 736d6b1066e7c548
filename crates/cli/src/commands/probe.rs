//! `wirelab probe`: HTTP/1.1, HTTP/2 and HTTP/3 against one server that need not be ours, interleaved and politely.
//!
//! A block has one trial of every cell in random order, as in a study, and the statistics are the same ones.

mod text;
mod trials;

use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use serde_json::json;
use wirelab_endpoint::look::{Head, look};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Metric;
use wirelab_model::plan::Plan;
use wirelab_model::protocol::Protocol;
use wirelab_model::study::Study;
use wirelab_plan::polite;
use wirelab_stats::Analysis;

use self::trials::Measured;
use crate::args::ProbeArgs;
use crate::discovery::{alt_svc, https_record};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_json};
use crate::target::Target;

/// Requests on a connection that is kept and was opened before they are timed.
const KEPT: &str = "kept";

/// A connection for the request alone.
const NEW: &str = "new";

/// What a probe found out.
struct Finding {
    discovery: Discovery,
    /// The study of the protocols that answered, the first of which is the baseline.
    study: Study,
    plan: Plan,
    analysis: Analysis,
    /// The protocols that never answered, and why.
    silent: IndexMap<Protocol, String>,
}

/// Compares protocols against one server.
pub fn probe(args: &ProbeArgs) -> Result {
    let target = Target::find(&args.url, args.reach.connect_to)?;
    for protocol in &args.protocols {
        target.admit(*protocol)?;
    }
    be_polite(args)?;
    let (study, plan) = plan(args, &args.protocols)?;
    let stop = stop_flag()?;
    let interrupted = |what: &str| Failure::interrupted(format!("interrupted; {what}"));
    let discovery = discover(args, &target, &stop).map_err(|failure| match stop.load(Ordering::Relaxed) {
        true => interrupted("nothing was measured"),
        false => failure,
    })?;
    let Measured { records, silent } = trials::measure(args, &target, &plan, &stop);
    let finding = analyse(args, discovery, (study, plan), records, silent)?;
    if args.show.json {
        show_json(&target, &finding)?
    } else {
        print(&text::text(args, &target, &finding))?
    }
    if stop.load(Ordering::Relaxed) {
        return Err(interrupted("the result is what was measured until then"));
    }
    if finding.silent.len() == args.protocols.len() {
        return Err(Failure::failed("no protocol got an answer that can be measured; the result names the reasons"));
    }
    Ok(())
}

/// Refuses more than a stranger may be sent.
fn be_polite(args: &ProbeArgs) -> Result {
    let each = args.blocks.saturating_mul(args.requests).saturating_add(1);
    if !args.i_own_this_host && u64::from(each) > polite::REQUESTS {
        return Err(Failure::input(format!(
            "{} blocks of {} requests, and the one before them, are {each} per protocol; a host that is not yours gets at most \
             {}. Lower --blocks or --requests, or say --i-own-this-host",
            args.blocks,
            args.requests,
            polite::REQUESTS
        )));
    }
    Ok(())
}

/// The probe of these protocols as a study, so that plan and statistics are those of every study.
fn plan(args: &ProbeArgs, protocols: &[Protocol]) -> Result<(Study, Plan)> {
    let tokens: Vec<_> = protocols.iter().map(|protocol| format!("\"{protocol}\"")).collect();
    let text = format!(
        r#"name = "probe"
title = "One server, several protocols"
question = "Which HTTP version answers faster?"
seed = {seed}
[factors]
protocol = [{tokens}]
[factors.connection]
{NEW} = {{ connections = "per-request", requests = 1 }}
{KEPT} = {{ connections = 1, requests = {kept} }}
[compare]
factor = "protocol"
baseline = "{baseline}"
metrics = ["response_median", "handshake_median", "first_byte_median"]
[blocks]
min = {blocks}
max = {blocks}
"#,
        seed = args.seed,
        tokens = tokens.join(", "),
        kept = args.requests - 1,
        baseline = protocols[0],
        blocks = args.blocks,
    );
    let study = wirelab_plan::parse(&text, "the probe").map_err(Failure::input)?;
    let (mut plan, _) = wirelab_plan::plan(&study).map_err(Failure::input)?;
    if !args.i_own_this_host {
        // A/A twins would double what the baseline is sent; a stranger is spared them. They come after all other cells.
        plan.cells.retain(|cell| cell.twin_of.is_none());
        plan.comparisons.retain(|comparison| !comparison.aa);
    }
    Ok((study, plan))
}

/// What the server says of itself before anything is measured.
#[derive(Debug, serde::Serialize)]
struct Discovery {
    /// How it was asked: by the first of the protocols that got an answer.
    protocol: Protocol,
    status: u16,
    server: Option<String>,
    alt_svc: Vec<String>,
    https_record: Offers,
}

/// The protocols that a DNS record offers.
#[derive(Debug, serde::Serialize)]
#[serde(untagged)]
enum Offers {
    Listed(Vec<String>),
    NotMeasured { not_measured: String },
}

/// One request whose head is looked at: is this the page, or the way to another one? A protocol without an answer leaves
/// the question to the next; there is one answer at most, so that no protocol is sent more than one such request.
fn discover(args: &ProbeArgs, target: &Target, stop: &AtomicBool) -> Result<Discovery> {
    let mut reasons = Vec::new();
    for protocol in &args.protocols {
        let spec = target.spec(*protocol, &args.reach, args.reach.timeout, args.seed);
        match look(&spec, stop) {
            Ok(head) => {
                target.accept(&head)?;
                return Ok(described(target, *protocol, &head));
            }
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(refusal) => reasons.push(target.unanswered(*protocol, &refusal)),
        }
    }
    Err(Failure::failed(format!("no protocol got an answer.\n  {}", reasons.join("\n  "))))
}

fn described(target: &Target, protocol: Protocol, head: &Head) -> Discovery {
    Discovery {
        protocol,
        status: head.status,
        server: head.values("server").next().map(str::to_owned),
        alt_svc: head.values("alt-svc").flat_map(alt_svc).collect(),
        https_record: https_record(&target.host, target.port)
            .map_or_else(|not_measured| Offers::NotMeasured { not_measured }, Offers::Listed),
    }
}

/// The statistics of the protocols that answered; one that did not would leave every block incomplete.
fn analyse(
    args: &ProbeArgs,
    discovery: Discovery,
    (study, plan): (Study, Plan),
    records: Vec<TrialRecord>,
    silent: IndexMap<Protocol, String>,
) -> Result<Finding> {
    let metrics: Vec<&Metric> = wirelab_stats::METRICS.iter().collect();
    let answered: Vec<_> = args.protocols.iter().copied().filter(|protocol| !silent.contains_key(protocol)).collect();
    let (study, plan, records) = if silent.is_empty() || answered.is_empty() {
        (study, plan, records)
    } else {
        let (study, mut reduced) = self::plan(args, &answered)?;
        let records = trials::renumber(records, &plan, &reduced);
        if answered[0] != args.protocols[0] {
            // The twins were those of another baseline.
            reduced.cells.retain(|cell| cell.twin_of.is_none());
            reduced.comparisons.retain(|comparison| !comparison.aa);
        }
        (study, reduced, records)
    };
    let analysis = wirelab_stats::analyse(&study, &plan, &records, &metrics);
    Ok(Finding { discovery, study, plan, analysis, silent })
}

fn show_json(target: &Target, finding: &Finding) -> Result {
    let Finding { discovery, study, plan, analysis, silent } = finding;
    print_json(&json!({
        "url": target.url.as_str(),
        "address": target.socket(),
        "discovery": discovery,
        "baseline": study.compare.baseline,
        "failed": silent,
        "cells": plan.cells.iter().map(|cell| json!({ "levels": cell.levels, "twin_of": cell.twin_of })).collect::<Vec<_>>(),
        "analysis": analysis,
    }))
}
