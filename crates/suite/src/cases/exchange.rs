//! Cases of every declared protocol with every declared feature: correct bytes, and correct records.

use wirelab_lab::Role;
use wirelab_model::endpoint::Role as Abilities;
use wirelab_model::heron;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::Sample;
use wirelab_model::spec::{ClientSpec, Feature};

use crate::case::Case;
use crate::cases::pages;
use crate::conversation::{self, Answer};
use crate::finding::{Finding, Stop};
use crate::material::DOCUMENTS;
use crate::pair::{DELAY_US, Pair, applies, can_both};
use crate::stage::Stage;
use crate::verify;

/// Larger bodies overflow the default buffer of a UDP socket, and UDP has no retransmission.
const MOST_BY_DATAGRAM: usize = 20_000;

/// The cases of a role with a protocol.
pub fn cases(role: Role, protocol: Protocol, abilities: &Abilities) -> Vec<Case> {
    let mut cases: Vec<_> = abilities
        .features
        .iter()
        .copied()
        .filter(|feature| applies(*feature, protocol) && !matches!(feature, Feature::Redirect | Feature::Pages))
        .map(|feature| {
            Case::new(role, protocol, sentence(feature), move |stage| {
                if !can_both(stage, role, protocol, feature) {
                    return Err(Stop::skip("the reference endpoint does not have the feature"));
                }
                let sizes = sizes(feature, protocol).into_iter().enumerate();
                sizes.into_iter().try_for_each(|(turn, size)| {
                    let pair = Pair::new(stage, role, protocol, feature, size);
                    // Each policy gets a small and a large body; all sizes with both policies would take twice the
                    // time.
                    let pair = if turn % 2 == 0 { pair } else { pair.persistent(2, 2) };
                    exchange(stage, &pair, feature).map_err(|stop| in_words(stop, size))
                })
            })
            .about(feature)
        })
        .collect();
    if role == Role::Server && protocol.is_http() {
        cases.push(Case::new(role, protocol, "a missing file, or one outside the root, is a 404", move |stage| {
            ["/nothing-here.bin", "/../authority.pem", "/%2e%2e/authority.pem", "/"]
                .into_iter()
                .try_for_each(|path| answers(stage, protocol, (Feature::Files, path), 404))
        }));
        if abilities.features.contains(&Feature::Pages) {
            cases.push(pages::case(protocol));
        }
        if abilities.features.contains(&Feature::Redirect) {
            let redirects = move |stage: &Stage| answers(stage, protocol, (Feature::Redirect, "/redirect"), 302);
            cases.push(Case::new(role, protocol, "a redirect is a 302", redirects).about(Feature::Redirect));
        }
    }
    if role == Role::Server && abilities.features.contains(&Feature::Heron) && applies(Feature::Heron, protocol) {
        // INVALID_ARGUMENT of gRPC.
        let wanted = if protocol.is_grpc() { 3 } else { 400 };
        let name = "a number without a square root is refused";
        let refused = move |stage: &Stage| answers(stage, protocol, (Feature::Heron, "/heron/-1"), wanted);
        cases.push(Case::new(role, protocol, name, refused).about(Feature::Heron));
    }
    cases
}

pub(super) const fn sentence(feature: Feature) -> &'static str {
    match feature {
        Feature::Files => "documents of every size arrive whole",
        Feature::Pages => "the files of a page have their content types",
        Feature::Echo => "bodies of every size come back whole",
        Feature::Bytes => "generated bodies of every size arrive whole",
        Feature::Delay => "an answer takes the requested delay",
        Feature::Redirect => "a redirect is a 302",
        Feature::Heron => "a square root is right",
    }
}

fn sizes(feature: Feature, protocol: Protocol) -> Vec<usize> {
    match feature {
        Feature::Redirect | Feature::Pages => Vec::new(),
        // On a bare stream an empty answer ends before it begins, so the client cannot wait for it.
        Feature::Delay if !protocol.is_http() => vec![1_000, 1_000],
        Feature::Delay => vec![0, 0],
        Feature::Heron => vec![heron::answer(protocol, heron::NUMBER).len(); 2],
        _ if protocol == Protocol::Udp => DOCUMENTS.into_iter().filter(|size| *size <= MOST_BY_DATAGRAM).collect(),
        _ if matches!(protocol, Protocol::Tcp | Protocol::Tls) => {
            DOCUMENTS.into_iter().filter(|size| *size > 0).collect()
        }
        _ => DOCUMENTS.to_vec(),
    }
}

fn exchange(stage: &Stage, pair: &Pair, feature: Feature) -> Finding {
    let trial = pair.run(stage)?;
    verify::delayed(feature, DELAY_US, &trial.samples)
}

fn in_words(stop: Stop, size: usize) -> Stop {
    match stop {
        Stop::Broken(reason) => Stop::Broken(format!("{size} bytes: {reason}")),
        other => other,
    }
}

/// Sends a request without an expectation, so that any status is accepted. The client reports the status in its
/// records, or in the error of the check request.
pub(super) fn answers(stage: &Stage, protocol: Protocol, (feature, path): (Feature, &str), wanted: u16) -> Finding {
    let mut pair = Pair::new(stage, Role::Server, protocol, feature, 0);
    path.clone_into(&mut pair.client.request.path);
    pair.client.request.expect = None;
    let server = pair.serve(stage)?;
    let spec = ClientSpec { port: server.port, ..pair.client.clone() };
    let told = if protocol.is_grpc() { format!("`grpc-status` {wanted}") } else { wanted.to_string() };
    let observed = match conversation::run(stage, &stage.reference, &spec)? {
        Answer::Error(ErrorKind::Status, message) if message.contains(&told) => None,
        Answer::Accepted(_) => {
            let all = conversation::samples(&spec.results)?;
            // Records of gRPC calls have no status; only the client's log shows it.
            let right = |sample: &Sample| match protocol.is_grpc() {
                true => sample.error == Some(ErrorKind::Status),
                false => sample.status == Some(wanted),
            };
            let answers: Vec<_> = all.iter().map(|sample| (sample.status, sample.error)).collect();
            (all.is_empty() || !all.iter().all(right)).then(|| format!("statuses and errors are {answers:?}"))
        }
        other => Some(other.describe()),
    };
    server.stop(true)?;
    observed.map_or(Ok(()), |words| Err(Stop::broken(format!("expected status {wanted} for GET {path}; {words}"))))
}
