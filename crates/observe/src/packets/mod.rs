//! Packets and bytes at the client's interface and at the interface of the server's node, as the wire carries them.
//!
//! The witness ([`crate::witness`]) receives every frame from a packet socket. A super-packet of segmentation offload
//! counts as the packets that it is split into; a frame in VXLAN counts outside and inside. Counts that disagree with
//! the interface's own counters are void, with the reason. At an interface that a node shares with other pods, counts
//! are valid only if they agree with the counts at the server's pod.

pub mod frame;
mod metrics;
pub(crate) mod pcapng;
pub(crate) mod split;
pub(crate) mod tally;

use std::fs;
use std::io;
use std::path::PathBuf;

use wirelab_model::metric::Values;
use wirelab_model::missing::Missing;
use wirelab_model::network::{Place, Vantage};

pub use metrics::ABOUT;
pub(crate) use metrics::LARGEST_OF_NODE;

use crate::window::values;
use crate::witness::{Answer, Order, Witness};
use crate::{About, Captures, Observer, Reaped, Stage, Targets, Window};
use tally::Tally;

/// The observer.
#[derive(Debug, Default)]
pub struct Packets {
    watching: Option<Watching>,
    places: Places,
}

/// A capture that the witness has started.
#[derive(Debug)]
struct Watching {
    witness: Witness,
    vantages: Vec<Vantage>,
    captures: Option<Captures>,
    /// The first error.
    trouble: Option<Missing>,
}

/// The counts at each place, or the reason why they are missing.
#[derive(Debug, Clone)]
struct Places {
    client: Result<Seen, Missing>,
    server_node: Result<Seen, Missing>,
}

/// The counts at one interface.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    tally: Tally,
    mtu: u32,
    is_encapsulated: bool,
}

impl Default for Places {
    fn default() -> Self {
        Self::unknown(Missing::NoWindow)
    }
}

impl Places {
    fn unknown(why: Missing) -> Self {
        Self { client: Err(why.clone()), server_node: Err(why) }
    }
}

impl Observer for Packets {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn prepare(&mut self, stage: &Stage<'_>) {
        if stage.vantages.is_empty() {
            self.places = Places::unknown(Missing::SharedInterfaces);
            return;
        }
        let captures = stage.captures.cloned();
        let file = |vantage: &Vantage| captures.as_ref().map(|captures| captures.body(vantage.place));
        let vantages = stage.vantages.iter().map(|vantage| (vantage.clone(), file(vantage))).collect();
        let order = Order::Watch { vantages };
        match stage.witness.ask(&order) {
            Ok(_) => {
                let (witness, vantages) = (stage.witness.clone(), stage.vantages.to_vec());
                self.watching = Some(Watching { witness, vantages, captures, trouble: None });
            }
            Err(why) => self.places = Places::unknown(why),
        }
    }

    fn begin(&mut self, _: &Targets) {
        self.send(&Order::Begin);
    }

    fn end(&mut self, _: &Targets) {
        self.send(&Order::End);
    }

    fn reaped(&mut self, _: &Reaped) {
        self.collect();
    }

    fn values(&mut self, window: &Window) -> Values {
        self.collect();
        values(ABOUT.metrics, metrics::readings(&self.places, window))
    }
}

impl Packets {
    fn send(&mut self, order: &Order) {
        if let Some(watching) = &mut self.watching
            && let Err(why) = watching.witness.ask(order)
        {
            watching.trouble.get_or_insert(why);
        }
    }

    /// Takes the counts from the witness and finishes the captures.
    fn collect(&mut self) {
        let Some(Watching { witness, vantages, captures, trouble }) = self.watching.take() else { return };
        let answer = witness.ask(&Order::Collect);
        // Captures are kept even if the counts are void: a failed trial is worth inspecting.
        let kept = captures.map_or(Ok(()), |captures| captures.finish(&vantages));
        self.places = match (trouble, answer, kept) {
            (Some(why), _, _) | (None, Err(why), _) => Places::unknown(why),
            (None, Ok(_), Err(error)) => Places::unknown(Missing::failed("keeping the capture", error)),
            (None, Ok(Answer::Collected { tallies }), Ok(())) => {
                let of = |place| seen(place, &vantages, &tallies);
                let is_shared = vantages.iter().any(Vantage::is_shared);
                let server_node = of(Place::ServerNode);
                let server_node =
                    if is_shared { matching_pod(server_node, &of(Place::ServerPod)) } else { server_node };
                Places { client: of(Place::Client), server_node }
            }
            (None, Ok(other), Ok(())) => Places::unknown(other.to(&Order::Collect)),
        };
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        // After a failed trial, too, captures are finished.
        self.collect();
    }
}

/// The counts at the only interface of a place.
fn seen(place: Place, vantages: &[Vantage], tallies: &[Result<Tally, Missing>]) -> Result<Seen, Missing> {
    let mut here = vantages.iter().zip(tallies).filter(|(vantage, _)| vantage.place == place);
    let (vantage, tally) = here.next().ok_or(Missing::NoInterface)?;
    if here.next().is_some() {
        return Err(Missing::SeveralNodes);
    }
    let (tally, mtu) = (tally.clone()?, vantage.mtu);
    // With known hosts, the packets show whether they are in VXLAN.
    let is_encapsulated = match vantage.between {
        None => vantage.is_encapsulated,
        Some(_) => tally.inner.both().packets == tally.outer.both().packets,
    };
    Ok(Seen { tally, mtu, is_encapsulated })
}

/// Accepts the counts at a node's shared interface only if they equal the counts at the server's pod. Then no packet
/// took another way, was lost in between, or was in an unknown encapsulation.
fn matching_pod(node: Result<Seen, Missing>, pod: &Result<Seen, Missing>) -> Result<Seen, Missing> {
    let pod = pod.as_ref().map_err(|why| Missing::AtPod { reason: Box::new(why.clone()) })?;
    let count = |seen: &Seen| (seen.tally.outer.sent.packets, seen.tally.outer.received.packets);
    let (sent, received) = count(pod);
    if (sent, received) == (0, 0) {
        return Err(Missing::NoPacketsAtPod);
    }
    let node = node?;
    let (sent_at_node, received_at_node) = count(&node);
    if (sent_at_node, received_at_node) == (sent, received) {
        return Ok(node);
    }
    Err(Missing::OtherPacketsAtPod { sent, received, sent_at_node, received_at_node })
}

impl Captures {
    /// The file that the witness writes.
    fn body(&self, place: Place) -> PathBuf {
        self.path(place, "pcapng.part")
    }

    fn path(&self, place: Place, ending: &str) -> PathBuf {
        let place = match place {
            Place::Client => "client",
            Place::ServerNode => "server-node",
            Place::ServerPod => "server-pod",
        };
        let mut name = self.stem.clone().into_os_string();
        name.push(format!("-{place}.{ending}"));
        name.into()
    }

    /// Writes the final captures, with the client's TLS keys in each.
    fn finish(&self, vantages: &[Vantage]) -> io::Result<()> {
        let keys = self.keys.as_ref().map(fs::read);
        let secrets = match &keys {
            Some(Ok(keys)) => keys.as_slice(),
            // Captures without keys are kept, too.
            _ => &[],
        };
        for vantage in vantages {
            let body = self.body(vantage.place);
            // Missing if the interface could not be captured; the values carry the reason.
            if body.exists() {
                pcapng::with_secrets(&body, secrets, &self.path(vantage.place, "pcapng"))?;
                fs::remove_file(&body)?;
            }
        }
        match keys {
            Some(Ok(keys)) if keys.is_empty() => Err(io::Error::other("the client wrote no secrets into its key log")),
            Some(Err(error)) => Err(io::Error::new(error.kind(), format!("reading the client's key log: {error}"))),
            Some(Ok(_)) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tally::{Flow, Flows};
    use super::*;

    fn seen(sent: u64, received: u64) -> Seen {
        let flow = |packets| Flow { packets, ..Flow::default() };
        let outer = Flows { sent: flow(sent), received: flow(received) };
        Seen { tally: Tally { outer, ..Tally::default() }, mtu: 1500, is_encapsulated: true }
    }

    #[test]
    fn counts_at_a_shared_interface_are_valid_only_if_they_equal_the_pods() {
        assert_eq!(matching_pod(Ok(seen(3, 4)), &Ok(seen(3, 4))), Ok(seen(3, 4)));
        let other = Missing::OtherPacketsAtPod { sent: 3, received: 4, sent_at_node: 3, received_at_node: 3 };
        assert_eq!(matching_pod(Ok(seen(3, 3)), &Ok(seen(3, 4))), Err(other));
        let ended = || Err(Missing::WitnessEnded);
        assert_eq!(matching_pod(ended(), &Ok(seen(3, 4))), ended());
        let at_pod = Missing::AtPod { reason: Box::new(Missing::WitnessEnded) };
        assert_eq!(matching_pod(Ok(seen(3, 4)), &ended()), Err(at_pod));
        assert_eq!(matching_pod(Ok(seen(0, 0)), &Ok(seen(0, 0))), Err(Missing::NoPacketsAtPod));
    }
}
