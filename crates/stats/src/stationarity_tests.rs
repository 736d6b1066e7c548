use super::*;

/// `scipy.stats.friedmanchisquare`, without and with ties.
#[test]
fn the_p_values_are_those_of_scipy() {
    for (profiles, p) in [
        ([[1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 4, 3, 5], [2, 3, 1, 4, 5]], 0.010_338_797_085_363_98),
        ([[1, 1, 3, 4, 5], [1, 2, 2, 4, 5], [1, 2, 4, 4, 5], [2, 3, 1, 4, 5]], 0.008_454_494_747_140_108),
    ] {
        assert!((friedman(&profiles) - p).abs() < 1e-12, "{} {p}", friedman(&profiles));
    }
}

#[test]
fn equal_parts_are_no_evidence() {
    assert_eq!(friedman(&[[7; PARTS]; 12]), 1.0);
}

/// Times that scatter by a few percent; those of part 3 are `factor` times as long.
fn profiles(trials: u64, factor: f64) -> Vec<[u64; PARTS]> {
    let time = |trial: u64, part: u64| {
        let scatter = (trial * 31 + part * 17 + trial * part * 7) % 29;
        let factor = if part == 3 { factor } else { 1.0 };
        (factor * (1_000_000 + scatter * 1000) as f64) as u64
    };
    (0..trials).map(|trial| std::array::from_fn(|part| time(trial, part as u64))).collect()
}

#[test]
fn a_slow_part_is_found_and_a_small_change_is_not() {
    let cells = [profiles(12, 2.7), profiles(12, 1.0), profiles(12, 1.03), profiles(9, 2.7)];
    let found = of_cells(&cells, 0.05);
    let Stationarity::Changes { slowest: 3, ratio, .. } = found[0] else { panic!("{:?}", found[0]) };
    assert!((ratio - 2.7).abs() < 0.1, "{ratio}");
    assert_eq!(found[1..], [Stationarity::Stationary, Stationarity::Stationary, Stationarity::TooShort]);
}

#[test]
fn a_profile_has_the_median_of_each_fifth_and_needs_three_requests_in_each() {
    let sample = |at: u64, took: u64| Sample {
        intended_ns: at,
        start_ns: at,
        connected_ns: None,
        handshake_ns: None,
        first_byte_ns: Some(at + took),
        last_byte_ns: at + took,
        request: None,
        bytes_out: 0,
        bytes_in: 1,
        status: Some(200),
        connection: 0,
        handshake: None,
        error: None,
    };
    let samples: Vec<Sample> = (0..20).map(|i| sample(i * 5, 10 + i / 4)).collect();
    assert_eq!(profile(&samples, 100), Some([10, 11, 12, 13, 14]));
    assert_eq!(profile(&samples[..17], 100), None);
    assert_eq!(profile(&[], 0), None);
}
