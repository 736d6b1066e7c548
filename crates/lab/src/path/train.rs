//! Numbered datagrams in small groups: round trips, losses, order, and numbers of routers.

use std::collections::BTreeSet;
use std::time::Duration;

use wirelab_model::missing::Missing;
use wirelab_model::path::{Delivery, RoundTrips};

use crate::path::ask::{Asker, Question};
use crate::path::order::Arrivals;
use crate::path::packet::Kind;
use crate::path::socket::HOPS;

/// Groups of datagrams, the size of a group, and their interval. Datagrams of a group leave at once, so that they can
/// overtake each other. With all headers they take 390 kbit/s for 0.6 s.
const GROUPS: u32 = 60;
const GROUP: u32 = 4;
const EVERY: Duration = Duration::from_millis(10);

/// What became of the datagrams; directions are first up, then down.
pub(super) struct Train {
    pub round_trip: RoundTrips,
    pub delivery: [Delivery; 2],
    pub hops: [Result<Vec<u8>, Missing>; 2],
}

/// Sends the train.
pub(super) fn train(asker: &Asker) -> Result<Train, Missing> {
    let phase = asker.new_phase();
    let questions = [Question::PLAIN; (GROUPS * GROUP) as usize];
    let (mut round_trips, mut answers) = (vec![None; GROUPS as usize], Vec::new());
    let mut hops = [BTreeSet::new(), BTreeSet::new()];
    asker.ask(
        phase,
        &questions,
        |number| EVERY * (number / GROUP),
        Duration::ZERO,
        asker.patience(),
        |heard| {
            if heard.packet.kind != Kind::Echo {
                return;
            }
            answers.push(heard.packet.answer);
            hops[0].insert(heard.packet.hops_left);
            hops[1].insert(heard.received.hops_left);
            // The others of a group wait for the first.
            if heard.packet.number.is_multiple_of(GROUP)
                && let Some(round_trip) = round_trips.get_mut((heard.packet.number / GROUP) as usize)
            {
                round_trip.get_or_insert(heard.took_ns);
            }
        },
    )?;
    let up = asker.report(phase)?.arrivals;
    let down = Arrivals::of(&answers);
    let round_trip = RoundTrips::of(round_trips.into_iter().flatten().collect()).ok_or(Missing::NoDatagramCameBack)?;
    // Each arrival was answered, a duplicate, too.
    let delivery = [(questions.len() as u32, up), (up.distinct + up.duplicates, down)].map(|(sent, came)| Delivery {
        sent,
        lost: sent.saturating_sub(came.distinct),
        lost_runs: came.gaps,
        reordered: came.reordered,
        duplicates: came.duplicates,
    });
    Ok(Train { round_trip, delivery, hops: hops.map(passed) })
}

/// Numbers of routers from the remaining hops.
fn passed(hops_left: BTreeSet<u8>) -> Result<Vec<u8>, Missing> {
    // A network that sets the field hides them.
    if hops_left.iter().any(|left| *left == 0 || *left > HOPS) {
        return Err(Missing::HopsHidden);
    }
    Ok(hops_left.into_iter().rev().map(|left| HOPS - left).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routers_are_counted_from_the_remaining_hops() {
        let of = |left: &[u8]| passed(left.iter().copied().collect());
        assert_eq!(of(&[64]), Ok(vec![0]));
        assert_eq!(of(&[58, 60]), Ok(vec![4, 6]), "the route changed");
        assert_eq!(of(&[60, 255]), Err(Missing::HopsHidden));
    }
}
