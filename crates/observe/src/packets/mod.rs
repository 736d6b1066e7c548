//! Packets and bytes at the client's interface and at that of the server's node, as the wire would carry them.
//!
//! Every frame is looked at by the witness ([`crate::witness`]) with a packet socket. A super-packet of segmentation offload
//! counts as the packets that it becomes; what comes in VXLAN counts outside and inside. Counts that do not agree with the
//! interface's own counters are void, with the reason; so are those of a node's interface that others use too, unless they agree with what
//! passed that of the server's pod.

pub(crate) mod frame;
mod metrics;
pub(crate) mod pcapng;
pub(crate) mod split;
pub(crate) mod tally;

use std::fs;
use std::io;
use std::path::PathBuf;

use wirelab_model::metric::{Value, Values};
use wirelab_model::network::{Place, Vantage};

pub use metrics::ABOUT;
pub(crate) use metrics::LARGEST_OF_NODE;

use crate::window::{NO_WINDOW, values};
use crate::witness::{Answer, Order, Witness};
use crate::{About, Captures, Observer, Reaped, Stage, Targets, Window};
use tally::Tally;

/// The observer.
#[derive(Debug, Default)]
pub struct Packets {
    watching: Option<Watching>,
    places: Places,
}

/// While the witness looks.
#[derive(Debug)]
struct Watching {
    witness: Witness,
    vantages: Vec<Vantage>,
    captures: Option<Captures>,
    /// What went wrong.
    trouble: Option<String>,
}

/// What was seen at each place.
#[derive(Debug, Clone)]
struct Places {
    client: Result<Seen, String>,
    server_node: Result<Seen, String>,
}

/// What was seen at an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    tally: Tally,
    mtu: u32,
    is_encapsulated: bool,
}

impl Default for Places {
    fn default() -> Self {
        Self::unknown(NO_WINDOW)
    }
}

impl Places {
    fn unknown(why: &str) -> Self {
        Self { client: Err(why.to_owned()), server_node: Err(why.to_owned()) }
    }
}

const NO_VANTAGE: &str = "the lab shares its network interfaces with other programs, so the trial's packets cannot be told \
     from theirs; use the lab netns";

/// Why nothing is known of the node of a server that sent nothing to clients and got nothing from them.
const NOTHING_PASSED: &str = "no packet between clients and servers passed the pods of these; are addresses translated on the way, as with \
     ports of nodes?";

/// Why nothing is known of the node of a server where the client is there too.
pub const STAYS: &str = "what stays on the client's node passes no other node's interface";

/// Whether this is why a server's node adds nothing to the others.
pub(crate) fn adds_nothing(value: &Value) -> bool {
    matches!(value, Value::NotMeasured { not_measured } if not_measured == NOTHING_PASSED || not_measured == STAYS)
}

impl Observer for Packets {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn prepare(&mut self, stage: &Stage<'_>) {
        if stage.vantages.is_empty() {
            self.places = Places::unknown(NO_VANTAGE);
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
            Err(why) => self.places = Places::unknown(&why),
        }
    }

    fn begin(&mut self, _: &Targets) {
        self.tell(&Order::Begin);
    }

    fn end(&mut self, _: &Targets) {
        self.tell(&Order::End);
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
    fn tell(&mut self, order: &Order) {
        if let Some(watching) = &mut self.watching
            && let Err(why) = watching.witness.ask(order)
        {
            watching.trouble.get_or_insert(why);
        }
    }

    /// Takes what was seen, and finishes the captures.
    fn collect(&mut self) {
        let Some(Watching { witness, vantages, captures, trouble }) = self.watching.take() else { return };
        let answer = witness.ask(&Order::Collect);
        // Whatever became of the counts: a trial that failed is worth looking at.
        let kept = captures.map_or(Ok(()), |captures| captures.finish(&vantages));
        self.places = match (trouble, answer, kept) {
            (Some(why), _, _) | (None, Err(why), _) => Places::unknown(&why),
            (None, Ok(_), Err(error)) => Places::unknown(&format!("the capture could not be kept: {error}")),
            (None, Ok(Answer::Collected { tallies }), Ok(())) => {
                let of = |place| seen(place, &vantages, &tallies);
                let is_shared = vantages.iter().any(Vantage::is_shared);
                let server_node = of(Place::ServerNode);
                let server_node = if is_shared { proven(server_node, &of(Place::ServerPod)) } else { server_node };
                Places { client: of(Place::Client), server_node }
            }
            (None, Ok(other), Ok(())) => Places::unknown(&format!("an answer to nothing: {other:?}")),
        };
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        // A trial that failed: its captures are finished all the same.
        self.collect();
    }
}

/// What was seen at the first interface of a place.
fn seen(place: Place, vantages: &[Vantage], tallies: &[Result<Tally, String>]) -> Result<Seen, String> {
    let mut here = vantages.iter().zip(tallies).filter(|(vantage, _)| vantage.place == place);
    let (vantage, tally) = here.next().ok_or("the lab does not show an interface there")?;
    if here.next().is_some() {
        return Err("the servers are on several nodes, and what each gets is not the whole".to_owned());
    }
    let (tally, mtu) = (tally.clone()?, vantage.mtu);
    // Where packets may be in VXLAN, they say themselves whether they are.
    let is_encapsulated = match vantage.between {
        None => vantage.is_encapsulated,
        Some(_) => tally.inner.both().packets == tally.outer.both().packets,
    };
    Ok(Seen { tally, mtu, is_encapsulated })
}

/// What was seen at the interface of a node, which others use too, if it is all that passed that of the server's pod: then nothing of it went
/// another way, was lost in between, or is hidden in what is not understood.
fn proven(node: Result<Seen, String>, pod: &Result<Seen, String>) -> Result<Seen, String> {
    let pod = pod.as_ref().map_err(|why| format!("at the interface of the server's pod: {why}"))?;
    let count = |seen: &Seen| (seen.tally.outer.sent.packets, seen.tally.outer.received.packets);
    let passed = count(pod);
    if passed == (0, 0) {
        return Err(NOTHING_PASSED.to_owned());
    }
    let node = node?;
    let found = count(&node);
    if found == passed {
        return Ok(node);
    }
    Err(format!(
        "the server's pod sent {} packets to clients and received {}, of which {} and {} were found at its node's interface, as they are or \
         in VXLAN: the network of the cluster takes another way, or puts something else around them",
        passed.0, passed.1, found.0, found.1
    ))
}

impl Captures {
    /// Where the witness writes what it captures.
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

    /// Puts the keys into each capture.
    fn finish(&self, vantages: &[Vantage]) -> io::Result<()> {
        let keys = self.keys.as_ref().map(fs::read);
        let secrets = match &keys {
            Some(Ok(keys)) => keys.as_slice(),
            // What was captured is kept in any case.
            _ => &[],
        };
        for vantage in vantages {
            let body = self.body(vantage.place);
            // None where the interface could not be looked at; the values say why.
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
    fn at_a_shared_interface_only_what_passed_the_pod_counts_and_only_all_of_it() {
        assert_eq!(proven(Ok(seen(3, 4)), &Ok(seen(3, 4))), Ok(seen(3, 4)));
        let why = proven(Ok(seen(3, 3)), &Ok(seen(3, 4))).unwrap_err();
        assert!(why.contains("sent 3 packets to clients and received 4, of which 3 and 3 were found"), "{why}");
        assert_eq!(proven(Err("it went down".to_owned()), &Ok(seen(3, 4))), Err("it went down".to_owned()));
        let why = proven(Ok(seen(3, 4)), &Err("it went down".to_owned())).unwrap_err();
        assert_eq!(why, "at the interface of the server's pod: it went down");
        let nothing = proven(Ok(seen(0, 0)), &Ok(seen(0, 0))).unwrap_err();
        assert!(adds_nothing(&Value::missing(nothing)) && !adds_nothing(&Value::missing("it went down")));
    }
}
