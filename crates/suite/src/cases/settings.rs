//! Cases of optional fields: an endpoint honours each field visibly, or refuses it as unsupported; it never ignores
//! one.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use wirelab_lab::Role;
use wirelab_model::event::Configured;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Transport;

use crate::case::Case;
use crate::conversation::json as as_json;
use crate::finding::{Finding, Stop, demand};
use crate::pair::{Pair, Trial};
use crate::stage::Stage;

use super::refusals::demand_refusal;

/// A transport setting with a value that is rarely a default.
struct Setting {
    field: &'static str,
    value: fn() -> Value,
    exists: fn(Protocol) -> bool,
}

const fn tcp(protocol: Protocol) -> bool {
    !protocol.uses_udp()
}

const fn reliable(protocol: Protocol) -> bool {
    !matches!(protocol, Protocol::Udp)
}

const fn windows(protocol: Protocol) -> bool {
    protocol.multiplexes()
}

const SETTINGS: &[Setting] = &[
    Setting { field: "congestion", value: || json!("cubic"), exists: reliable },
    Setting { field: "congestion", value: || json!("bbr"), exists: reliable },
    Setting { field: "congestion", value: || json!("reno"), exists: reliable },
    Setting { field: "stream_window", value: || json!(262_144), exists: windows },
    Setting { field: "connection_window", value: || json!(524_288), exists: windows },
    Setting { field: "udp_send_buffer", value: || json!(100_000), exists: Protocol::uses_udp },
    Setting { field: "udp_receive_buffer", value: || json!(100_000), exists: Protocol::uses_udp },
    Setting { field: "max_udp_payload", value: || json!(1_300), exists: Protocol::uses_udp },
    Setting { field: "gso", value: || json!(false), exists: Protocol::uses_udp },
    Setting { field: "gso", value: || json!(true), exists: Protocol::uses_udp },
    Setting { field: "gro", value: || json!(false), exists: Protocol::uses_udp },
    Setting { field: "gro", value: || json!(true), exists: Protocol::uses_udp },
    Setting { field: "fast_open", value: || json!(true), exists: tcp },
    Setting { field: "fast_open", value: || json!(false), exists: tcp },
    Setting { field: "no_delay", value: || json!(false), exists: tcp },
    Setting { field: "no_delay", value: || json!(true), exists: tcp },
];

/// The cases of a role with a protocol.
pub fn cases(role: Role, protocol: Protocol) -> Vec<Case> {
    let transport = SETTINGS.iter().map(|setting| {
        let (field, value) = (setting.field, (setting.value)());
        let text = format!("transport.{field} = {value}");
        if !(setting.exists)(protocol) {
            return Case::new(role, protocol, format!("{text} does not exist here: unsupported (127)"), move |stage| {
                let pair = with_transport(Pair::simple(stage, role, protocol)?, field, &value);
                let spec = if role == Role::Server { as_json(&pair.server) } else { as_json(&pair.client) };
                demand_refusal(stage, role, &spec, field)
            });
        }
        Case::new(role, protocol, format!("{text} is honoured or unsupported"), move |stage| {
            let pair = with_transport(Pair::simple(stage, role, protocol)?.optional(), field, &value);
            let trial = pair.run(stage)?;
            in_force(role, &trial, field, &value)
        })
    });
    transport.chain(others(role, protocol)).collect()
}

fn with_transport(mut pair: Pair, field: &str, value: &Value) -> Pair {
    let transport: Transport =
        serde_json::from_value(json!({ field: value })).expect("every setting of the table is one of the spec");
    if pair.subject == Role::Server {
        pair.server.transport = transport;
    } else {
        pair.client.transport = transport;
    }
    pair
}

/// Checks that a setting is effective and reported.
fn in_force(role: Role, trial: &Trial, field: &str, value: &Value) -> Finding {
    let configured: &Configured = if role == Role::Server { &trial.server } else { &trial.run.configured };
    let told = configured.get(field);
    demand(told == Some(value), || {
        let told = told.map_or_else(|| "it reports no value".to_owned(), |told| format!("it reports {told}"));
        format!("expected `configured.{field}` to be {value}, read back after it was set; {told}")
    })
}

/// Cases of the fields outside `transport`.
fn others(role: Role, protocol: Protocol) -> Vec<Case> {
    let case = |name: &str, run: fn(Pair, &Stage) -> Finding| {
        Case::new(role, protocol, name, move |stage| run(Pair::simple(stage, role, protocol)?.optional(), stage))
    };
    let mut cases = vec![case("threads = 2 is honoured or unsupported", |pair, stage| {
        // Work for two threads: a thread without a connection does not start.
        let mut pair = pair.persistent(2, 2);
        if pair.subject == Role::Server {
            pair.server.threads = Some(2);
        } else {
            pair.client.threads = Some(2);
        }
        let trial = pair.run(stage)?;
        in_force(pair.subject, &trial, "threads", &json!(2))
    })];
    if protocol.is_secure() {
        cases.push(case("a key log is written or unsupported", |mut pair, stage| {
            let path = stage.fresh("keys.log");
            match (pair.subject, &mut pair.server.tls, &mut pair.client.tls) {
                (Role::Server, Some(tls), _) => tls.key_log = Some(path.clone()),
                (Role::Client, _, Some(tls)) => tls.key_log = Some(path.clone()),
                _ => {}
            }
            pair.run(stage)?;
            let text = fs::read_to_string(&path).unwrap_or_default();
            let secrets = text.lines().filter(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")).count();
            demand(secrets >= 5, || {
                format!("expected the secrets of at least 5 connections in the key log; {secrets} are there")
            })
        }));
    }
    cases.push(case("qlog files are written or unsupported", |mut pair, stage| {
        let folder = stage.fresh("qlog");
        fs::create_dir_all(&folder).map_err(|error| Stop::skip(format!("the suite cannot make a folder: {error}")))?;
        if pair.subject == Role::Server {
            pair.server.qlog_dir = Some(folder.clone());
        } else {
            pair.client.qlog_dir = Some(folder.clone());
        }
        pair.run(stage)?;
        demand(has_content(&folder), || "expected a qlog file with content; there is none".to_owned())
    }));
    if role == Role::Client && (protocol.is_http() || protocol.is_grpc()) {
        cases.push(case("further header fields are sent or unsupported", |mut pair, stage| {
            pair.client.request.headers = vec![("x-wirelab-suite".to_owned(), "1".to_owned())];
            pair.run(stage).map(drop)
        }));
    }
    cases
}

fn has_content(folder: &Path) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).any(|metadata| metadata.len() > 0)
}
