//! Cases of endpoints that export their counters during the trial and at their end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use wirelab_lab::Role;
use wirelab_model::exposition::{BOUNDS, Exposed, Exposition};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Recording;

use crate::case::Case;
use crate::finding::{Finding, Stop, demand};
use crate::pair::Pair;
use crate::stage::Stage;

/// The case of a role with a protocol.
pub fn case(role: Role, protocol: Protocol) -> Case {
    Case::new(
        role,
        protocol,
        "`exposition`: it exports its counters, and leaves the last ones in a file",
        move |stage| {
            let exposition = Exposition {
                socket: stage.fresh("exposition.sock"),
                labels: [("role".to_owned(), role.word().to_owned()), ("trial".to_owned(), "\"7\"\\".to_owned())]
                    .into(),
            };
            match role {
                Role::Server => server(stage, protocol, &exposition),
                _ => client(stage, protocol, &exposition),
            }
        },
    )
}

fn server(stage: &Stage, protocol: Protocol, exposition: &Exposition) -> Finding {
    let mut pair = Pair::simple(stage, Role::Server, protocol)?;
    pair.server.exposition = Some(exposition.clone());
    let server = pair.serve(stage)?;
    let before = told(exposition)?;
    let trial = pair.run_against(stage, server.port, server.configured.clone(), || {})?;
    let after = told(exposition)?;
    server.stop(true)?;
    let last = left(exposition)?;
    // The check request counts too.
    let sent = 1 + trial.samples.len() as u64;
    let counted = [before.requests, after.requests, last.requests];
    demand(counted == [0, sent, sent], || {
        format!("expected `requests` to be 0 before {sent} requests, then {sent}, and {sent} at the end; {counted:?}")
    })?;
    demand(last.connections.is_none_or(|open| open == 0), || {
        format!("expected no open connections at the end; {last:?}")
    })
}

fn client(stage: &Stage, protocol: Protocol, exposition: &Exposition) -> Finding {
    for recording in [Recording::Samples, Recording::Histograms] {
        let mut pair = Pair::simple(stage, Role::Client, protocol)?;
        pair.client.exposition = Some(exposition.clone());
        pair.client.recording = recording;
        let server = pair.serve(stage)?;
        let mut meanwhile = Err(Stop::broken("the suite never read the client's counters"));
        let trial = pair.run_against(stage, server.port, server.configured.clone(), || meanwhile = told(exposition))?;
        server.stop(true)?;
        let Some(sent) = trial.run.requests else { return Err(Stop::broken("expected `done` to count requests")) };
        let (meanwhile, last) = (meanwhile?, left(exposition)?);
        demand(meanwhile.requests <= sent && last.requests == sent, || {
            format!("expected at most {sent} `requests` in the window, and {sent} at the end; {meanwhile:?}, {last:?}")
        })?;
        demand(last.failed == Some(0), || format!("expected `failed` to be 0, as in `done`; {last:?}"))?;
        let times = last.response.ok_or_else(|| Stop::broken("expected response times of a client"))?;
        let of_times: u64 = times.counts.iter().sum();
        demand(times.counts.len() == BOUNDS + 1 && of_times == sent && times.sum_ns > 0, || {
            format!("expected {} counts of response times, {sent} in all; {times:?}", BOUNDS + 1)
        })?;
    }
    Ok(())
}

/// Reads the counters from the socket.
fn told(exposition: &Exposition) -> Finding<Exposed> {
    let ask = || {
        let mut words = String::new();
        connect(&exposition.socket)?.read_to_string(&mut words).map(|_| words)
    };
    let words = ask().map_err(|error: io::Error| {
        Stop::broken(format!("expected counters at the socket {}; {error}", exposition.socket.display()))
    })?;
    exposed(exposition, &words)
}

/// Reads the counters that a finished endpoint left.
fn left(exposition: &Exposition) -> Finding<Exposed> {
    demand(!exposition.socket.exists(), || {
        format!("expected the socket {} to be removed at the end", exposition.socket.display())
    })?;
    let path = exposition.last();
    let words = fs::read_to_string(&path)
        .map_err(|error| Stop::broken(format!("expected the last counters at {}; {error}", path.display())))?;
    exposed(exposition, &words)
}

fn exposed(exposition: &Exposition, words: &str) -> Finding<Exposed> {
    let exposed: Exposed = serde_json::from_str(words)
        .map_err(|error| Stop::broken(format!("the counters do not match `exposed.schema.json`: {error}: {words}")))?;
    demand(exposed.labels == exposition.labels, || {
        format!("expected the labels {:?}; {:?}", exposition.labels, exposed.labels)
    })?;
    Ok(exposed)
}

/// Connects through a descriptor of the folder, because the path may be longer than a socket address can be.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let folder = File::open(folder)?;
    UnixStream::connect(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}
