//! wirelab is killed at random moments of a run. Each time nothing is left, what was journalled is kept, and the run
//! can be continued to its end.
//!
//! `make test` kills a few runs in each lab, `make kills` 1,000 in all.

use std::fs;
use std::thread::sleep;
use std::time::Instant;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::tempdir;
use wirelab_testkit::eventually;
use wirelab_testkit::lab::folder_with;

use crate::attempt::Attempt;

/// The number of kills in a lab: `few`, or this share of all that `make kills` demands.
fn kills(few: u32, share: f64) -> u32 {
    let all = std::env::var("WIRELAB_KILLS").ok().map(|text| text.parse().expect("WIRELAB_KILLS is a number"));
    all.map_or(few, |all: f64| (all * share).ceil() as u32)
}

#[test]
fn runs_of_the_fake_lab() {
    are_continued("fake", kills(8, 0.5));
}

#[test]
fn runs_on_loopback() {
    are_continued("loopback", kills(4, 0.4));
}

#[test]
fn runs_in_network_namespaces() {
    if folder_with("", &[]).is_some() {
        are_continued("netns", kills(4, 0.1));
    }
}

fn are_continued(lab: &str, kills: u32) {
    let home = tempdir().unwrap();
    let clean = Attempt::new(lab, home.path(), "clean");
    let begun = Instant::now();
    assert!(clean.started().wait().unwrap().success());
    let whole = begun.elapsed();
    let mut random = ChaCha8Rng::seed_from_u64(20_261_127);
    let mut continued = 0;
    for kill in 0..kills {
        // Some moments are after the end.
        let moment = whole.mul_f64(random.random_range(0.0..1.1));
        println!("{lab}: kill {kill} after {moment:?} of {whole:?}");
        let attempt = Attempt::new(lab, home.path(), "attempt");
        let mut child = attempt.started();
        sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("the end of every process", || attempt.left().is_empty());
        let before = attempt.entries();
        continued += u32::from(before.is_some());
        attempt.is_continued(before.as_ref(), &clean, 0);
        fs::remove_dir_all(attempt.folder).unwrap();
    }
    println!("{lab}: {continued} of {kills} runs had begun and were continued");
    assert!(continued > 0, "no run had begun");
}
