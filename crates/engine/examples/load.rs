//! The load engine alone, for measurements of the engine itself: one thread, a closed loop, counts and processor time.
//!
//!     load PROTOCOL ADDRESS:PORT PATH CONNECTIONS STREAMS SECONDS [CA.pem SERVER_NAME]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::http1::Http1;
use wirelab_engine::http2::Http2;
use wirelab_engine::link::Dialer;
use wirelab_engine::load::Load;
use wirelab_engine::raw::RawStream;
use wirelab_engine::schedule::Share;
use wirelab_engine::stream::StreamDialer;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(spec) = spec(&words) else {
        eprintln!("usage: load PROTOCOL ADDRESS:PORT PATH CONNECTIONS STREAMS SECONDS [CA.pem SERVER_NAME]");
        return ExitCode::from(2);
    };
    let result = match spec.protocol {
        Protocol::H1c | Protocol::H1 => run::<StreamDialer<Http1>>(spec),
        Protocol::Tcp | Protocol::Tls => run::<StreamDialer<RawStream>>(spec),
        Protocol::H2c | Protocol::H2 | Protocol::Grpcc | Protocol::Grpc => run::<StreamDialer<Http2>>(spec),
        other => Err(format!("the load engine has no `{other}`")),
    };
    match result {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn spec(words: &[String]) -> Option<ClientSpec> {
    let [protocol, server, path, connections, streams, seconds, tls @ ..] = words else { return None };
    let (address, port) = server.rsplit_once(':')?;
    let (connections, streams): (u32, u32) = (connections.parse().ok()?, streams.parse().ok()?);
    let mut spec = serde_json::json!({
        "contract": 1, "protocol": protocol, "address": address, "port": port.parse::<u16>().ok()?,
        "server_name": tls.get(1).map_or("localhost", String::as_str),
        "request": {"method": "GET", "path": path, "body_size": 0},
        "connections": {"policy": "persistent", "connections": connections, "streams": streams},
        "schedule": {"loop": "closed", "workers": connections * streams},
        "extent": {"duration_ns": seconds.parse::<u64>().ok()? * 1_000_000_000},
        "timeouts": {"connect_ns": 5_000_000_000_u64, "request_ns": 10_000_000_000_u64},
        "seed": 1, "recording": "histograms", "results": "/dev/null",
    });
    if let Some(anchor) = tls.first() {
        spec["tls"] = serde_json::json!({"trust_anchor": anchor, "verify": true});
    }
    serde_json::from_value(spec).ok()
}

fn run<D: Dialer>(spec: ClientSpec) -> Result<String, String> {
    let share = Share { index: 0, of: 1 };
    let mut load =
        Load::<D>::new(Arc::new(spec), share, Arc::default(), Arc::default()).map_err(|refusal| refusal.to_string())?;
    load.open(&mut || false).map_err(|ended| format!("{ended:?}"))?;
    let before = cpu();
    let zero = Instant::now();
    let end = load.measure(zero, &mut || false).map_err(|failure| failure.message)?.unwrap_or(zero);
    let used = cpu();
    let results = load.finish();
    let (requests, errors) = results.recorder.finish(zero).counts();
    if let Some(failure) = results.first_failure {
        eprintln!("{errors:?}: {}", failure.message);
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
    let (user, system) = (used.0 - before.0, used.1 - before.1);
    Ok(format!(
        "{requests} requests, {:.0}/s, user {:.3} us, system {:.3} us, processor {:.3} us per request",
        requests as f64 / (end - zero).as_secs_f64(),
        each(user),
        each(system),
        each(user + system),
    ))
}

/// User and system time of this process.
fn cpu() -> (Duration, Duration) {
    // SAFETY: `rusage` consists of integers, for which zeros are values, and lives through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let time = |at: libc::timeval| Duration::new(at.tv_sec as u64, at.tv_usec as u32 * 1000);
    (time(usage.ru_utime), time(usage.ru_stime))
}
