//! Checks of a client's spec before the start, for every protocol.

use wirelab_contract::CONTRACT_VERSION;
use wirelab_contract::spec::{ClientSpec, ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule};

use crate::refusal::Refusal;

/// Refuses contradictory or impossible combinations.
pub(crate) fn client(spec: &ClientSpec) -> Result<(), Refusal> {
    let protocol = spec.protocol;
    let refuse = |message: String| Err(Refusal::Unsupported(message));
    if spec.contract != CONTRACT_VERSION {
        return refuse(format!("contract {} is unknown; this endpoint implements {CONTRACT_VERSION}", spec.contract));
    }
    if spec.page.is_some() || spec.recording == Recording::Loads {
        return refuse("`page` is set, and this endpoint is no browser; set `client` to a browser".to_owned());
    }
    if spec.recording == Recording::Totals {
        return refuse("`recording` is `totals`, which only a program of the user has".to_owned());
    }
    if spec.discovers {
        return refuse(
            "`discovers` is set, and this endpoint does not support control planes; set `client` to one that does"
                .to_owned(),
        );
    }
    if let Some(via) = spec.via.as_ref().filter(|_| protocol.uses_udp()) {
        return refuse(format!("`via` is {via}, which carries byte streams only, and `{protocol}` uses UDP"));
    }
    if spec.tls.is_some() && !protocol.is_secure() {
        return refuse(format!("`tls` is set, and the protocol `{protocol}` has no TLS"));
    }
    if spec.qlog_dir.is_some() && !protocol.uses_quic() {
        return refuse(format!("`qlog_dir` is set; it concerns QUIC, and the protocol is `{protocol}`"));
    }
    if spec.resumption != Resumption::None && !protocol.is_secure() {
        return refuse(format!("`resumption` is set, and the protocol `{protocol}` has no sessions to resume"));
    }
    if let ConnectionPolicy::Persistent { connections, streams } = spec.connections {
        if connections == 0 || streams == 0 {
            return refuse("persistent connections need at least one connection with one stream".to_owned());
        }
        if streams > 1 && !protocol.multiplexes() {
            return refuse(format!("{streams} streams per connection: the protocol `{protocol}` does not multiplex"));
        }
    }
    match spec.schedule {
        Schedule::Closed { workers: 0, .. } => return refuse("a closed loop needs at least one worker".to_owned()),
        Schedule::Closed { pause: Pause::Uniform { min_ns, max_ns }, .. } if min_ns > max_ns => {
            return refuse(format!("a pause from {min_ns} ns to {max_ns} ns: the first is above the second"));
        }
        Schedule::Open { rate_per_s, .. } if !(rate_per_s.is_finite() && rate_per_s > 0.0) => {
            return refuse(format!("an open loop of {rate_per_s} arrivals per second"));
        }
        Schedule::Closed { .. } | Schedule::Open { .. } => {}
    }
    if !spec.ramp.is_empty() {
        ramp(spec)?;
    }
    if spec.until_steady && !matches!(spec.warm_up, Some(Extent::DurationNs(_))) {
        return refuse("`until_steady` is set, and `warm_up` is not the longest time of the warm-up".to_owned());
    }
    if matches!(spec.extent, Extent::Requests(0) | Extent::DurationNs(0)) {
        return refuse("an extent of zero".to_owned());
    }
    if spec.threads == Some(0) {
        return refuse("0 threads".to_owned());
    }
    if spec.timeouts.connect_ns == 0 || spec.timeouts.request_ns == 0 {
        return refuse("a time-out of 0 ns".to_owned());
    }
    Ok(())
}

/// Refuses a ramp that contradicts the rest of the spec, or sends nothing.
fn ramp(spec: &ClientSpec) -> Result<(), Refusal> {
    let refuse = |message: &str| Err(Refusal::Unsupported(format!("`ramp` is set, and {message}")));
    if !matches!(spec.schedule, Schedule::Open { .. }) {
        return refuse("the schedule is a closed loop");
    }
    if spec.warm_up.is_some() {
        return refuse("`warm_up`, which would need a rate of its own");
    }
    let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
    if spec.ramp.iter().any(|stage| stage.duration_ns == 0 || !is_rate(stage.from_per_s) || !is_rate(stage.to_per_s)) {
        return refuse("a stage has no duration, or a rate that is negative or no number");
    }
    if spec.ramp.iter().all(|stage| stage.arrivals() == 0.0) {
        return refuse("all its rates are 0");
    }
    let length = spec.ramp.iter().try_fold(0_u64, |sum, stage| sum.checked_add(stage.duration_ns));
    match (length, spec.extent) {
        (Some(length), Extent::DurationNs(ns)) if ns == length => Ok(()),
        _ => refuse("`extent` is not the time of all its stages"),
    }
}
