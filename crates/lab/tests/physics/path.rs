//! The prober of paths finds the properties of emulated links, from both ends.

use std::fs::File;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tempfile::tempdir;
use wirelab_lab::path::{Order, Reflector, measure};
use wirelab_lab::{Lab, Netns, Preparation};
use wirelab_model::emulation::emulating;
use wirelab_model::link::Link;
use wirelab_model::path::{Measured, PathReading};
use wirelab_model::plan::{Job, Topology, Trial};
use wirelab_model::protocol::Protocol;
use wirelab_model::units::{BitRate, Share, Span};
use wirelab_testkit::physics::Test;
use wirelab_testkit::{Skip, skip, test};

use crate::netns::network;

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(the_prober_finds_the_round_trip_the_loss_and_the_path_mtu_of_a_link).retries(2),
        test!(the_prober_finds_overtaking_packets).retries(2),
        test!(the_prober_finds_runs_of_losses).retries(2),
        test!(the_prober_finds_the_rates_and_the_queue_that_the_load_exceeds).retries(2),
    ]
}

/// Measures an emulated link as a path; `None`, with a skip, if this program cannot enter its network.
fn probed(lab: &mut Netns, link: Link, load: Option<BitRate>) -> Option<PathReading> {
    let job = Job { topology: Topology { link: Some(link), ..Topology::at("lan") }, ..Job::plain(Protocol::H2) };
    let (folder, stop) = (tempdir().unwrap(), AtomicBool::new(false));
    let preparation = Preparation { jobs: &[&job], folder: folder.path(), stop: &stop, metrics: None };
    let mut prepared = lab.prepare(&preparation).unwrap();
    let trial = Trial { number: 0, block: 0, position: 0, cell: 0, seed: 7 };
    let arena = prepared.open(&trial, &job).unwrap();
    let vantages = arena.vantages();
    if vantages.iter().any(|vantage| vantage.owner.is_some()) {
        skip(Skip::NoNetworkNamespaces { why: "only root can enter the network of another process".to_owned() });
        return None;
    }
    let [client, server] = [0, 1].map(|end| vantages[end].namespace.clone());
    let address = arena.addresses().connect;
    let reading = between(&client, &server, address, load);
    println!("  {link:?}\n    {reading:?}");
    Some(reading)
}

fn between(client: &Path, server: &Path, address: IpAddr, load: Option<BitRate>) -> PathReading {
    let reflector = within(server, || Reflector::bind(address).unwrap());
    let order = Order { server: address, reflector: reflector.meeting().unwrap(), load };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| reflector.serve(&is_over));
        let reading = within(client, || measure(&order));
        is_over.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
        reading.unwrap()
    })
}

/// Runs work on a thread in a network namespace.
fn within<T: Send>(namespace: &Path, work: impl FnOnce() -> T + Send) -> T {
    let namespace = File::open(namespace).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

fn the_prober_finds_the_round_trip_the_loss_and_the_path_mtu_of_a_link() {
    let Some(mut lab) = network() else { return };
    let link = Link { round_trip: Span::from_millis(20), loss: Share(0.1), mtu: 1400, ..Link::wire() };
    let Some(reading) = probed(&mut lab, link, None) else { return };
    let round_trip = reading.round_trip;
    assert!((20_000_000..21_500_000).contains(&round_trip.min_ns), "{round_trip:?}");
    assert!((20_000_000..24_000_000).contains(&round_trip.median_ns), "{round_trip:?}");
    for (_, direction) in reading.directions() {
        // Six standard errors around one tenth.
        let share = f64::from(direction.delivery.lost) / f64::from(direction.delivery.sent);
        assert!(share > 0.0 && share < 0.23, "{direction:?}");
        assert_eq!((direction.delivery.reordered, direction.delivery.duplicates), (0, 0));
        assert_eq!(direction.mtu, Measured::Is(1400));
        assert_eq!(direction.hops, Measured::Is(vec![0]));
        let marks = direction.marks.value().unwrap();
        assert!(marks.iter().all(|mark| mark.arrived.iter().all(|arrived| *arrived == mark.sent)), "{marks:?}");
    }
    let found = emulating(&[&reading]);
    assert_eq!((found.mtu, found.bandwidth), (Some(1400), None), "{found:?}");
    // A busy machine makes some jitter itself.
    assert!(found.jitter.is_none_or(|jitter| jitter < Span::from_millis(3)), "{found:?}");
}

fn the_prober_finds_overtaking_packets() {
    let Some(mut lab) = network() else { return };
    let link = Link { round_trip: Span::from_millis(30), reorder: Share(0.05), duplicate: Share(0.05), ..Link::wire() };
    let Some(reading) = probed(&mut lab, link, None) else { return };
    for (_, direction) in reading.directions() {
        let of = |count: u32| f64::from(count) / f64::from(direction.delivery.sent);
        let (reordered, duplicates) = (of(direction.delivery.reordered), of(direction.delivery.duplicates));
        assert!(reordered > 0.0 && reordered < 0.15, "{direction:?}");
        assert!(duplicates > 0.0 && duplicates < 0.15, "{direction:?}");
    }
}

fn the_prober_finds_runs_of_losses() {
    let Some(mut lab) = network() else { return };
    let link = Link { round_trip: Span::from_millis(20), loss: Share(0.1), loss_burst: 5.0, ..Link::wire() };
    let Some(reading) = probed(&mut lab, link, None) else { return };
    // About 48 losses in ten runs. Independent losses would have a mean of 1.1.
    let found = emulating(&[&reading]).loss_burst;
    assert!(found.is_some_and(|mean| (2.0..=12.0).contains(&mean)), "{found:?}: {reading:?}");
}

fn the_prober_finds_the_rates_and_the_queue_that_the_load_exceeds() {
    let Some(mut lab) = network() else { return };
    let (rate, rate_up) = (Some(BitRate(8_000_000)), Some(BitRate(2_000_000)));
    let link = Link { round_trip: Span::from_millis(10), rate, rate_up, ..Link::wire() };
    let Some(reading) = probed(&mut lab, link, Some(BitRate(16_000_000))) else { return };
    for (direction, rate) in [(&reading.up, 2e6), (&reading.down, 8e6)] {
        let load = direction.load.value().unwrap();
        assert!((load.arrived / rate - 1.0).abs() < 0.1, "{load:?}");
        assert!(load.limit().is_some(), "{load:?}");
        // The queue fills meanwhile.
        let loaded = load.round_trip.unwrap();
        assert!(loaded.median_ns > 2 * reading.round_trip.median_ns, "{loaded:?}");
    }
    let found = emulating(&[&reading]);
    let is_near =
        |found: Option<BitRate>, rate: f64| found.is_some_and(|found| (found.0 as f64 / rate - 1.0).abs() < 0.1);
    assert!(is_near(found.bandwidth, 8e6) && is_near(found.bandwidth_up, 2e6) && found.queue.is_some(), "{found:?}");
}
