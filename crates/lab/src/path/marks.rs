//! What becomes of marks in IP headers: ECN (RFC 3168) and DSCP (RFC 2474).

use std::collections::BTreeSet;
use std::time::Duration;

use wirelab_model::missing::Missing;
use wirelab_model::path::Mark;

use crate::path::ask::{Asker, Question};
use crate::path::packet::Kind;

/// The tried bytes: none, ECT(1), ECT(0), CE, then the DSCPs AF11 and EF.
const MARKS: [u8; 6] = [0, 0b01, 0b10, 0b11, 10 << 2, 46 << 2];

/// Datagrams for each mark and direction, one per interval.
const COPIES: usize = 3;
const EVERY: Duration = Duration::from_millis(2);

/// The marks that arrive, first up, then down.
pub(super) fn marks(asker: &Asker) -> Result<[Vec<Mark>; 2], Missing> {
    let up = MARKS.map(|mark| Question { mark, ..Question::PLAIN });
    let down = MARKS.map(|mark| Question { answer_mark: mark, ..Question::PLAIN });
    let each = [up, down].concat();
    let mut arrived = vec![BTreeSet::new(); each.len()];
    let questions: Vec<_> = each.iter().flat_map(|question| [*question; COPIES]).collect();
    asker.ask(
        asker.new_phase(),
        &questions,
        |number| EVERY * number,
        Duration::ZERO,
        asker.patience(),
        |heard| {
            let number = heard.packet.number as usize / COPIES;
            if let (Kind::Echo, Some(arrived)) = (heard.packet.kind, arrived.get_mut(number)) {
                arrived.insert(if number < MARKS.len() { heard.packet.mark } else { heard.received.mark });
            }
        },
    )?;
    let marks = |arrived: &[BTreeSet<u8>]| {
        let both = MARKS.iter().zip(arrived);
        both.map(|(sent, arrived)| Mark { sent: *sent, arrived: arrived.iter().copied().collect() }).collect()
    };
    let (up, down) = arrived.split_at(MARKS.len());
    Ok([marks(up), marks(down)])
}
