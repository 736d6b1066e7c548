//! `wirelab load`: the load generator on its own.

use std::fmt::Write;

use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::json;
use wirelab_endpoint::load::{LoadResult, Results};
use wirelab_model::metric::{Quantity, Unit, Value, Values};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{Arrivals, ClientSpec, ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule};
use wirelab_model::units::Span;

use crate::args::{ArrivalsArg, LoadArgs, ResumptionArg};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_json};
use crate::target::{Target, Trust};

/// How long a load lasts where neither requests nor a duration are given.
const DEFAULT_DURATION: Span = Span::from_secs(10);

/// Sends load and prints what it cost.
pub fn load(args: &LoadArgs) -> Result {
    let target = Target::find(&args.url, args.connect_to)?;
    let protocol = args.protocol.unwrap_or(if target.is_secure() { Protocol::H2 } else { Protocol::H1c });
    target.admit(protocol)?;
    let spec = spec(args, &target, protocol)?;
    let stop = stop_flag()?;
    let bar = ProgressBar::with_draw_target(None, if args.show.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() });
    let result = wirelab_endpoint::load::run(
        &spec,
        |progress| {
            let elapsed = progress.elapsed.map_or_else(|| "connecting".to_owned(), |time| format!("{:.1} s", time.as_secs_f64()));
            bar.set_message(format!("{elapsed}, {} requests, {} failed", progress.requests, progress.failed));
            bar.tick();
        },
        &stop,
    );
    bar.finish_and_clear();
    let result = result.map_err(|refusal| Failure::failed(format!("{protocol} to {}: {refusal}", target.url)))?;
    if let Some(path) = &args.samples {
        result
            .results
            .write(path)
            .map_err(|error| Failure::failed(format!("cannot write the samples to {}: {error}", path.display())))?;
    }
    let values = match &result.results {
        Results::Samples(samples) => wirelab_stats::summarise(samples, result.window_ns),
        Results::Histograms(histograms) => {
            wirelab_stats::summarise_histograms(histograms, result.window_ns).map_err(Failure::failed)?
        }
    };
    if args.show.json { show_json(&result, &values)? } else { print(&text(&target, protocol, &result, &values))? }
    if result.requests == 0 {
        let why = result.first_failure.unwrap_or_else(|| "none was sent".to_owned());
        return Err(Failure::failed(format!("no request succeeded: {why}")));
    }
    Ok(())
}

/// The spec that the arguments ask for.
fn spec(args: &LoadArgs, target: &Target, protocol: Protocol) -> Result<ClientSpec> {
    if args.streams > 1 && !protocol.multiplexes() {
        return Err(Failure::input(format!("{} carries one request at a time on a connection; use -c instead of -m", protocol.title())));
    }
    if args.streams > 1 && args.new_connections {
        return Err(Failure::input("with --new-connections each connection carries one request; use -c instead of -m"));
    }
    let workers = args.connections.checked_mul(args.streams).ok_or_else(|| Failure::input("-c times -m is too large"))?;
    let trust = Trust { ca: args.ca.as_deref(), insecure: args.insecure };
    let mut spec = target.spec(protocol, trust, (args.connect_timeout, args.timeout), args.seed);
    spec.request.method.clone_from(&args.method);
    spec.request.body_size = args.body.bytes();
    for header in &args.header {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| Failure::input(format!("`{header}` is not a header field; `NAME: VALUE` was expected")))?;
        spec.request.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name.trim()));
        spec.request.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    spec.connections = if args.new_connections {
        ConnectionPolicy::PerRequest
    } else {
        ConnectionPolicy::Persistent { connections: args.connections, streams: args.streams }
    };
    spec.schedule = match args.rate {
        None => Schedule::Closed { workers, pause: Pause::None },
        Some(rate) => Schedule::Open {
            rate_per_s: rate.0,
            arrivals: match args.arrivals {
                ArrivalsArg::Uniform => Arrivals::Uniform,
                ArrivalsArg::Poisson => Arrivals::Poisson,
            },
        },
    };
    spec.extent = match args.requests {
        Some(count) => Extent::Requests(count),
        None => Extent::DurationNs(args.duration.unwrap_or(DEFAULT_DURATION).nanos()),
    };
    spec.warm_up = (args.warm_up > 0).then_some(Extent::Requests(args.warm_up));
    spec.resumption = match args.resumption {
        ResumptionArg::None => Resumption::None,
        ResumptionArg::Resume => Resumption::Resume,
        ResumptionArg::ZeroRtt => Resumption::ZeroRtt,
    };
    spec.recording = if args.samples.is_some() { Recording::Samples } else { Recording::Histograms };
    spec.threads = Some(args.threads);
    Ok(spec)
}

fn show_json(result: &LoadResult, values: &Values) -> Result {
    let histograms = match &result.results {
        Results::Histograms(histograms) => serde_json::to_value(histograms).map_err(Failure::failed)?,
        Results::Samples(_) => serde_json::Value::Null,
    };
    print_json(&json!({
        "requests": result.requests,
        "errors": result.errors,
        "first_failure": result.first_failure,
        "window_ns": result.window_ns,
        "stopped": result.stopped,
        "values": values,
        "configured": result.configured,
        "histograms": histograms,
    }))
}

/// The values that are printed, in this order.
const SHOWN: [&str; 14] = [
    "request_rate",
    "goodput",
    "response_min",
    "response_median",
    "response_mean",
    "response_p90",
    "response_p99",
    "response_p999",
    "response_max",
    "service_median",
    "lag_p99",
    "connected_median",
    "handshake_median",
    "first_byte_median",
];

fn text(target: &Target, protocol: Protocol, result: &LoadResult, values: &Values) -> String {
    let mut text = String::new();
    let window = Quantity(result.window_ns as f64, Unit::Nanoseconds);
    let cut = if result.stopped { ", stopped early" } else { "" };
    let _ = writeln!(text, "{} to {} ({}:{}), {window}{cut}", protocol.title(), target.url, target.address, target.port);
    let failed: u64 = result.errors.values().sum();
    let _ = writeln!(text, "{:<22} {} succeeded, {failed} failed", "requests", result.requests);
    for (kind, count) in &result.errors {
        let _ = writeln!(text, "{:<22} {count} {kind}", "");
    }
    if let Some(failure) = &result.first_failure {
        let _ = writeln!(text, "{:<22} {failure}", "first failure");
    }
    for name in SHOWN {
        let metric = wirelab_stats::METRICS.iter().find(|metric| metric.name == name);
        if let (Some(metric), Some(value)) = (metric, values.get(name)) {
            let shown = match value {
                Value::Measured(number) => Quantity(*number, metric.unit).to_string(),
                Value::NotMeasured { not_measured } => format!("not measured: {not_measured}"),
            };
            let _ = writeln!(text, "{name:<22} {shown}");
        }
    }
    let facts: Vec<_> = result.configured.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let _ = writeln!(text, "{:<22} {}", "in force", facts.join(" "));
    text
}
