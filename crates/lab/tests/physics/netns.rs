//! The physics of the emulated network: a link has its configured properties and leaves nothing behind. This program is
//! its own guard and holds its own network.
//!
//! Other work on the machine can delay the measurements, so each link has six tries; a wrong link fails all of them.

use wirelab_lab::Netns;
use wirelab_model::link::{Link, Reading};
use wirelab_model::reason::LabFault;
use wirelab_model::units::{BitRate, Share, Span};
use wirelab_testkit::physics::Test;
use wirelab_testkit::stolen::ProcessorTime;
use wirelab_testkit::{Skip, skip, skip_part, test};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(the_round_trip_is_the_configured_one_from_1_to_600_ms).retries(2),
        test!(further_links_between_the_extremes_have_their_properties).quiet(),
        test!(the_rate_is_the_configured_one_from_1_to_100_mbit_per_s).retries(2),
        test!(the_rate_is_the_configured_one_from_300_to_500_mbit_per_s).quiet(),
        test!(losses_are_those_of_chance).retries(2),
        test!(the_mtu_is_honoured).retries(2),
        test!(a_wrong_link_is_noticed).retries(2),
    ]
}

/// A network of this program; `None`, with a skip, if the kernel forbids it. Any other failure is a failure of the
/// test.
pub fn network() -> Option<Netns> {
    match Netns::start(&std::env::current_exe().unwrap()) {
        Ok(lab) => Some(lab),
        Err(error) if error.fault() == LabFault::Refused => {
            skip(Skip::NoNetworkNamespaces { why: error.to_string() });
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Measures a link until the values are right, at most six times. A reading during which the host of a virtual machine
/// took processor time does not count; if no other reading exists, the link is a skipped part of the test.
fn obeys(lab: &mut Netns, link: Link) -> Option<Reading> {
    let mut why = String::new();
    let mut tries = 0;
    for seed in 0..24 {
        let before = ProcessorTime::now();
        let reading = lab.measure(&link, seed).unwrap();
        let spent = before.since();
        println!("  {link:?}\n    {reading:?}\n    {spent:?}");
        match link.misses(&reading) {
            None => return Some(reading),
            Some(miss) => why = miss,
        }
        tries += i32::from(spent.is_ours());
        if tries == 6 {
            panic!("{why}");
        }
    }
    skip_part(Skip::HostStealsProcessors { measured: why });
    None
}

fn the_round_trip_is_the_configured_one_from_1_to_600_ms() {
    let Some(mut lab) = network() else { return };
    for ms in [1, 50, 600] {
        obeys(&mut lab, Link { round_trip: Span::from_millis(ms), ..Link::wire() });
    }
}

/// The links between the extremes that other tests measure.
fn further_links_between_the_extremes_have_their_properties() {
    let Some(mut lab) = network() else { return };
    let wire = Link::wire();
    let round_trips = [2, 10, 200].map(|ms| Link { round_trip: Span::from_millis(ms), ..wire });
    let rate = Link { round_trip: Span::from_millis(10), rate: Some(BitRate(10_000_000)), ..wire };
    let loss = Link { round_trip: Span::from_millis(5), loss: Share(0.02), loss_burst: 1.0, ..wire };
    let mtus = [1450, 1500].map(|mtu| Link { round_trip: Span::from_millis(2), mtu, ..wire });
    for link in round_trips.into_iter().chain([rate, loss]).chain(mtus) {
        let reading = obeys(&mut lab, link);
        assert!(reading.is_none_or(|reading| reading.mtu == link.mtu), "{link:?}: {reading:?}");
    }
}

/// Checks links with these rates, in Mbit/s.
fn rates_are_kept(lab: &mut Netns, rates: &[u64]) {
    for mbit in rates {
        let rate = Some(BitRate(mbit * 1_000_000));
        obeys(lab, Link { round_trip: Span::from_millis(10), rate, ..Link::wire() });
    }
}

fn the_rate_is_the_configured_one_from_1_to_100_mbit_per_s() {
    let Some(mut lab) = network() else { return };
    rates_are_kept(&mut lab, &[1, 100]);
    let asymmetric = Link { rate: Some(BitRate(50_000_000)), rate_up: Some(BitRate(5_000_000)), ..Link::wire() };
    obeys(&mut lab, Link { round_trip: Span::from_millis(20), ..asymmetric });
}

fn the_rate_is_the_configured_one_from_300_to_500_mbit_per_s() {
    let Some(mut lab) = network() else { return };
    rates_are_kept(&mut lab, &[300, 500]);
}

fn losses_are_those_of_chance() {
    let Some(mut lab) = network() else { return };
    for (percent, burst) in [(0.5, 1.0), (5.0, 4.0)] {
        let (round_trip, loss) = (Span::from_millis(5), Share(percent / 100.0));
        obeys(&mut lab, Link { round_trip, loss, loss_burst: burst, ..Link::wire() });
    }
}

fn the_mtu_is_honoured() {
    let Some(mut lab) = network() else { return };
    // Every other test has the usual 1500.
    for mtu in [1280, 9000] {
        let reading = obeys(&mut lab, Link { round_trip: Span::from_millis(2), mtu, ..Link::wire() });
        assert!(reading.is_none_or(|reading| reading.mtu == mtu), "{mtu}: {reading:?}");
    }
}

fn a_wrong_link_is_noticed() {
    let Some(mut lab) = network() else { return };
    let link = Link { round_trip: Span::from_millis(20), rate: Some(BitRate(20_000_000)), ..Link::wire() };
    let reading = lab.measure(&link, 1).unwrap();
    for other in [
        Link { round_trip: Span::from_millis(22), ..link },
        Link { rate: Some(BitRate(21_000_000)), ..link },
        Link { loss: Share(0.05), ..link },
        Link { mtu: 1400, ..link },
    ] {
        assert!(other.misses(&reading).is_some(), "{other:?} {reading:?}");
    }
}
