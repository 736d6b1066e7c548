//! A randomly damaged study file is a study or an error with a place, never a crash.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wirelab_plan::{find, parse, plan, resolve};

/// Pieces with a meaning in studies, so that damage passes the TOML parser.
const PIECES: [&str; 16] = [
    "\"h1\"",
    "\"\"",
    "0",
    "-1",
    "nan",
    "99999999999",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    "[[exclude]]\n",
    "\"9 GiB\"",
    "payload = [\"1 B\"]\n",
    "ü",
];

/// A configuration with fixed cases, equal in every run.
fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(fixed(100))]

    #[test]
    fn damage_is_reported_and_never_crashes(
        study in prop::sample::select(vec!["quick", "grpc", "null", "cloud-quic", "conditions", "cluster-http3", "public-sites", "pairs", "observers"]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, prop::sample::select(&PIECES[..])), 1..4),
    ) {
        let mut text = find(study).unwrap().text.to_owned();
        for (place, removed, piece) in damage {
            let start = text.floor_char_boundary(place.index(text.len()));
            let end = text.floor_char_boundary((start + removed).min(text.len())).max(start);
            text.replace_range(start..end, piece);
        }
        match parse(&text, "f.toml") {
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.starts_with("f.toml:") && message.len() < 30_000, "{}", message);
            }
            Ok(study) => {
                let presets: Vec<_> = study.presets.keys().cloned().collect();
                for preset in presets.iter().map(String::as_str).chain(["default"]) {
                    let resolved = resolve(study.clone(), Some(preset), &[]);
                    prop_assert!(resolved.is_ok(), "what parses can be resolved: {:?}", resolved.err());
                    let _ = plan(&resolved.unwrap());
                }
            }
        }
    }

    #[test]
    fn no_set_crashes(key in "[a-z_.]{0,8}|protocol|payload|connection|blocks.min|requests", value in "\\PC{0,12}") {
        let study = parse(find("quick").unwrap().text, "quick").unwrap();
        if let Ok(study) = resolve(study, None, &[format!("{key}={value}")]) {
            let _ = plan(&study);
        }
    }
}
