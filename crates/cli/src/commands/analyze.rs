//! `wirelab analyze`: the statistics and the report of a run, for a table of measurements.

use std::path::Path;

use wirelab_model::metric::Metric;
use wirelab_model::nearest::nearest;
use wirelab_model::table::Taken;
use wirelab_plan::table::{Mapping, MetricMapping, PUBLISHED, read};
use wirelab_report::{Extent, Input, NoRequests};

use crate::args::AnalyzeArgs;
use crate::commands::report::{formatted, print_report};
use crate::failure::{Failure, Result};

/// Maximum size of a table in bytes: more rows than the statistics can process, at some hundred bytes each.
const MAX_TABLE: u64 = 64 << 20;

/// Analyzes a table and prints the report.
pub fn analyze(args: &AnalyzeArgs) -> Result {
    let Source { text, file, mapping } = source(args)?;
    let named = |(text, name, _): &(String, String, bool)| Mapping::parse(text, name).map_err(Failure::input);
    let from_file = mapping.as_ref().map(named).transpose()?.unwrap_or_default();
    let wanted = with_options(from_file.clone(), args);
    // An error points into the mapping file only if no option overrides it.
    let place = mapping.as_ref().filter(|_| wanted == from_file).map(|(text, name, _)| (text.as_str(), name.as_str()));
    let mut measured = read(&text, &file, &wanted, place).map_err(Failure::input)?;
    if let Some((_, name, guessed)) = mapping {
        let taken = Taken { what: "mapping".to_owned(), from: format!("`{name}`"), guessed };
        measured.table.taken.insert(0, taken);
    }
    let metrics: Vec<&Metric> = measured.metrics.iter().collect();
    let manifest = &measured.manifest;
    let (study, plan, design) = (&manifest.study, &manifest.plan, measured.table.design);
    let analysis = wirelab_stats::analyse_table(study, plan, &measured.records, &metrics, design);
    let pooled = |_| Err(NoRequests::Table);
    let input = Input {
        manifest,
        table: Some(&measured.table),
        trials: &measured.records,
        links: &[],
        stopped: None,
        integrity: None,
        analysis: &analysis,
        metrics: &metrics,
        pooled: &pooled,
        by_request: &|_| Vec::new(),
        typical_load: &|_| None,
        typical_film: &|_| None,
    };
    // Its reader has to see how the columns were interpreted.
    print_report(&formatted(&input, args.format, Extent::Full), args.format)
}

/// A table with its mapping.
struct Source {
    text: String,
    file: String,
    /// Text and name of the mapping file, and whether it was found beside the table instead of named.
    mapping: Option<(String, String, bool)>,
}

/// Reads a table and its mapping from files, or a published table by its name.
fn source(args: &AnalyzeArgs) -> Result<Source> {
    let named = match &args.mapping {
        Some(path) => Some((contents(path, "mapping file")?, path.display().to_string(), false)),
        None => None,
    };
    let path = Path::new(&args.file);
    if let Some(published) = PUBLISHED.iter().find(|published| published.name == args.file).filter(|_| !path.exists()) {
        let own = || (published.mapping.to_owned(), published.mapping_path.to_owned(), false);
        let mapping = Some(named.unwrap_or_else(own));
        return Ok(Source { text: published.text.to_owned(), file: published.path.to_owned(), mapping });
    }
    if !path.exists() {
        let names = || PUBLISHED.iter().map(|published| published.name);
        let meant = nearest(&args.file, names()).map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        let known: Vec<_> = names().map(|name| format!("`{name}`")).collect();
        return Err(Failure::input(format!(
            "`{}` is neither a file nor a published table{meant}. Published tables: {}",
            args.file,
            known.join(", ")
        )));
    }
    let text = contents(path, "table")?;
    let beside = path.with_extension("toml");
    let mapping = match named {
        Some(named) => Some(named),
        None if beside.is_file() => Some((contents(&beside, "mapping file")?, beside.display().to_string(), true)),
        None => None,
    };
    Ok(Source { text, file: args.file.clone(), mapping })
}

fn contents(path: &Path, what: &str) -> Result<String> {
    let wrong = |error: std::io::Error| Failure::input(format!("cannot read the {what} {}: {error}", path.display()));
    // Refuses directories, devices and huge files, which could block or exhaust the memory.
    let facts = std::fs::metadata(path).map_err(wrong)?;
    if !facts.is_file() || facts.len() > MAX_TABLE {
        let limit = MAX_TABLE >> 20;
        return Err(Failure::input(format!(
            "{} is not a {what}, which is a regular file of at most {limit} MiB",
            path.display()
        )));
    }
    std::fs::read_to_string(path).map_err(wrong)
}

/// The mapping, overridden by the options of the command line.
fn with_options(mut mapping: Mapping, args: &AnalyzeArgs) -> Mapping {
    let override_with = |old: &mut Option<String>, new: &Option<String>| {
        if new.is_some() {
            old.clone_from(new);
        }
    };
    override_with(&mut mapping.compare.factor, &args.factor);
    override_with(&mut mapping.compare.baseline, &args.baseline);
    override_with(&mut mapping.compare.twin, &args.twin);
    override_with(&mut mapping.columns.block, &args.block);
    if !args.by.is_empty() {
        mapping.columns.by.clone_from(&args.by);
    }
    // An option can use a column that the mapping ignores.
    let used = |column: &String| args.block.as_ref() == Some(column) || args.by.contains(column);
    mapping.columns.ignore.retain(|column| !used(column));
    mapping.columns.ignore.extend(args.ignore.iter().cloned());
    for (column, value) in &args.skip {
        let values = mapping.columns.skip.entry(column.clone()).or_insert_with(|| serde_json::Value::Array(Vec::new()));
        let mut all = values.as_array().cloned().unwrap_or_else(|| vec![values.clone()]);
        all.push(value.clone().into());
        *values = all.into();
    }
    if !args.wide.is_empty() {
        let wide = args.wide.iter().cloned().collect();
        mapping.metrics = [("value".to_owned(), MetricMapping { wide, ..MetricMapping::default() })].into();
        mapping.compare.metrics = None;
    }
    if !args.value.is_empty() {
        let metric = |column: &String| MetricMapping { value: Some(column.clone()), ..MetricMapping::default() };
        mapping.metrics = args.value.iter().map(|column| (column.clone(), metric(column))).collect();
        mapping.compare.metrics = None;
    }
    if args.unit.is_some() {
        mapping.unit.clone_from(&args.unit);
        mapping.metrics.values_mut().for_each(|metric| metric.unit = None);
    }
    if let Some(better) = args.better {
        mapping.better = Some(better.into());
        mapping.metrics.values_mut().for_each(|metric| metric.better = None);
    }
    mapping.compare.margin = args.margin.or(mapping.compare.margin);
    mapping
}
