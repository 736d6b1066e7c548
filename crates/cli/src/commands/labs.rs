//! `wirelab labs`: lists labs, links and observers, measures links, and cleans up clusters.

mod measure;

use std::fmt::Write;

use serde_json::json;
use wirelab_hosts::{Inventory, Left};
use wirelab_kubernetes::clean::{self, Fate};
use wirelab_model::link::{Link, PRESETS};

use crate::args::{LabsArgs, LabsCommand};
use crate::failure::{Failure, Result};
use crate::output::{print, print_json};

/// The properties of a link as a phrase.
pub(super) fn described(link: &Link) -> String {
    if link.is_wire() {
        return format!("a wire, MTU {}", link.mtu);
    }
    let mut words = vec![format!("round trip {}", link.round_trip)];
    words.extend(link.rate.map(|rate| match link.rate_up {
        Some(up) => format!("{rate} down, {up} up"),
        None => format!("{rate}"),
    }));
    if link.loss.0 > 0.0 {
        words.push(format!("loss {} in runs of {}", link.loss, link.loss_burst));
    }
    if link.jitter.nanos() > 0 {
        words.push(format!("jitter {}", link.jitter));
    }
    words.join(", ")
}

/// Runs the subcommand.
pub fn labs(args: &LabsArgs) -> Result {
    match &args.command {
        None => list(args.json),
        Some(LabsCommand::Measure(measured)) => measure::measure(measured, args.json),
        Some(LabsCommand::Clean { dry_run, hosts: Some(hosts), .. }) => clean_hosts(hosts, *dry_run, args.json),
        Some(LabsCommand::Clean { dry_run, other_machines, .. }) => clean(*dry_run, *other_machines, args.json),
        Some(LabsCommand::Rbac) => print(&wirelab_kubernetes::rbac()),
    }
}

/// Removes the namespaces of ended runs; with `dry_run` lists them only.
fn clean(dry_run: bool, other_machines: bool, as_json: bool) -> Result {
    let Some(found) = clean::find().map_err(Failure::failed)? else {
        return if as_json { print_json(&json!([])) } else { print("no cluster is configured, so none was cleaned\n") };
    };
    let is_left = |left: &clean::Left| match left.fate {
        Fate::Left => true,
        Fate::Elsewhere(_) => other_machines,
        Fate::InUse | Fate::Going => false,
    };
    for left in found.iter().filter(|left| !dry_run && is_left(left)) {
        clean::remove(&left.namespace).map_err(Failure::failed)?;
    }
    let outcome = |left: &clean::Left| match (&left.fate, is_left(left)) {
        (_, true) if dry_run => "would be removed".to_owned(),
        (_, true) => "removed".to_owned(),
        (Fate::InUse, _) => "kept: its run is active".to_owned(),
        (Fate::Elsewhere(machine), _) => {
            format!("kept: created on the machine `{machine}`; clean up there, or with --other-machines")
        }
        (Fate::Going | Fate::Left, _) => "is being removed".to_owned(),
    };
    if as_json {
        let all: Vec<_> = found
            .iter()
            .map(|left| json!({ "namespace": left.namespace, "run": left.folder, "outcome": outcome(left) }))
            .collect();
        return print_json(&all);
    }
    if found.is_empty() {
        return print("the cluster has no namespaces of wirelab\n");
    }
    let lines: Vec<_> =
        found.iter().map(|left| format!("{}  {}  (run {})\n", left.namespace, outcome(left), left.folder)).collect();
    print(&lines.concat())
}

/// Removes the folders of ended runs from hosts; with `dry_run` lists them only.
fn clean_hosts(hosts: &str, dry_run: bool, as_json: bool) -> Result {
    let inventory = Inventory::read(hosts).map_err(|error| Failure::input(format!("--hosts: {error}")))?;
    let left = wirelab_hosts::clean(&inventory, dry_run).map_err(Failure::failed)?;
    let outcome = if dry_run { "would be removed" } else { "removed" };
    if as_json {
        let all =
            left.iter().map(|Left { host, folder }| json!({ "host": host, "folder": folder, "outcome": outcome }));
        return print_json(&all.collect::<Vec<_>>());
    }
    if left.is_empty() {
        return print("the hosts have no remains of wirelab\n");
    }
    print(&left.iter().map(|Left { host, folder }| format!("{host}:{folder}  {outcome}\n")).collect::<String>())
}

fn list(as_json: bool) -> Result {
    let labs = crate::labs::LABS;
    let observers = wirelab_observe::OBSERVERS;
    if as_json {
        return print_json(&json!({
            "labs": labs.iter().map(|lab| json!({ "name": lab.name, "summary": lab.summary, "needs": lab.needs })).collect::<Vec<_>>(),
            "links": PRESETS.iter().map(|preset| json!({ "name": preset.name, "link": preset.link, "source": preset.source })).collect::<Vec<_>>(),
            "observers": observers.iter().map(|o| json!({
                "name": o.name, "summary": o.summary, "cost": o.cost, "needs": o.needs,
                "metrics": o.metrics.iter().map(|m| json!({ "name": m.name, "title": m.title, "meaning": m.meaning, "vantage": m.vantage })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        }));
    }
    let mut text = String::from("Labs\n");
    for lab in labs {
        let _ = writeln!(text, "  {:<16} {} Needs: {}.", lab.name, lab.summary, lab.needs.unwrap_or("nothing"));
    }
    text.push_str("\nLinks of the lab netns (values of `placement`)\n");
    for preset in &PRESETS {
        let _ = writeln!(text, "  {:<16} {}. Source: {}.", preset.name, described(&preset.link), preset.source);
    }
    text.push_str("\nObservers, with their metrics\n");
    for observer in observers {
        let needs = observer.needs.unwrap_or("nothing");
        let _ = writeln!(text, "  {:<16} {} Cost: {} Needs: {needs}.", observer.name, observer.summary, observer.cost);
        // Metrics that differ in their side only share a meaning. Every name is listed, because studies use it.
        for alike in observer.metrics.chunk_by(|a, b| a.meaning == b.meaning) {
            for both_sides in alike.chunks(2) {
                let names: Vec<_> = both_sides.iter().map(|metric| metric.name).collect();
                let _ = writeln!(text, "    {}", names.join(", "));
            }
            let _ = writeln!(text, "        {}", alike[0].meaning);
        }
    }
    text.push_str("\nMetrics from the records of clients\n");
    for metric in wirelab_stats::METRICS {
        let _ = writeln!(text, "    {:<36} {}", metric.name, metric.meaning);
    }
    text.push_str("\nMetrics from page loads in browsers\n");
    for metric in wirelab_stats::PAGE_METRICS {
        let _ = writeln!(text, "    {:<36} {}", metric.name, metric.meaning);
    }
    text.push_str("\nMetrics of several clients that share a workload (`clients`)\n");
    for metric in wirelab_stats::CLIENTS_METRICS {
        let _ = writeln!(text, "    {:<36} {}", metric.name, metric.meaning);
    }
    text.push_str("\nMetrics from the transport reports of endpoints\n");
    for metric in wirelab_stats::TRANSPORT_METRICS {
        let _ = writeln!(text, "    {:<36} {}", metric.name, metric.meaning);
    }
    text.push_str("\nMetrics of the preparation, before the measured window\n");
    for metric in &wirelab_run::PREPARATION_METRICS {
        let _ = writeln!(text, "    {:<36} {}", metric.name, metric.meaning);
    }
    print(&text)
}
