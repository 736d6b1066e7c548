//! `wirelab probe`: HTTP/1.1, HTTP/2 and HTTP/3 against a server of another owner, interleaved and rate-limited.
//!
//! Blocks, random order and statistics are the same as in a study.

mod text;
mod trials;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::json;
use wirelab_endpoint::look::{Head, look};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Metric;
use wirelab_model::plan::Plan;
use wirelab_model::protocol::Protocol;
use wirelab_model::study::Study;
use wirelab_plan::polite;
use wirelab_stats::{Analysis, Moment};

use self::trials::{CLIENT, Measured};
use crate::args::ProbeArgs;
use crate::discovery::{alt_svc, https_record};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_json};
use crate::requests::{Asked, Requests};
use crate::target::Target;
use crate::visits::{self, Aim, FLAG, What};

/// The level with requests on a kept connection, which is opened before they are measured.
const KEPT: &str = "kept";

/// The level with a new connection for the request.
const NEW: &str = "new";

/// The result of a probe.
struct Finding {
    /// Whether the host got few requests, because it may be another owner's.
    is_limited: bool,
    discovery: Discovery,
    /// The study of the protocols that work; the first one is the baseline.
    study: Study,
    plan: Plan,
    analysis: Analysis,
    /// The protocols that failed, with the reason.
    failed: IndexMap<Protocol, String>,
}

/// Compares protocols against a server and prints the result.
pub fn probe(args: &ProbeArgs) -> Result {
    let requests = Asked::of_probe(args)?.render(false, &|_, _| Ok(None))?;
    let target = &requests.target;
    for protocol in &args.protocols {
        target.admit(*protocol)?;
        target.admit_way(*protocol)?;
        target.admit_tls(*protocol, &args.reach)?;
    }
    let is_limited = is_limited(args, target);
    let (study, plan) = plan(args, &args.protocols, is_limited)?;
    super::warn_if_not_optimised();
    if is_limited {
        be_polite(args)?;
        visits::admit(&sent(args, target))?;
    }
    let stop = stop_flag()?;
    let interrupted = |what: &str| Failure::interrupted(format!("interrupted; {what}"));
    let discovery = discover(args, &requests, &stop).map_err(|failure| match stop.load(Ordering::Relaxed) {
        true => interrupted("nothing was measured"),
        false => failure,
    })?;
    let interval = if is_limited { polite::INTERVAL } else { Duration::ZERO };
    let Measured { records, failed } = trials::measure(args, &requests, &plan, interval, &stop);
    let finding = analyse(args, is_limited, discovery, (study, plan), records, failed)?;
    if args.show.json {
        show_json(target, &finding)?
    } else {
        print(&text::text(args, target, &finding))?
    }
    if stop.load(Ordering::Relaxed) {
        return Err(interrupted("the result covers the requests until then"));
    }
    if finding.failed.len() == args.protocols.len() {
        return Err(Failure::failed("no protocol could be measured; the result names the reasons"));
    }
    Ok(())
}

/// Whether the host gets few requests, because it may be another owner's.
fn is_limited(args: &ProbeArgs, target: &Target) -> bool {
    !args.i_may_load_these_hosts && !target.is_near()
}

/// Requests per protocol, including the one before the measurement.
const fn each(args: &ProbeArgs) -> u64 {
    (args.blocks as u64) * (args.requests as u64) + 1
}

/// The largest number of requests of the probe, by host and protocol.
fn sent(args: &ProbeArgs, target: &Target) -> BTreeMap<Aim, u64> {
    let aim = |protocol: &Protocol| Aim { host: target.host.clone(), what: What::Requests(*protocol) };
    args.protocols.iter().map(|protocol| (aim(protocol), each(args))).collect()
}

/// Refuses more requests than the limit for hosts of other owners.
fn be_polite(args: &ProbeArgs) -> Result {
    let each = each(args);
    if each > polite::REQUESTS {
        return Err(Failure::input(format!(
            "{} blocks of {} requests and one request before them are {each} per protocol; a host that you do not own gets at \
             most {}. Lower --blocks or --requests, or confirm with {FLAG} that you may load it",
            args.blocks,
            args.requests,
            polite::REQUESTS
        )));
    }
    Ok(())
}

/// The probe as a study, so that it shares the plan and the statistics of studies.
fn plan(args: &ProbeArgs, protocols: &[Protocol], is_limited: bool) -> Result<(Study, Plan)> {
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
    if is_limited {
        // A/A twins would double the requests of the baseline. They come after all other cells, so cell numbers stay
        // valid.
        plan.cells.retain(|cell| cell.twin_of.is_none());
        plan.comparisons.retain(|comparison| !comparison.aa);
    }
    Ok((study, plan))
}

/// The protocols that the server offers, asked before the measurement.
#[derive(Debug, serde::Serialize)]
struct Discovery {
    /// The protocol of the request: the first one that worked.
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

/// Sends one request to find out whether the URL is a page or a redirect. If a protocol fails, the next one is tried;
/// each protocol sends one such request at most.
fn discover(args: &ProbeArgs, requests: &Requests, stop: &AtomicBool) -> Result<Discovery> {
    let target = &requests.target;
    let mut reasons = Vec::new();
    for protocol in &args.protocols {
        let spec = requests.spec(*protocol, &args.reach, args.reach.timeout, args.seed);
        match look(&spec, 0, stop) {
            Ok(head) => {
                requests.accept(&requests.written[0], &head)?;
                return Ok(described(target, *protocol, &head));
            }
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(refusal) => reasons.push(target.unanswered(*protocol, &refusal)),
        }
    }
    Err(Failure::failed(format!("every protocol failed.\n  {}", reasons.join("\n  "))))
}

fn described(target: &Target, protocol: Protocol, head: &Head) -> Discovery {
    Discovery {
        protocol,
        status: head.status,
        server: head.values("server").next().map(str::to_owned),
        alt_svc: head.values("alt-svc").flat_map(alt_svc).collect(),
        https_record: match &target.via {
            // The name may have no meaning here: a Unix socket has none, and a proxy may look it up elsewhere.
            Some(via) => Offers::NotMeasured { not_measured: format!("connections go through {via}") },
            None => https_record(&target.host, target.port)
                .map_or_else(|error| Offers::NotMeasured { not_measured: error.to_string() }, Offers::Listed),
        },
    }
}

/// Analyzes the protocols that work; a failed protocol would leave every block incomplete.
fn analyse(
    args: &ProbeArgs,
    is_limited: bool,
    discovery: Discovery,
    (study, plan): (Study, Plan),
    records: Vec<TrialRecord>,
    failed: IndexMap<Protocol, String>,
) -> Result<Finding> {
    let metrics: Vec<&Metric> = wirelab_stats::METRICS.iter().collect();
    let working: Vec<_> = args.protocols.iter().copied().filter(|protocol| !failed.contains_key(protocol)).collect();
    let (study, plan, records) = if failed.is_empty() || working.is_empty() {
        (study, plan, records)
    } else {
        let (study, mut reduced) = self::plan(args, &working, is_limited)?;
        let records = trials::renumber(records, &plan, &reduced);
        if working[0] != args.protocols[0] {
            // The measured twins repeat another baseline.
            reduced.cells.retain(|cell| cell.twin_of.is_none());
            reduced.comparisons.retain(|comparison| !comparison.aa);
        }
        (study, reduced, records)
    };
    let analysis = wirelab_stats::analyse(&study, &plan, &records, &metrics, Moment::Ended);
    Ok(Finding { is_limited, discovery, study, plan, analysis, failed })
}

fn show_json(target: &Target, finding: &Finding) -> Result {
    let Finding { discovery, study, plan, analysis, failed, .. } = finding;
    print_json(&json!({
        "url": target.url.as_str(),
        "address": target.socket(),
        "via": target.via.as_ref().map(ToString::to_string),
        "discovery": discovery,
        "client": CLIENT.name(),
        "baseline": study.compare.baseline,
        "failed": failed,
        "cells": plan.cells.iter().map(|cell| json!({ "levels": cell.levels, "twin_of": cell.twin_of })).collect::<Vec<_>>(),
        "analysis": analysis,
    }))
}
