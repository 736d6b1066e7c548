//! Checks of the records of a run without expected failures.

use std::collections::BTreeSet;

use wirelab_model::sample::{Handshake, Sample};
use wirelab_model::spec::{ClientSpec, ConnectionPolicy, Extent, Feature, Resumption};
use wirelab_model::transport::TransportReport;

use crate::conversation::Run;
use crate::finding::{Finding, Stop, demand};

/// Checks counts, sizes, statuses, connections, handshakes and times against the spec.
pub fn records(spec: &ClientSpec, run: &Run, samples: &[Sample]) -> Finding {
    protocol(spec, run)?;
    if spec.recording == wirelab_model::spec::Recording::Histograms {
        return Ok(());
    }
    if let Extent::Requests(wanted) = spec.extent {
        demand(samples.len() as u64 == wanted, || {
            format!("expected a record for each of {wanted} requests; there are {}", samples.len())
        })?;
    }
    counts(run, samples)?;
    for (number, sample) in samples.iter().enumerate() {
        demand(sample.is_ok(), || format!("expected every request to succeed; record {number} is {sample:?}"))?;
        exchange(spec, run, sample).map_err(|stop| Stop::broken(format!("record {number}: {stop}; {sample:?}")))?;
    }
    if let Some(report) = &run.transport {
        transport(report, samples)?;
    }
    match spec.connections {
        ConnectionPolicy::PerRequest => one_each(spec, samples),
        ConnectionPolicy::Persistent { connections, .. } => kept(connections, samples),
    }
}

/// Checks that the counts of `done` agree with the records.
pub fn counts(run: &Run, samples: &[Sample]) -> Finding {
    let failed = samples.iter().filter(|sample| !sample.is_ok()).count() as u64;
    let told: u64 = run.errors.values().sum();
    demand(told == failed, || {
        format!("expected `done` to count {failed} errors, as the records do; it counts {told}")
    })?;
    let succeeded = samples.len() as u64 - failed;
    demand(run.requests == Some(succeeded), || {
        format!("expected `done` to count {succeeded} requests, as the records do; it says {:?}", run.requests)
    })
}

fn protocol(spec: &ClientSpec, run: &Run) -> Finding {
    let Some(alpn) = spec.protocol.alpn() else { return Ok(()) };
    let told = run.configured.get("alpn");
    demand(told.and_then(|value| value.as_str()) == Some(alpn), || {
        format!("expected `configured.alpn` to be `{alpn}`; it is {told:?}")
    })
}

fn exchange(spec: &ClientSpec, run: &Run, sample: &Sample) -> Finding {
    let same = |what: &str, wanted: u64, is: u64| {
        demand(wanted == is, || format!("expected {what} to be {wanted}; it is {is}"))
    };
    same("bytes_out", spec.request.body_size, sample.bytes_out)?;
    if let Some(expect) = &spec.request.expect {
        same("bytes_in", expect.body_size, sample.bytes_in)?;
        let status = spec.protocol.is_http().then_some(expect.status);
        demand(sample.status == status, || format!("expected the status to be {status:?}"))?;
    }
    demand(sample.last_byte_ns <= run.window_ns, || {
        format!("expected the window ({} ns) to last until the last byte", run.window_ns)
    })
}

/// Checks that a client's transport statistics, if any, cover the connections of its records; persistent connections
/// may have carried no request.
fn transport(report: &TransportReport, samples: &[Sample]) -> Finding {
    let opened = connections(samples);
    let kept = samples.iter().all(|sample| sample.handshake_ns.is_none() && sample.connected_ns.is_none());
    let right = if kept { report.connections >= opened } else { report.connections == opened };
    demand(right, || {
        let told = report.connections;
        format!("expected `done.transport` to be of the {opened} connections of the records; it is of {told}")
    })
}

/// Checks that a server's transport statistics cover at least the connections of the client's records.
pub fn served(report: &TransportReport, samples: &[Sample]) -> Finding {
    let opened = connections(samples);
    demand(report.connections >= opened, || {
        let told = report.connections;
        format!("expected `done.transport` to be of at least {opened} connections of the server; it is of {told}")
    })?;
    // Every connection needs at least one packet.
    demand(report.packets_sent.is_none_or(|sent| sent >= report.connections), || {
        format!("expected at least a packet per connection; `done.transport` is {report:?}")
    })
}

fn connections(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| sample.connection).collect::<BTreeSet<_>>().len() as u64
}

/// Checks that every request had a connection of its own and reports its handshake.
fn one_each(spec: &ClientSpec, samples: &[Sample]) -> Finding {
    let numbers: BTreeSet<_> = samples.iter().map(|sample| sample.connection).collect();
    demand(numbers.len() == samples.len(), || {
        format!("expected a connection for every one of {} requests; there are {}", samples.len(), numbers.len())
    })?;
    demand(numbers.last().is_none_or(|last| *last as usize + 1 == samples.len()), || {
        format!("expected connections to be numbered from 0 without gaps; they are {numbers:?}")
    })?;
    let secure = spec.protocol.is_secure();
    // With TCP Fast Open the SYN carries the request, so the time of the SYN-ACK is unknown.
    let unseen = spec.protocol.uses_udp() || spec.transport.fast_open == Some(true);
    for sample in samples {
        demand(unseen || sample.connected_ns.is_some(), || {
            format!("expected `connected_ns` where a request opened a connection; {sample:?}")
        })?;
        demand(!secure || sample.handshake_ns.is_some(), || {
            format!("expected `handshake_ns` where a request opened a connection with TLS; {sample:?}")
        })?;
        demand(sample.handshake.is_some() == secure, || {
            format!("expected `handshake` exactly where a connection with TLS was opened; {sample:?}")
        })?;
        demand(spec.resumption != Resumption::None || !secure || sample.handshake == Some(Handshake::Full), || {
            format!("expected full handshakes without resumption; {sample:?}")
        })?;
    }
    Ok(())
}

/// Checks that every request used a connection that was open before the window.
fn kept(connections: u32, samples: &[Sample]) -> Finding {
    for sample in samples {
        demand(sample.connection < connections, || {
            format!("expected connection numbers below {connections}; {sample:?}")
        })?;
        demand(sample.connected_ns.is_none() && sample.handshake_ns.is_none() && sample.handshake.is_none(), || {
            format!("expected no times of connecting on a connection that was kept; {sample:?}")
        })?;
    }
    Ok(())
}

/// Checks that no response came before the server's delay was over.
pub fn delayed(feature: Feature, delay_us: u64, samples: &[Sample]) -> Finding {
    let shortest = samples.iter().map(Sample::service_ns).min();
    demand(feature != Feature::Delay || shortest.is_none_or(|time| time >= delay_us * 1_000), || {
        format!("expected no answer before {delay_us} microseconds; the fastest took {shortest:?} ns")
    })
}
