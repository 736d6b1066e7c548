//! The result of a probe as text.

use std::fmt::Write;

use wirelab_model::metric::{Metric, Quantity};
use wirelab_model::plan::Cell;
use wirelab_model::via::Via;
use wirelab_stats::analysis::{CannotTell, CellAnalysis, Compared, Verdict};

use super::{CLIENT, Finding, KEPT, NEW, Offers};
use crate::args::ProbeArgs;
use crate::target::Target;

/// The printed metrics, each with the levels of `connection` that have it: a kept connection has no measured handshake.
const SHOWN: [(&str, &[&str]); 4] = [
    ("response_median", &[NEW, KEPT]),
    (CONNECTED, &[NEW]),
    ("handshake_median", &[NEW]),
    ("first_byte_median", &[NEW, KEPT]),
];

const CONNECTED: &str = "connected_median";

/// The complete result.
pub fn text(args: &ProbeArgs, target: &Target, finding: &Finding) -> String {
    let Finding { discovery, study, plan, analysis, failed, .. } = finding;
    let mut text = String::new();
    let asked = discovery.protocol.title();
    let place = match &target.via {
        Some(Via::Proxy(_)) => target.place(),
        Some(Via::UnixSocket(_)) | None => format!("at {}", target.place()),
    };
    let _ = writeln!(text, "{} {place}, status {} over {asked}", target.url, discovery.status);
    let _ =
        writeln!(text, "server            {}", discovery.server.as_deref().unwrap_or("unknown (no field `server`)"));
    let list = |offers: &[String]| if offers.is_empty() { "none".to_owned() } else { offers.join(", ") };
    let _ = writeln!(text, "Alt-Svc           {}", list(&discovery.alt_svc));
    let record = match &discovery.https_record {
        Offers::Listed(offers) => list(offers),
        Offers::NotMeasured { not_measured } => format!("not measured: {not_measured}"),
    };
    let _ = writeln!(text, "HTTPS record      {record}");
    for (protocol, reason) in failed {
        let _ = writeln!(text, "{protocol:<17} failed, omitted from the comparison: {reason}");
    }
    if failed.len() == args.protocols.len() {
        return text;
    }
    let _ = writeln!(
        text,
        "\nMedian of {} blocks [smallest to largest]; compared with {}; client {}",
        analysis.complete_blocks,
        study.compare.baseline,
        CLIENT.name()
    );
    for (name, connections) in SHOWN {
        let Some(metric) = wirelab_stats::METRICS.iter().find(|metric| metric.name == name) else { continue };
        let _ = writeln!(text, "\n{}", metric.title);
        for (number, cell) in plan.cells.iter().enumerate() {
            if cell.twin_of.is_some() || !connections.contains(&cell.levels["connection"].as_str()) {
                continue;
            }
            let compared = analysis.comparisons.iter().find(|c| c.cell == number && !c.aa && c.metric == name);
            row(&mut text, metric, cell, &analysis.cells[number], compared);
        }
        for compared in analysis.comparisons.iter().filter(|compared| compared.aa && compared.metric == name) {
            let cell = &plan.cells[compared.baseline].levels;
            let (connection, interval) = (&cell["connection"], interval(compared));
            if connections.contains(&connection.as_str()) && !interval.is_empty() {
                let _ = writeln!(
                    text,
                    "  {:<4} {connection:<5} noise floor (A/A, baseline against itself):{interval} times",
                    cell["protocol"]
                );
            }
        }
    }
    text.push('\n');
    if finding.is_limited {
        text.push_str(
            "The noise floor is not measured, because it needs a second series of requests. --i-may-load-these-hosts \
             measures it.\n",
        );
    }
    for warning in &analysis.warnings {
        let _ = writeln!(text, "! {}", warning.meaning());
    }
    text
}

fn row(text: &mut String, metric: &Metric, cell: &Cell, found: &CellAnalysis, compared: Option<&Compared>) {
    let quantity = |value| Quantity(value, metric.unit).to_string();
    let value = match (found.estimates.get(metric.name), found.not_measured.get(metric.name), &found.reason) {
        (Some(estimate), ..) => {
            let (low, high) = estimate.range;
            format!("{:<8} {:<22}", quantity(estimate.median), format!("[{} to {}]", quantity(low), quantity(high)))
        }
        (None, ..) if metric.name == CONNECTED && cell.job.protocol.uses_quic() => {
            "not measured: QUIC combines connecting and handshake".to_owned()
        }
        (None, Some(reason), _) => format!("not measured: {reason}"),
        (None, None, Some(reason)) => format!("failed: {reason}"),
        (None, None, None) => "not measured".to_owned(),
    };
    let verdict = compared.map_or_else(String::new, words);
    let line = format!("  {:<4} {:<5} {value} {verdict}", cell.levels["protocol"], cell.levels["connection"]);
    let _ = writeln!(text, "{}", line.trim_end());
}

fn interval(compared: &Compared) -> String {
    compared.interval.map_or_else(String::new, |i| format!(" [{:.2}, {:.2}]", i.low, i.high))
}

/// A verdict against the baseline as words.
fn words(compared: &Compared) -> String {
    let ratio = compared.ratio.map_or_else(String::new, |ratio| format!(": {ratio:.2} times{}", interval(compared)));
    match compared.verdict {
        Verdict::Less => format!("faster{ratio}"),
        Verdict::More => format!("slower{ratio}"),
        Verdict::Equivalent => format!("equivalent{ratio}"),
        Verdict::CannotTell { why: CannotTell::NoValues } => String::new(),
        Verdict::CannotTell { why: CannotTell::TooFewBlocks } => format!("preliminary, too few blocks{ratio}"),
        Verdict::CannotTell { why: CannotTell::UnequalFailures } => format!("inconclusive, failures differ{ratio}"),
        Verdict::CannotTell { why: CannotTell::ClientBound } => {
            format!("inconclusive, the client's own time may explain it{ratio}")
        }
        Verdict::CannotTell { why: CannotTell::NoiseFloor } => {
            format!("inconclusive, the A/A pair differs as much{ratio}")
        }
        Verdict::CannotTell { .. } => format!("inconclusive{ratio}"),
    }
}
