//! `wirelab probe`: HTTP/1.1, HTTP/2 and HTTP/3 against one server that need not be ours, interleaved and politely.
//!
//! A block has one trial of every cell in random order, as in a study, and the statistics are the same ones.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use wirelab_endpoint::Refusal;
use wirelab_endpoint::load::{self, Results};
use wirelab_endpoint::look::{Head, look};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::{Metric, Quantity, Values};
use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
use wirelab_model::plan::{Plan, Trial};
use wirelab_model::spec::{ConnectionPolicy, Extent, Pause, Schedule};
use wirelab_model::study::Study;
use wirelab_stats::Analysis;
use wirelab_stats::analysis::{Compared, Verdict};

use crate::args::ProbeArgs;
use crate::discovery::{alt_svc, https_record};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_json};
use crate::target::{Target, Trust};

/// Requests per protocol that a stranger may be sent.
const POLITE_REQUESTS: u32 = 30;

/// The least time between the starts of two requests to a stranger.
const POLITE_INTERVAL: Duration = Duration::from_millis(500);

/// Requests on a connection that is kept and was opened before they are timed.
const KEPT: &str = "kept";

/// A connection for the request alone.
const NEW: &str = "new";

/// Compares protocols against one server.
pub fn probe(args: &ProbeArgs) -> Result {
    let target = Target::find(&args.url, args.connect_to)?;
    for protocol in &args.protocols {
        target.admit(*protocol)?;
    }
    be_polite(args)?;
    let stop = stop_flag()?;
    let discovery = discover(args, &target)?;
    let study = study(args)?;
    let (plan, _) = wirelab_plan::plan(&study).map_err(Failure::input)?;
    let trials = measure(args, &target, &plan, &stop);
    let metrics: Vec<&Metric> = wirelab_stats::METRICS.iter().collect();
    let analysis = wirelab_stats::analyse(&study, &plan, &trials, &metrics);
    if args.show.json {
        print_json(&json!({ "url": target.url.as_str(), "address": target.address, "discovery": discovery, "analysis": analysis,
            "cells": plan.cells.iter().map(|cell| &cell.levels).collect::<Vec<_>>() }))?;
    } else {
        print(&text(&target, &discovery, &study, &plan, &analysis, &metrics))?;
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted("interrupted; the table shows what was measured until then"));
    }
    if analysis.cells.iter().all(|cell| cell.ok == 0) {
        return Err(Failure::failed("no protocol got an answer"));
    }
    Ok(())
}

/// Refuses more than a stranger may be sent.
fn be_polite(args: &ProbeArgs) -> Result {
    let each = args.blocks.saturating_mul(args.requests);
    if !args.i_own_this_host && each > POLITE_REQUESTS {
        return Err(Failure::input(format!(
            "{} blocks of {} requests are {each} per protocol; a host that is not yours gets at most {POLITE_REQUESTS}. \
             Lower --blocks or --requests, or say --i-own-this-host",
            args.blocks, args.requests
        )));
    }
    Ok(())
}

/// What the server says of itself before anything is measured. Only asked for over TCP, as a browser does at first.
#[derive(Debug, serde::Serialize)]
struct Discovery {
    status: Option<u16>,
    server: Option<String>,
    alt_svc: Vec<String>,
    https_record: std::result::Result<Vec<String>, String>,
}

fn trust(args: &ProbeArgs) -> Trust<'_> {
    Trust { ca: args.ca.as_deref(), insecure: args.insecure }
}

/// One request whose head is looked at: is this the page, or the way to another one?
fn discover(args: &ProbeArgs, target: &Target) -> Result<Discovery> {
    let https_record = https_record(&target.host, target.port);
    let Some(protocol) = args.protocols.iter().copied().find(|protocol| !protocol.uses_udp()) else {
        return Ok(Discovery { status: None, server: None, alt_svc: Vec::new(), https_record });
    };
    let spec = target.spec(protocol, trust(args), (args.timeout, args.timeout), args.seed);
    let Head { status, fields } = look(&spec).map_err(|refusal| {
        let remedy = match &refusal {
            Refusal::Failed(failure) if failure.kind == ErrorKind::Certificate => "; --ca FILE trusts another authority",
            Refusal::Failed(failure) if failure.kind == ErrorKind::Timeout => "; --timeout allows for more",
            _ => "",
        };
        Failure::failed(format!("cannot get {}: {refusal}{remedy}", target.url))
    })?;
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    if (300..400).contains(&status) {
        let place = field("location").unwrap_or_else(|| "nowhere (it sends no Location)".to_owned());
        return Err(Failure::failed(format!(
            "{} answers {status} and sends clients to {place}. A redirect is not followed, because its target may be another server: probe that URL",
            target.url
        )));
    }
    if status >= 400 {
        return Err(Failure::failed(format!("{} answers {status}: there is nothing to measure", target.url)));
    }
    Ok(Discovery {
        status: Some(status),
        server: field("server"),
        alt_svc: field("alt-svc").map_or_else(Vec::new, |text| alt_svc(&text)),
        https_record,
    })
}

/// The probe as a study, so that plan and statistics are those of every study.
fn study(args: &ProbeArgs) -> Result<Study> {
    let protocols: Vec<_> = args.protocols.iter().map(|protocol| format!("\"{protocol}\"")).collect();
    let text = format!(
        r#"name = "probe"
title = "One server, several protocols"
question = "Which HTTP version answers faster?"
seed = {seed}
[factors]
protocol = [{protocols}]
[factors.connection]
{NEW} = {{ connections = "per-request", requests = 1 }}
{KEPT} = {{ connections = 1, requests = {kept} }}
[compare]
factor = "protocol"
baseline = "{baseline}"
metrics = ["response_median", "first_byte_median"]
[blocks]
min = {blocks}
max = {blocks}
"#,
        seed = args.seed,
        protocols = protocols.join(", "),
        kept = (args.requests - 1).max(1),
        baseline = args.protocols[0],
        blocks = args.blocks,
    );
    wirelab_plan::parse(&text, "the probe").map_err(Failure::input)
}

/// Runs the blocks. A/A twins would double what the baseline is sent; a stranger is spared them.
fn measure(args: &ProbeArgs, target: &Target, plan: &Plan, stop: &AtomicBool) -> Vec<TrialRecord> {
    let bar = progress(args, plan);
    let mut pace = Pace { interval: if args.i_own_this_host { Duration::ZERO } else { POLITE_INTERVAL }, next: Instant::now() };
    let mut records = Vec::new();
    for trial in (0..plan.max_blocks).flat_map(|number| wirelab_plan::block(plan, number)) {
        let cell = &plan.cells[trial.cell];
        bar.inc(1);
        if cell.twin_of.is_some() && !args.i_own_this_host {
            continue;
        }
        bar.set_message(cell.label());
        pace.wait(stop);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        records.push(perform(args, target, plan, trial, pace.interval, stop));
        pace.next = Instant::now() + pace.interval;
    }
    bar.finish_and_clear();
    records
}

/// One trial: one request on a new connection, or a few on one that is kept.
fn perform(args: &ProbeArgs, target: &Target, plan: &Plan, trial: Trial, interval: Duration, stop: &AtomicBool) -> TrialRecord {
    let cell = &plan.cells[trial.cell];
    let mut spec = target.spec(cell.job.protocol, trust(args), (args.timeout, args.timeout), trial.seed);
    spec.extent = cell.job.extent;
    if cell.job.connections == ConnectionPolicy::PerRequest {
        spec.connections = ConnectionPolicy::PerRequest;
    }
    let pause = match u64::try_from(interval.as_nanos()) {
        Ok(0) | Err(_) => Pause::None,
        Ok(ns) => Pause::Fixed { ns },
    };
    spec.schedule = Schedule::Closed { workers: 1, pause };
    debug_assert!(matches!(spec.extent, Extent::Requests(_)));
    let began = Instant::now();
    let result = load::run(&spec, |_| {}, stop);
    let (outcome, values, window_ns, configured) = match result {
        Ok(result) => match (&result.results, result.first_failure) {
            (Results::Samples(samples), None) => {
                (Outcome::Ok, wirelab_stats::summarise(samples, result.window_ns), result.window_ns, result.configured)
            }
            (_, why) => (
                Outcome::failed(Blame::Server, why.unwrap_or_default()),
                Values::default(),
                result.window_ns,
                result.configured,
            ),
        },
        Err(Refusal::Unsupported(reason)) => (Outcome::Unsupported { reason }, Values::default(), 0, Default::default()),
        Err(Refusal::Failed(failure)) => {
            (Outcome::failed(Blame::Server, failure.message), Values::default(), 0, Default::default())
        }
    };
    TrialRecord {
        trial,
        at: String::new(),
        took_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        outcome,
        window_ns,
        values,
        results: None,
        server: Default::default(),
        client: configured,
        warnings: Vec::new(),
    }
}

/// Keeps the distance between requests.
struct Pace {
    interval: Duration,
    next: Instant,
}

impl Pace {
    /// Waits for the next request's turn, in steps short enough for Ctrl-C.
    fn wait(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

fn progress(args: &ProbeArgs, plan: &Plan) -> ProgressBar {
    let target = if args.show.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(u64::from(plan.max_blocks) * plan.cells.len() as u64), target);
    let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar:.cyan/dim} {eta} left {msg}");
    bar.with_style(style.expect("the template is right").progress_chars("━━─"))
}

fn text(target: &Target, discovery: &Discovery, study: &Study, plan: &Plan, analysis: &Analysis, metrics: &[&Metric]) -> String {
    let mut text = String::new();
    let status = discovery.status.map_or_else(String::new, |status| format!(", status {status}"));
    let _ = writeln!(text, "{} at {}:{}{status}", target.url, target.address, target.port);
    let _ = writeln!(text, "server            {}", discovery.server.as_deref().unwrap_or("does not say"));
    let list = |offers: &[String]| if offers.is_empty() { "offers nothing".to_owned() } else { offers.join(", ") };
    let _ = writeln!(text, "Alt-Svc           {}", list(&discovery.alt_svc));
    let record = discovery.https_record.as_ref().map_or_else(|why| format!("not measured: {why}"), |offers| list(offers));
    let _ = writeln!(text, "HTTPS record      {record}\n");
    for metric in &study.compare.metrics {
        let Some(declared) = metrics.iter().find(|known| known.name == metric) else { continue };
        let _ = writeln!(text, "{}", declared.title);
        for (number, cell) in plan.cells.iter().enumerate().filter(|(_, cell)| cell.twin_of.is_none()) {
            let found = &analysis.cells[number];
            let value = match (found.estimates.get(metric), &found.reason) {
                (Some(estimate), _) => {
                    let range = |value| Quantity(value, declared.unit);
                    format!("{:<10} [{} to {}]", range(estimate.median).to_string(), range(estimate.range.0), range(estimate.range.1))
                }
                (None, Some(reason)) => format!("failed: {reason}"),
                (None, None) => "not measured".to_owned(),
            };
            let compared = analysis.comparisons.iter().find(|c| c.cell == number && !c.aa && &c.metric == metric);
            let verdict = compared.map_or_else(String::new, words);
            let _ = writeln!(text, "  {:<4} {:<5} {value} {verdict}", cell.levels["protocol"], cell.levels["connection"]);
        }
        text.push('\n');
    }
    for warning in &analysis.warnings {
        let _ = writeln!(text, "! {}", warning.meaning());
    }
    text
}

/// A verdict against the first protocol.
fn words(compared: &Compared) -> String {
    let interval = compared.interval.map_or_else(String::new, |i| format!(" [{:.2}, {:.2}]", i.low, i.high));
    let ratio = compared.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2} times{interval}"));
    match compared.verdict {
        Verdict::Less => format!("faster: {ratio}"),
        Verdict::More => format!("slower: {ratio}"),
        Verdict::Equivalent => format!("no difference: {ratio}"),
        Verdict::CannotTell { .. } => format!("cannot tell: {ratio}"),
    }
}
