//! Packets and bytes at the client's interface and at that of the server's node, as the wire would carry them.
//!
//! Every frame is looked at by the witness ([`crate::witness`]) with a packet socket. A super-packet of segmentation offload
//! counts as the packets that it becomes; what comes in VXLAN counts outside and inside. Counts that do not agree with the
//! interface's own counters are void, with the reason.

pub(crate) mod frame;
mod metrics;
pub(crate) mod pcapng;
pub(crate) mod split;
pub(crate) mod tally;

use std::fs;
use std::io;
use std::path::PathBuf;

use wirelab_model::metric::Values;
use wirelab_model::network::{Place, Vantage};

pub use metrics::ABOUT;

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
                Places { client: of(Place::Client), server_node: of(Place::ServerNode) }
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
    let Vantage { mtu, is_encapsulated, .. } = *vantage;
    Ok(Seen { tally: tally.clone()?, mtu, is_encapsulated })
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
