//! Valid range of each setting: what one machine can run, so that a typing error fails before it fills a disk or runs
//! for a year.

use std::ops::RangeInclusive;

use wirelab_model::page::MOST_HOSTS;
use wirelab_model::queue::Queue;
use wirelab_model::settings::Settings;
use wirelab_model::units::{BitRate, Share, Size, Span};

use crate::limits::MAX_CLIENTS;

const LARGEST_PAYLOAD: u64 = 1 << 30;
const DAY: u64 = 86_400_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// The first key whose value is out of range, with the message.
pub(crate) fn out_of_range(settings: &Settings) -> Option<(&'static str, String)> {
    let whole = |key, value: Option<u64>, range: RangeInclusive<u64>| {
        let value = value.filter(|value| !range.contains(value))?;
        Some((key, format!("`{key}` is {value}, but must be from {} to {}", range.start(), range.end())))
    };
    let size = |key, value: Option<Size>, range: RangeInclusive<u64>| {
        let value = value.filter(|value| !range.contains(&value.bytes()))?;
        Some((key, format!("`{key}` is {value}, but must be from {} to {}", Size(*range.start()), Size(*range.end()))))
    };
    let span = |key, value: Option<Span>, range: RangeInclusive<u64>| {
        let value = value.filter(|value| !range.contains(&value.nanos()))?;
        Some((key, format!("`{key}` is {value}, but must be from {} to {}", Span(*range.start()), Span(*range.end()))))
    };
    let s = settings;
    let found = [
        span("round_trip", s.round_trip, 0..=10 * SECOND),
        span("jitter", s.jitter, 0..=SECOND),
        // A queue in packets has no size in bytes to check.
        size("queue", s.queue.and_then(Queue::size), 1500..=LARGEST_PAYLOAD),
        // Lower bound: the smallest packet that a QUIC path carries (RFC 9000, section 14), with headers. Upper
        // bound: the largest IP packet.
        whole("mtu", s.mtu.map(u64::from), 1280..=65_535),
        size("payload", s.payload, 0..=LARGEST_PAYLOAD),
        whole("hosts", s.hosts.map(u64::from), 1..=u64::from(MOST_HOSTS)),
        span("delay", s.delay, 0..=DAY),
        whole("clients", s.clients.map(u64::from), 1..=MAX_CLIENTS as u64),
        whole("streams", s.streams.map(u64::from), 1..=100_000),
        whole("workers", s.workers.map(u64::from), 1..=100_000),
        span("pause", s.pause, 0..=DAY),
        span("pause_max", s.pause_max, 0..=DAY),
        whole("requests", s.requests, 1..=1_000_000_000),
        span("duration", s.duration, 1_000_000..=DAY),
        whole("warm_up", s.warm_up, 0..=1_000_000_000),
        size("stream_window", s.stream_window, 1..=1 << 32),
        size("connection_window", s.connection_window, 1..=1 << 32),
        size("udp_send_buffer", s.udp_send_buffer, 1..=LARGEST_PAYLOAD),
        size("udp_receive_buffer", s.udp_receive_buffer, 1..=LARGEST_PAYLOAD),
        // RFC 9000, section 14: a QUIC path carries datagrams of at least 1200 bytes. 65527 is the largest UDP
        // payload.
        whole("max_udp_payload", s.max_udp_payload.map(u64::from), 1200..=65_527),
        span("connect_timeout", s.connect_timeout, 1..=DAY),
        span("request_timeout", s.request_timeout, 1..=DAY),
        span("stall_timeout", s.stall_timeout, SECOND..=DAY),
        span("max_connection_age", s.max_connection_age, 10_000_000..=DAY),
        whole("server_threads", s.server_threads.map(u64::from), 1..=1024),
        whole("client_threads", s.client_threads.map(u64::from), 1..=1024),
    ];
    let share = |key, value: Option<Share>| {
        let value = value.filter(|value| !(0.0..=1.0).contains(&value.0))?;
        Some((key, format!("`{key}` is {value}, but must be from 0 % to 100 %")))
    };
    let bits = |key, value: Option<BitRate>| {
        let value = value.filter(|value| !(1000..=100_000_000_000).contains(&value.0))?;
        Some((key, format!("`{key}` is {value}, but must be from 1 kbit/s to 100 Gbit/s")))
    };
    let link = [
        bits("bandwidth", s.bandwidth),
        bits("bandwidth_up", s.bandwidth_up),
        share("loss", s.loss),
        share("reorder", s.reorder),
        share("duplicate", s.duplicate),
        s.loss_burst
            .filter(|burst| !(1.0..=10_000.0).contains(burst))
            .map(|burst| ("loss_burst", format!("`loss_burst` is {burst}, but must be from 1 to 10000"))),
    ];
    let rate = s
        .rate
        .filter(|rate| rate.0 > 1e7)
        .map(|rate| ("rate", format!("`rate` is {rate}, but must be at most 10000000/s")));
    found.into_iter().chain(link).flatten().next().or(rate).or_else(|| contradiction(s))
}

/// The first combination of settings that contradict each other.
fn contradiction(s: &Settings) -> Option<(&'static str, String)> {
    if s.requests.is_some() && s.duration.is_some() {
        let message =
            "both `requests` and `duration` are set, but a measured window has one length; remove one of them";
        return Some(("duration", message.to_owned()));
    }
    if s.rate.is_some() && (s.pause.is_some() || s.pause_max.is_some()) {
        let message =
            "both `rate` and a pause are set, but in an open loop requests start at their time; remove one of them";
        return Some(("rate", message.to_owned()));
    }
    match (s.pause, s.pause_max) {
        (Some(pause), Some(max)) if max < pause => {
            Some(("pause_max", format!("`pause_max` is {max}, below `pause`, which is {pause}")))
        }
        _ => None,
    }
}
