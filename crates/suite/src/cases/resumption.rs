//! Cases of handshakes: full, resumed and 0-RTT handshakes are different experiments, and records must prove each.

use wirelab_lab::Role;
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::Resumption;

use crate::case::Case;
use crate::finding::{Finding, demand};
use crate::pair::Pair;
use crate::stage::Stage;

/// The cases of a role with a protocol.
pub fn cases(role: Role, protocol: Protocol) -> Vec<Case> {
    if !protocol.is_secure() {
        return Vec::new();
    }
    // The offer of the server, the policy of the client, and the expected handshake in every record.
    let combinations: [(&str, bool, bool, Resumption, Handshake); 5] = [
        ("full handshakes, although tickets are offered", true, false, Resumption::None, Handshake::Full),
        ("resumed handshakes, or unsupported", true, false, Resumption::Resume, Handshake::Resumed),
        ("0-RTT on every connection, or unsupported", true, true, Resumption::ZeroRtt, Handshake::EarlyAccepted),
        ("full handshakes, where the server offers no tickets", false, false, Resumption::Resume, Handshake::Full),
        ("resumption alone, although 0-RTT is offered", true, true, Resumption::Resume, Handshake::Resumed),
    ];
    combinations
        .into_iter()
        .map(|(name, tickets, early, asked, proven)| {
            Case::new(role, protocol, format!("records prove {name}"), move |stage| {
                let mut pair = Pair::simple(stage, role, protocol)?.optional();
                if let Some(tls) = &mut pair.server.tls {
                    (tls.resumption, tls.early_data) = (tickets, early);
                }
                pair.client.resumption = asked;
                handshakes(&pair, stage, proven)
            })
        })
        .collect()
}

fn handshakes(pair: &Pair, stage: &Stage, proven: Handshake) -> Finding {
    let trial = pair.run(stage)?;
    let all: Vec<_> = trial.samples.iter().map(|sample| sample.handshake).collect();
    demand(all.iter().all(|handshake| *handshake == Some(proven)), || {
        format!("expected every record to prove {proven:?}; they say {all:?}")
    })
}
