//! `wirelab load`: the load generator without a study.

mod by_interval;
mod by_request;
mod calls;
mod find_rate;
mod follow;
mod hdr;
mod live;
mod step;
mod steps;

use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use wirelab_endpoint::Refusal;
use wirelab_endpoint::load::{Client, LoadResult, Results};
use wirelab_endpoint::look::look;
use wirelab_model::event::{Steadiness, WarmedUp};
use wirelab_model::metric::{Metric, Quantity, Unit, Value, Values};
use wirelab_model::protocol::Protocol;
use wirelab_model::ramp::Ramp;
use wirelab_model::requirement::{Limit, Statement};
use wirelab_model::spec::{ClientSpec, ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule};
use wirelab_model::units::Span;
use wirelab_model::warning::Warning;

use self::by_interval::ByInterval;
use self::by_request::ByRequest;
use self::live::Live;
use crate::args::{ClientArg, LoadArgs, MessagesArg, ResumptionArg, TlsArg};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_document, print_json};
use crate::requests::{Asked, Requests, reflection};
use crate::visits::FLAG;

/// Number of requests that are sent once before the measurement, if there are several.
const MOST_LOOKS: usize = 20;

/// Duration of a load without --requests and --duration.
const DEFAULT_DURATION: Span = Span::from_secs(10);

/// Sends load and prints latencies.
pub fn load(args: &LoadArgs) -> Result {
    for that in &args.fail_on {
        known("--fail-on", that)?;
        if let Limit::NoWorse { .. } = that.limit {
            return Err(Failure::input(
                "--fail-on: a load has no baseline for `worse`; give a bound, such as 'p99 > 50 ms'",
            ));
        }
    }
    find_rate::check(&args.find_rate)?;
    if let Some(every) = args.every.filter(|every| duration(*every) < live::SHORTEST) {
        return Err(Failure::input(format!("--every {every}: the shortest interval is 100 ms")));
    }
    let stop = stop_flag()?;
    let (requests, protocol) = match args.follow {
        Some(most) => follow::follow(args, most, &stop)?,
        None => admitted(args, &args.urls, &stop)?,
    };
    let target = &requests.target;
    let mut spec = spec(args, &requests, protocol)?;
    super::warn_if_not_optimised();
    let client = client(args.client, protocol)?;
    let unanswered = |refusal: Refusal| match stop.load(Ordering::Relaxed) {
        true => Failure::interrupted("interrupted before anything was measured"),
        false => Failure::failed(target.unanswered(protocol, &refusal)),
    };
    if protocol.is_grpc() {
        let counts = args.request.expect_messages != Some(MessagesArg::Any);
        calls::look(&requests, &mut spec, counts, &stop)?;
    } else {
        for (number, written) in requests.numbered().take(MOST_LOOKS) {
            let head = look(&spec, number, &stop).map_err(unanswered)?;
            requests.accept(written, &head)?;
        }
    }
    if !args.find_rate.is_empty() {
        return find_rate::find_rate(args, &requests, &spec, client, &stop);
    }
    if !args.steps.is_empty() {
        return steps::steps(args, &requests, &spec, client, &stop);
    }
    for path in [&args.samples, &args.hdr].into_iter().flatten() {
        // An unwritable file is found before the measurement, not after it.
        File::create(path).map_err(|error| unwritable(path, &error))?;
    }
    let live = Live::new(&spec, args.ramp.as_ref(), args.every.map(duration), &args.show);
    let result = wirelab_endpoint::load::run(&spec, client, live.every(), |news| live.show(&news), &stop);
    live.end()?;
    let mut result = result.map_err(unanswered)?;
    if let Some(messages) = calls::configured(&spec) {
        result.configured.insert("messages_per_response".to_owned(), messages);
    }
    if let Some(path) = &args.samples {
        result.results.write(path).map_err(|error| unwritable(path, &error))?;
    }
    if let Some(path) = &args.hdr {
        fs::write(path, hdr::text(&result.results)?).map_err(|error| unwritable(path, &error))?;
    }
    let values = values_of(&result)?;
    let mut warnings = warnings(args.ramp.as_ref(), &spec.schedule, &values);
    warnings.extend(result.warmed_up.and_then(not_warmed_up));
    let by_request = ByRequest::of(&requests, &result);
    let by_interval = args.ramp.as_ref().map(|ramp| ByInterval::of(ramp, args.every, &result, &args.fail_on));
    if args.show.json {
        let mut object = object(&requests, (protocol, client), &result, &values, &by_request, &warnings)?;
        if let Some(by_interval) = &by_interval {
            object["ramp"] = serde_json::to_value(by_interval).map_err(Failure::failed)?;
        }
        match args.every {
            // A line, as those of the intervals are.
            Some(_) => print_document(&format!("{object}\n"))?,
            None => print_json(&object)?,
        }
    } else {
        print(&text(args, &requests, (protocol, client), &result, &values, &warnings))?;
        print(&by_request.text())?;
        by_interval.as_ref().map_or(Ok(()), |by_interval| print(&by_interval.text()))?;
    }
    if result.stopped {
        return Err(Failure::interrupted("interrupted; the result covers the requests until then"));
    }
    if result.requests == 0 {
        let why = result.first_failure.unwrap_or_else(|| "no request was sent".to_owned());
        return Err(Failure::failed(format!("no request to {} succeeded: {why}", requests.url())));
    }
    match by_interval.filter(|_| !args.fail_on.is_empty()) {
        Some(by_interval) => by_interval.judge(),
        None => judge(&args.fail_on, result.errors.values().sum(), result.requests, &values),
    }
}

/// A metric by its name.
fn metric(name: &str) -> Option<&'static Metric> {
    wirelab_stats::METRICS.iter().find(|metric| metric.name == name)
}

/// Refuses a statement about an unknown metric, or with a wrong unit.
fn known(flag: &str, that: &Statement) -> Result {
    wirelab_plan::known_statement(that, &wirelab_stats::METRICS.iter().collect::<Vec<_>>())
        .map(drop)
        .map_err(|error| Failure::input(format!("{flag}: {error}")))
}

/// The metrics of a load.
fn values_of(result: &LoadResult) -> Result<Values> {
    match &result.results {
        Results::Samples(samples) => Ok(wirelab_stats::summarise(samples, result.window_ns)),
        Results::Histograms(histograms) => {
            wirelab_stats::summarise_histograms(histograms, result.window_ns).map_err(Failure::failed)
        }
    }
}

/// Fails if the load has a value that `--fail-on` names. A value that was not measured counts as one, because nothing
/// shows that the requirement is met.
fn judge(fail_on: &[Statement], failed: u64, succeeded: u64, values: &Values) -> Result {
    if fail_on.is_empty() {
        if failed <= succeeded {
            return Ok(());
        }
        return Err(Failure::unmet(format!(
            "{failed} of {} requests failed, so the median response time is infinite. --fail-on sets another limit",
            failed + succeeded
        )));
    }
    let unmet = fail_on.iter().filter_map(|that| {
        let metric = metric(&that.metric)?;
        let found = match values.get(&that.metric)? {
            Value::Measured(number) if that.limit.keeps(*number) == Some(true) => return None,
            value => shown(value, metric),
        };
        Some(format!("{that}: {found}"))
    });
    let unmet: Vec<_> = unmet.collect();
    if unmet.is_empty() {
        return Ok(());
    }
    Err(Failure::unmet(format!("the load does not meet what is required of it.\n{}", unmet.join("\n"))))
}

/// A value with its unit, or why there is none.
fn shown(value: &Value, metric: &Metric) -> String {
    match value {
        Value::Measured(number) => Quantity(*number, metric.unit).to_string(),
        Value::Infinite { infinite } => format!("infinite: {infinite}"),
        Value::NotMeasured(reason) => format!("not measured: {reason}"),
    }
}

/// The client that sends the requests.
fn client(wanted: Option<ClientArg>, protocol: Protocol) -> Result<Client> {
    match wanted {
        None | Some(ClientArg::Engine) => Ok(Client::Engine),
        Some(ClientArg::Builtin) if protocol.is_grpc() => {
            Err(Failure::input("the built-in client has no gRPC calls of your own; leave out --client builtin"))
        }
        Some(ClientArg::Builtin) => Ok(Client::Builtin),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.nanos())
}

/// The requests to these URLs and their protocol: one that the server has, to a server to which the user may send load.
fn admitted(args: &LoadArgs, urls: &[String], stop: &AtomicBool) -> Result<(Requests, Protocol)> {
    let asked = Asked::of_load(args, urls)?;
    let target = &asked.target;
    if !target.is_near() && !args.i_may_load_these_hosts {
        return Err(Failure::input(format!(
            "{} is not known to be on this machine or in a private network. No load was sent. Confirm with {FLAG} that you \
             may send load to {}; `wirelab probe` measures it with few requests",
            if target.via.is_some() {
                format!("{} {}", target.host, target.place())
            } else {
                target.address.to_string()
            },
            target.host
        )));
    }
    let protocol = args.protocol.unwrap_or(if target.is_secure() { Protocol::H2 } else { Protocol::H1c });
    if protocol.is_grpc() {
        target.admit_scheme(protocol)?;
    } else {
        target.admit(protocol)?;
    }
    target.admit_way(protocol)?;
    target.admit_tls(protocol, &args.reach)?;
    if args.reach.tls == TlsArg::Tls12 && args.resumption != ResumptionArg::None {
        return Err(Failure::input("--resumption needs TLS 1.3; leave out --tls 1.2"));
    }
    let (target, question) = (target.clone(), target.spec(protocol, &args.reach, args.connect_timeout, args.seed));
    let reflect = |service: &str, headers: &[_]| {
        let found = reflection::ask(&target, &question, service, headers, stop)?;
        if let (Some(descriptors), Some(path)) = (&found, &args.save_protoset) {
            let failed = |error| Failure::failed(format!("--save-protoset {}: {error}", path.display()));
            fs::write(path, descriptors).map_err(failed)?;
        }
        Ok(found)
    };
    Ok((asked.render(protocol.is_grpc(), &reflect)?, protocol))
}

/// Translates the arguments into a spec.
fn spec(args: &LoadArgs, requests: &Requests, protocol: Protocol) -> Result<ClientSpec> {
    if args.streams > 1 && !protocol.multiplexes() {
        return Err(Failure::input(format!(
            "{} allows one request at a time on a connection; use -c instead of -m",
            protocol.title()
        )));
    }
    if args.streams > 1 && args.new_connections {
        return Err(Failure::input("with --new-connections each connection has one request; use -c instead of -m"));
    }
    if args.connections > 1 && args.new_connections && (args.rate.is_some() || args.ramp.is_some()) {
        return Err(Failure::input(
            "with --rate or --ramp and --new-connections every request opens a connection at once; -c would limit nothing",
        ));
    }
    if args.max_udp_payload.is_some() && protocol != Protocol::H3 {
        return Err(Failure::input(format!(
            "--max-udp-payload concerns h3, and {} has no datagrams",
            protocol.title()
        )));
    }
    let workers =
        args.connections.checked_mul(args.streams).ok_or_else(|| Failure::input("-c times -m is too large"))?;
    let mut spec = requests.spec(protocol, &args.reach, args.connect_timeout, args.seed);
    spec.connections = if args.new_connections {
        ConnectionPolicy::PerRequest
    } else {
        ConnectionPolicy::Persistent { connections: args.connections, streams: args.streams }
    };
    let rate_per_s = args.rate.map(|rate| rate.0).or(args.ramp.as_ref().map(|ramp| ramp.range()[1]));
    spec.schedule = match rate_per_s {
        None => Schedule::Closed { workers, pause: Pause::None },
        Some(rate_per_s) => Schedule::Open { rate_per_s, arrivals: args.arrivals.into() },
    };
    spec.ramp = args.ramp.as_ref().map(|ramp| ramp.stages().to_vec()).unwrap_or_default();
    spec.extent = match (&args.ramp, args.requests) {
        (Some(ramp), _) => Extent::DurationNs(ramp.length().nanos()),
        (None, Some(count)) => Extent::Requests(count),
        (None, None) => Extent::DurationNs(args.duration.unwrap_or(DEFAULT_DURATION).nanos()),
    };
    spec.transport.max_udp_payload = args.max_udp_payload.map(|payload| payload.0);
    spec.warm_up = args.warm_up.extent();
    spec.until_steady = args.warm_up.is_until_steady();
    spec.resumption = match args.resumption {
        ResumptionArg::None => Resumption::None,
        ResumptionArg::Resume => Resumption::Resume,
        ResumptionArg::ZeroRtt => Resumption::ZeroRtt,
    };
    // Histograms tell neither several requests apart, nor the rates of a ramp.
    let is_divided = spec.mix.len() > 1 || args.ramp.is_some();
    spec.recording = if args.samples.is_some() || is_divided { Recording::Samples } else { Recording::Histograms };
    spec.threads = Some(args.threads);
    Ok(spec)
}

/// A warning about the values of a load.
struct Caution {
    meaning: String,
    remedy: &'static str,
}

/// The warnings about stalls, which a closed loop hides, and about the mixed rates of a ramp.
fn warnings(ramp: Option<&Ramp>, schedule: &Schedule, values: &Values) -> Vec<Caution> {
    let share = values.get("stalled_share").and_then(Value::number);
    let stalls = share.filter(|share| wirelab_stats::hides_stalls(schedule, *share)).map(|share| {
        let stalls = Warning::Stalls { cell: None, share };
        Caution { meaning: stalls.meaning(), remedy: stalls.remedy() }
    });
    let mixed = ramp.filter(|ramp| ramp.range()[0] < ramp.range()[1]).map(|ramp| {
        let [lowest, highest] = ramp.range().map(step::per_second);
        let meaning = format!("The values of the whole load mix rates from {lowest} to {highest}.");
        Caution { meaning, remedy: "Read its intervals, or measure rates one after the other (`--steps`)." }
    });
    stalls.into_iter().chain(mixed).collect()
}

/// The warning about a warm-up that reached its longest time.
fn not_warmed_up(end: WarmedUp) -> Option<Caution> {
    let what = match end.steadiness {
        Steadiness::Steady => return None,
        Steadiness::Changing => "were still changing",
        Steadiness::CannotTell => "are not known to be steady, because requests were too few or too noisy",
    };
    let meaning = format!("The warm-up ended at its longest time, and response times {what}.");
    Some(Caution { meaning, remedy: "Raise that time (`--warm-up \"until steady within 20 s\"`)." })
}

/// The result for programs.
fn object(
    requests: &Requests,
    (protocol, client): (Protocol, Client),
    result: &LoadResult,
    values: &Values,
    by_request: &ByRequest,
    warnings: &[Caution],
) -> Result<serde_json::Value> {
    let histograms = match &result.results {
        Results::Histograms(histograms) => serde_json::to_value(histograms).map_err(Failure::failed)?,
        Results::Samples(_) => serde_json::Value::Null,
    };
    Ok(json!({
        "url": requests.url(),
        "address": requests.target.socket(),
        "via": requests.target.via.as_ref().map(ToString::to_string),
        "protocol": protocol,
        "client": client.name(),
        "requests": result.requests,
        "errors": result.errors,
        "sent_again": result.sent_again,
        "first_failure": result.first_failure,
        "warmed_up": result.warmed_up,
        "window_ns": result.window_ns,
        "stopped": result.stopped,
        "values": values,
        "configured": result.configured,
        "by_request": by_request,
        "histograms": histograms,
        "warnings": warnings
            .iter()
            .map(|Caution { meaning, remedy }| json!({ "meaning": meaning, "remedy": remedy }))
            .collect::<Vec<_>>(),
    }))
}

/// The printed metrics, in this order.
const SHOWN: [&str; 17] = [
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
    "stalled_share",
    "connected_median",
    "handshake_median",
    "first_byte_median",
    "resumed_share",
    "early_share",
];

/// The metrics that are printed with --resumption only.
const RESUMPTION_METRICS: [&str; 2] = ["resumed_share", "early_share"];

fn text(
    args: &LoadArgs,
    requests: &Requests,
    (protocol, client): (Protocol, Client),
    result: &LoadResult,
    values: &Values,
    warnings: &[Caution],
) -> String {
    let mut text = String::new();
    let window = Quantity(result.window_ns as f64, Unit::Nanoseconds);
    let ending = if result.stopped { ", stopped early" } else { "" };
    let _ =
        writeln!(text, "{} to {} ({}), {window}{ending}", protocol.title(), requests.url(), requests.target.place());
    let failed: u64 = result.errors.values().sum();
    let _ = writeln!(text, "{:<22} {} succeeded, {failed} failed", "requests", result.requests);
    for (kind, count) in &result.errors {
        let _ = writeln!(text, "{:<22} {count} {kind}", "");
    }
    if result.sent_again > 0 {
        let what = "after the server turned them away (GOAWAY, REFUSED_STREAM)";
        let _ = writeln!(text, "{:<22} {} {what}", "sent again", result.sent_again);
    }
    if let Some(WarmedUp { took_ns, requests, .. }) = &result.warmed_up {
        let _ = writeln!(text, "{:<22} {requests} requests in {}", "warm-up", Span(*took_ns));
    }
    if let Some(failure) = &result.first_failure {
        let _ = writeln!(text, "{:<22} {failure}", "first failure");
    }
    let resumes = args.resumption != ResumptionArg::None;
    for name in SHOWN.into_iter().filter(|name| resumes || !RESUMPTION_METRICS.contains(name)) {
        if let (Some(metric), Some(value)) = (metric(name), values.get(name)) {
            let _ = writeln!(text, "{name:<22} {}", shown(value, metric));
        }
    }
    let facts: Vec<_> = result.configured.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let _ = writeln!(text, "{:<22} {}", "client", client.name());
    let _ = writeln!(text, "{:<22} {}", "settings", facts.join(" "));
    for Caution { meaning, remedy } in warnings {
        let _ = writeln!(text, "{:<22} {meaning}\n{:<22} {remedy}", "warning", "");
    }
    text
}

#[cfg(test)]
mod tests {
    use wirelab_model::missing::Missing;

    use super::*;

    #[test]
    fn a_load_fails_by_default_if_more_than_half_of_its_requests_fail() {
        let status = |failed, succeeded| format!("{:?}", judge(&[], failed, succeeded, &Values::new()));
        assert!(status(97, 3).contains("97 of 100 requests failed") && status(97, 3).contains("status: 3"));
        assert_eq!(status(50, 50), "Ok(())");
    }

    #[test]
    fn a_load_fails_by_a_bound_that_is_exceeded_infinite_or_not_measured() {
        let fails = |value: Value| {
            let values = [("response_p99".to_owned(), value)].into_iter().collect();
            let bound = Statement::from_failure("p99 > 50 ms").unwrap();
            judge(&[bound], 97, 3, &values).is_err()
        };
        assert!(!fails(Value::Measured(50e6)));
        assert!(fails(Value::Measured(51e6)));
        assert!(fails(Value::Infinite { infinite: "97 of 100 requests failed".to_owned() }));
        assert!(fails(Value::missing(Missing::NoSuccess)));
    }
}
