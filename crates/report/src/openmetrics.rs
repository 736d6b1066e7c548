//! The medians of the compared and required metrics as OpenMetrics text, which GitLab compares between branches.

use std::fmt::Write as _;

use wirelab_model::metric::{Metric, Unit};

use crate::Input;

/// A gauge for each cell and each metric that the study compares or requires, in base units.
#[must_use]
pub fn openmetrics(input: &Input) -> String {
    let mut out = String::new();
    let study = &input.manifest.study;
    let compared = study.compare.metrics.iter();
    let mut names: Vec<&String> = compared.chain(study.require.iter().map(|one| &one.that.metric)).collect();
    names.sort();
    names.dedup();
    for metric in names.into_iter().filter_map(|name| input.metric(name)) {
        let (name, factor) = family(metric);
        let mut head = format!("# TYPE {name} gauge\n# HELP {name} {}\n", escaped(metric.meaning));
        for (number, cell) in input.manifest.plan.cells.iter().enumerate().filter(|(_, cell)| cell.twin_of.is_none()) {
            let Some(estimate) = input.estimate(number, metric.name) else { continue };
            out.push_str(&std::mem::take(&mut head));
            let labels: Vec<_> =
                cell.levels.iter().map(|(factor, level)| format!("{}=\"{}\"", label(factor), escaped(level))).collect();
            let labels = [format!("study=\"{}\"", escaped(&study.name))].into_iter().chain(labels).collect::<Vec<_>>();
            let _ = writeln!(out, "{name}{{{}}} {}", labels.join(","), estimate.median * factor);
        }
    }
    out.push_str("# EOF\n");
    out
}

/// The name of a metric family and the factor to its base unit, as Prometheus names them.
fn family(metric: &Metric) -> (String, f64) {
    let (unit, factor) = match metric.unit {
        Unit::Nanoseconds => ("_seconds", 1e-9),
        Unit::Bytes => ("_bytes", 1.0),
        Unit::BitsPerSecond => ("_bits_per_second", 1.0),
        Unit::PerSecond => ("_per_second", 1.0),
        Unit::Share => ("_ratio", 1.0),
        Unit::Count => ("", 1.0),
    };
    (format!("wirelab_{}{unit}", label(metric.name)), factor)
}

/// A name with letters, digits and underscores only.
fn label(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
