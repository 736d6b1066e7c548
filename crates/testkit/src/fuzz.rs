//! Changed copies of known inputs, in search of one on which a reader panics. Readers may refuse any input, and never
//! panic. `WIRELAB_FUZZ_SECONDS` sets the time per target, `WIRELAB_FUZZ_SEED` repeats a run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The time per target, so that all targets together take less than half a minute of `make test`.
const TIME: Duration = Duration::from_millis(600);

/// The longest input, in bytes.
const LONGEST: usize = 64 * 1024;

/// Words at which readers of numbers and of text have their limits.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "-0.0",
    "1e308",
    "1e-320",
    "nan",
    "inf",
    "\"\"",
    "[]",
    "{}",
    "null",
    "\u{0}",
    "\u{feff}",
    "é",
    "\r\n",
    "%",
    "ns",
    "\\u0000",
];

/// Calls `target` with changed copies of the inputs, until its time is over.
///
/// # Panics
/// If `target` panics, with the seed and the input.
pub fn fuzz(name: &str, corpus: &[Vec<u8>], target: impl Fn(&[u8])) {
    assert!(!corpus.is_empty(), "{name}: there is no input to begin with");
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse().ok());
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let seed = number("WIRELAB_FUZZ_SEED").unwrap_or_else(clock);
    let time = number("WIRELAB_FUZZ_SECONDS").map_or(TIME, Duration::from_secs);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    corpus.iter().for_each(|input| call(name, seed, input, &target));
    let (begun, mut calls) = (Instant::now(), corpus.len());
    while begun.elapsed() < time {
        call(name, seed, &changed(corpus, &mut random), &target);
        calls += 1;
    }
    eprintln!("fuzz {name}: {calls} inputs, seed {seed}");
}

fn call(name: &str, seed: u64, input: &[u8], target: &impl Fn(&[u8])) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        let path = std::env::temp_dir().join(format!("wirelab-fuzz-{name}-{seed}"));
        std::fs::write(&path, input).unwrap();
        panic!("{name}: panic on the input in {}, seed {seed}:\n{}", path.display(), input.escape_ascii());
    }
}

/// A copy of an input with one to four changes.
fn changed(corpus: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut input = corpus.choose(random).expect("it is not empty").clone();
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=input.len());
        let end = (at + random.random_range(0..=16)).min(input.len());
        match random.random_range(0..8) {
            0 => drop(input.splice(at..end, [])),
            1 => input.truncate(at),
            2 => {
                let part = input[at..end].to_vec();
                drop(input.splice(at..at, part));
            }
            3 => drop(
                input.splice(at..end, std::iter::repeat_with(|| random.random()).take(end - at).collect::<Vec<u8>>()),
            ),
            4 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.random_range(0..8);
                }
            }
            5 => drop(input.splice(at..end, WORDS.choose(random).expect("there are some").bytes())),
            // Words and values of other inputs keep the input readable more often than bytes do.
            _ => {
                let (old, other) = (word(&input, random), corpus.choose(random).expect("it is not empty"));
                let new = other[word(other, random)].to_vec();
                let new = if random.random_bool(0.3) {
                    WORDS.choose(random).expect("there are some").as_bytes().to_vec()
                } else {
                    new
                };
                drop(input.splice(old, new));
            }
        }
        input.truncate(LONGEST);
    }
    input
}

/// The place of a word: letters, digits, and what belongs to numbers.
fn word(input: &[u8], random: &mut ChaCha8Rng) -> std::ops::Range<usize> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-+".contains(byte);
    let at = random.random_range(0..=input.len());
    let begin = at + input[at..].iter().position(is_word).unwrap_or(input.len() - at);
    let begin = begin - input[..begin].iter().rev().take_while(|byte| is_word(byte)).count();
    begin..begin + input[begin..].iter().take_while(|byte| is_word(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_fault_is_found_and_shown_with_its_input() {
        let corpus = [b"size = 100 ms\n".to_vec(), b"wait = -1 s\n".to_vec()];
        let reader = |input: &[u8]| {
            let text = String::from_utf8_lossy(input);
            assert!(!text.contains("size = -1"), "planted");
        };
        let found = catch_unwind(|| fuzz("planted", &corpus, reader)).unwrap_err();
        let said = found.downcast_ref::<String>().unwrap();
        assert!(said.contains("size = -1") && said.contains("seed"), "{said}");
    }
}
