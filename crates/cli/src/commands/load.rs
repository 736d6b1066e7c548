//! `wirelab load`: the load generator without a study.

use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use wirelab_endpoint::Refusal;
use wirelab_endpoint::load::{LoadResult, Progress, Results};
use wirelab_endpoint::look::look;
use wirelab_model::metric::{Quantity, Unit, Value, Values};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{Arrivals, ClientSpec, ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule};
use wirelab_model::units::Span;

use crate::args::{ArrivalsArg, LoadArgs, ResumptionArg};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_json};
use crate::stderr;
use crate::target::Target;

/// Duration of a load without --requests and --duration.
const DEFAULT_DURATION: Span = Span::from_secs(10);

/// Sends load and prints latencies.
pub fn load(args: &LoadArgs) -> Result {
    let target = Target::find(&args.url, args.reach.connect_to)?;
    let protocol = args.protocol.unwrap_or(if target.is_secure() { Protocol::H2 } else { Protocol::H1c });
    target.admit(protocol)?;
    let spec = spec(args, &target, protocol)?;
    let stop = stop_flag()?;
    let unanswered = |refusal: Refusal| match stop.load(Ordering::Relaxed) {
        true => Failure::interrupted("interrupted before anything was measured"),
        false => Failure::failed(target.unanswered(protocol, &refusal)),
    };
    let head = look(&spec, &stop).map_err(unanswered)?;
    target.accept(&head)?;
    if let Some(path) = &args.samples {
        // An unwritable file is found before the measurement, not after it.
        File::create(path).map_err(|error| unwritable(path, &error))?;
    }
    let bar = Bar::new(&spec, args.show.quiet);
    let result = wirelab_endpoint::load::run(&spec, |progress| bar.show(progress), &stop);
    drop(bar);
    let result = result.map_err(unanswered)?;
    if let Some(path) = &args.samples {
        result.results.write(path).map_err(|error| unwritable(path, &error))?;
    }
    let values = match &result.results {
        Results::Samples(samples) => wirelab_stats::summarise(samples, result.window_ns),
        Results::Histograms(histograms) => wirelab_stats::summarise_histograms(histograms, result.window_ns)
            .map_err(|error| Failure::failed(error.to_string()))?,
    };
    if args.show.json {
        show_json(&target, protocol, &result, &values)?;
    } else {
        print(&text(args, &target, protocol, &result, &values))?;
    }
    if result.stopped {
        return Err(Failure::interrupted("interrupted; the result covers the requests until then"));
    }
    if result.requests == 0 {
        let why = result.first_failure.unwrap_or_else(|| "no request was sent".to_owned());
        return Err(Failure::failed(format!("no request to {} succeeded: {why}", target.url)));
    }
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write the samples to {}: {error}", path.display()))
}

/// Progress on standard error; hidden if that is not a terminal.
struct Bar {
    bar: ProgressBar,
    extent: Extent,
}

impl Bar {
    fn new(spec: &ClientSpec, quiet: bool) -> Self {
        let length = match spec.extent {
            Extent::Requests(count) => count,
            Extent::DurationNs(ns) => ns,
        };
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template("{wide_bar:.cyan/dim} {msg}").expect("the template is valid");
        let bar = ProgressBar::with_draw_target(Some(length), target).with_style(style.progress_chars("━━─"));
        stderr::keep_below(&bar);
        Self { bar, extent: spec.extent }
    }

    fn show(&self, progress: Progress) {
        let Progress { elapsed, requests, failed } = progress;
        let Some(elapsed) = elapsed else { return self.bar.set_message("connecting and warming up") };
        self.bar.set_position(match self.extent {
            Extent::Requests(_) => requests,
            Extent::DurationNs(_) => u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
        });
        self.bar.set_message(format!("{:.1} s, {requests} requests, {failed} failed", elapsed.as_secs_f64()));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Translates the arguments into a spec.
fn spec(args: &LoadArgs, target: &Target, protocol: Protocol) -> Result<ClientSpec> {
    if args.streams > 1 && !protocol.multiplexes() {
        return Err(Failure::input(format!(
            "{} allows one request at a time on a connection; use -c instead of -m",
            protocol.title()
        )));
    }
    if args.streams > 1 && args.new_connections {
        return Err(Failure::input("with --new-connections each connection has one request; use -c instead of -m"));
    }
    if args.connections > 1 && args.new_connections && args.rate.is_some() {
        return Err(Failure::input(
            "with --rate and --new-connections every request opens a connection at once; -c would limit nothing",
        ));
    }
    let workers =
        args.connections.checked_mul(args.streams).ok_or_else(|| Failure::input("-c times -m is too large"))?;
    let mut spec = target.spec(protocol, &args.reach, args.connect_timeout, args.seed);
    let method = if args.body.bytes() > 0 { "POST" } else { "GET" };
    spec.request.method = args.method.clone().unwrap_or_else(|| method.to_owned());
    spec.request.body_size = args.body.bytes();
    for header in &args.header {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| Failure::input(format!("the header field `{header}` is not of the form `NAME: VALUE`")))?;
        let name = name.trim().to_ascii_lowercase();
        // The only field that wirelab sends by default.
        if name == "user-agent" {
            spec.request.headers.retain(|(known, _)| known != "user-agent");
        }
        spec.request.headers.push((name, value.trim().to_owned()));
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

fn show_json(target: &Target, protocol: Protocol, result: &LoadResult, values: &Values) -> Result {
    let histograms = match &result.results {
        Results::Histograms(histograms) => serde_json::to_value(histograms).map_err(Failure::failed)?,
        Results::Samples(_) => serde_json::Value::Null,
    };
    print_json(&json!({
        "url": target.url.as_str(),
        "address": target.socket(),
        "protocol": protocol,
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

/// The printed metrics, in this order.
const SHOWN: [&str; 16] = [
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
    "resumed_share",
    "early_share",
];

/// The metrics that are printed with --resumption only.
const RESUMPTION_METRICS: [&str; 2] = ["resumed_share", "early_share"];

fn text(args: &LoadArgs, target: &Target, protocol: Protocol, result: &LoadResult, values: &Values) -> String {
    let mut text = String::new();
    let window = Quantity(result.window_ns as f64, Unit::Nanoseconds);
    let ending = if result.stopped { ", stopped early" } else { "" };
    let _ = writeln!(text, "{} to {} ({}), {window}{ending}", protocol.title(), target.url, target.socket());
    let failed: u64 = result.errors.values().sum();
    let _ = writeln!(text, "{:<22} {} succeeded, {failed} failed", "requests", result.requests);
    for (kind, count) in &result.errors {
        let _ = writeln!(text, "{:<22} {count} {kind}", "");
    }
    if let Some(failure) = &result.first_failure {
        let _ = writeln!(text, "{:<22} {failure}", "first failure");
    }
    let resumes = args.resumption != ResumptionArg::None;
    for name in SHOWN.into_iter().filter(|name| resumes || !RESUMPTION_METRICS.contains(name)) {
        let metric = wirelab_stats::METRICS.iter().find(|metric| metric.name == name);
        if let (Some(metric), Some(value)) = (metric, values.get(name)) {
            let shown = match value {
                Value::Measured(number) => Quantity(*number, metric.unit).to_string(),
                Value::Infinite { infinite } => format!("infinite: {infinite}"),
                Value::NotMeasured(reason) => format!("not measured: {reason}"),
            };
            let _ = writeln!(text, "{name:<22} {shown}");
        }
    }
    let facts: Vec<_> = result.configured.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let _ = writeln!(text, "{:<22} {}", "settings", facts.join(" "));
    text
}
