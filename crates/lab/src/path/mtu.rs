//! The path MTU in each direction, by packets that must not be fragmented.

use std::time::Duration;

use wirelab_model::missing::Missing;

use crate::path::ask::{Asker, Question};
use crate::path::packet::{Kind, SIZE};

/// Size of the smallest tried IP packet in bytes, and of the largest that there can be.
const SMALLEST: u32 = 576;
const LARGEST: u32 = 65_535;

/// Number of sizes that are tried at the same time, each several times because packets may be lost.
const AT_ONCE: u32 = 16;
const COPIES: u32 = 3;

/// How many times as often the first size is tried that did not arrive.
const AGAIN: usize = 6;

/// Interval of the tried packets.
const EVERY: Duration = Duration::from_micros(500);

/// The direction of the tried packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// Size of the largest IP packet that arrives, in bytes.
pub(super) fn mtu(asker: &Asker, direction: Direction) -> Result<u32, Missing> {
    let interface = match direction {
        Direction::Up => asker.socket.mtu().map_err(super::ask::failed)?,
        Direction::Down => asker.far_mtu,
    };
    search(interface.min(LARGEST), |sizes| arriving(asker, direction, sizes))
}

/// The largest arriving size up to `highest`, where `arriving` gives the largest of some sizes that arrived.
fn search(highest: u32, mut arriving: impl FnMut(&[u32]) -> Result<Option<u32>, Missing>) -> Result<u32, Missing> {
    // Without a bottleneck, this is the answer.
    if let Some(size) = arriving(&[highest])? {
        return Ok(size);
    }
    let mut known = None;
    loop {
        // Where all copies of a size were lost, it looks too large. With so many more copies this hardly happens again.
        let Some(found) = narrowed(known, highest, &mut arriving)? else {
            known = Some(arriving(&[SMALLEST; AGAIN])?.ok_or(Missing::NoSizeArrived)?);
            continue;
        };
        match arriving(&[found + 1; AGAIN])? {
            Some(arrived) if arrived < highest => known = Some(arrived),
            Some(_) => return Ok(highest),
            None => return Ok(found),
        }
    }
}

/// The largest arriving size below `too_large`, if no copy was lost; `None` if none arrived. `known` arrives.
fn narrowed(
    known: Option<u32>,
    mut too_large: u32,
    arriving: &mut impl FnMut(&[u32]) -> Result<Option<u32>, Missing>,
) -> Result<Option<u32>, Missing> {
    let (mut arrived, mut next) = (known, known.map_or(SMALLEST, |known| known + 1));
    while next < too_large {
        let step = (too_large - next).div_ceil(AT_ONCE);
        let sizes: Vec<u32> =
            (0..AT_ONCE).map(|number| next + number * step).filter(|size| *size < too_large).collect();
        let Some(largest) = arriving(&sizes)?.max(arrived) else { return Ok(None) };
        too_large = sizes.iter().copied().find(|size| *size > largest).unwrap_or(too_large);
        (arrived, next) = (Some(largest), largest + 1);
    }
    Ok(arrived)
}

/// The largest of these sizes that arrives.
fn arriving(asker: &Asker, direction: Direction, sizes: &[u32]) -> Result<Option<u32>, Missing> {
    let headers = asker.socket.headers();
    let question = |size: u32| {
        let payload = (size as usize - headers).max(SIZE);
        match direction {
            Direction::Up => Question { length: payload, ..Question::PLAIN },
            Direction::Down => Question { answer_length: payload as u32, ..Question::PLAIN },
        }
    };
    let questions: Vec<_> = sizes.iter().flat_map(|size| [question(*size); COPIES as usize]).collect();
    let mut largest = None;
    let phase = asker.new_phase();
    asker.ask(
        phase,
        &questions,
        |number| EVERY * number,
        Duration::ZERO,
        asker.patience(),
        |heard| {
            let length = match direction {
                Direction::Up => heard.packet.length as usize,
                Direction::Down => heard.received.length,
            };
            if heard.packet.kind == Kind::Echo {
                largest = largest.max(Some((length + headers) as u32));
            }
        },
    )?;
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Searches the MTU of a path; returns it with the number of rounds.
    fn found(interface: u32, mtu: u32) -> (Result<u32, Missing>, u32) {
        let mut rounds = 0;
        let found = search(interface, |sizes| {
            rounds += 1;
            assert!(sizes.len() <= AT_ONCE as usize && !sizes.is_empty(), "{sizes:?}");
            Ok(sizes.iter().copied().filter(|size| *size <= mtu).max())
        });
        (found, rounds)
    }

    #[test]
    fn the_largest_size_is_found_in_few_rounds() {
        assert_eq!(found(1500, 1500), (Ok(1500), 1));
        for (interface, mtus) in [(1500, 576..1500), (9001, 1200..1700), (LARGEST, 65_400..LARGEST)] {
            for mtu in mtus {
                let (size, rounds) = found(interface, mtu);
                assert!(size == Ok(mtu) && rounds <= 7, "{mtu}: {size:?} in {rounds} rounds");
            }
        }
        assert_eq!(found(1500, 500), (Err(Missing::NoSizeArrived), 3));
    }

    /// A path that loses a fifth of all round trips.
    #[test]
    fn loss_is_not_taken_for_a_smaller_mtu() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for mtu in [577, 1387, 1400, 1499, 1500] {
            for _ in 0..400 {
                let found = search(1500, |sizes| {
                    let copies =
                        sizes.iter().copied().filter(|size| *size <= mtu).flat_map(|size| [size; COPIES as usize]);
                    Ok(copies.filter(|_| random.random_bool(0.8)).max())
                });
                // All copies of the largest size in a row may be lost, once in 10^12 searches.
                assert_eq!(found, Ok(mtu));
            }
        }
    }
}
