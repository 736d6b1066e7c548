//! Measures the path between two hosts with UDP datagrams, without privileges: [`measure()`] at one end asks,
//! and a [`Reflector`] at the other end answers each question, as in the Simple Two-way Active
//! Measurement Protocol (RFC 8762).

mod ask;
mod load;
mod marks;
mod mtu;
mod order;
mod packet;
mod prober;
mod reflector;
mod report;
mod socket;
mod train;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wirelab_model::units::BitRate;

pub use packet::Token;
pub use prober::measure;
pub use reflector::Reflector;

/// Time beyond the usual round trips after which a datagram counts as lost.
const LOSS_TIMEOUT: Duration = Duration::from_millis(250);

/// An order to measure a path, for the agent at the client's end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Address of the reflector.
    pub server: IpAddr,
    /// Where the reflector listens.
    pub reflector: Meeting,
    /// The largest load that the user allows; `None`: no load.
    pub load: Option<BitRate>,
}

/// Where a reflector listens, and the secret that its questions carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meeting {
    pub port: u16,
    pub token: Token,
}

/// Paces a schedule; never used to wait for a condition.
fn sleep_until(at: Instant) {
    std::thread::sleep(at.saturating_duration_since(Instant::now()));
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;
    use std::sync::atomic::{AtomicBool, Ordering};

    use wirelab_model::missing::Missing;
    use wirelab_model::path::{Measured, PathReading};

    use super::*;

    fn on_this_machine(server: IpAddr, load: Option<BitRate>) -> PathReading {
        let reflector = Reflector::bind(server).unwrap();
        let order = Order { server, reflector: reflector.meeting().unwrap(), load };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| reflector.serve(&is_over));
            let reading = measure(&order);
            is_over.store(true, Ordering::Relaxed);
            serving.join().unwrap().unwrap();
            reading.unwrap()
        })
    }

    #[test]
    fn the_path_to_this_machine_loses_and_changes_nothing() {
        for address in [IpAddr::from([127, 0, 0, 1]), Ipv6Addr::LOCALHOST.into()] {
            let reading = on_this_machine(address, None);
            assert!(reading.round_trip.count > 0 && reading.round_trip.min_ns > 0, "{reading:?}");
            for (_, direction) in reading.directions() {
                // A busy machine may run this process so late that a datagram counts as lost.
                assert!(direction.delivery.sent > direction.delivery.lost, "{direction:?}");
                assert_eq!(direction.delivery.duplicates, 0);
                assert_eq!(direction.mtu, Measured::Is(65_535));
                assert_eq!(direction.hops, Measured::Is(vec![0]));
                let marks = direction.marks.value().unwrap();
                assert!(marks.iter().all(|mark| mark.arrived == [mark.sent]), "{marks:?}");
                assert_eq!(direction.load, Measured::Missing(Missing::LoadNotAllowed));
            }
        }
    }

    #[test]
    fn nothing_is_counted_in_a_phase_without_arrivals() {
        let server = IpAddr::from([127, 0, 0, 1]);
        let reflector = Reflector::bind(server).unwrap();
        let order = Order { server, reflector: reflector.meeting().unwrap(), load: None };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| reflector.serve(&is_over));
            let report = ask::Asker::reach(&order).and_then(|asker| asker.report(7));
            is_over.store(true, Ordering::Relaxed);
            serving.join().unwrap().unwrap();
            assert_eq!(report.map(|report| report.arrivals.distinct), Ok(0));
        });
    }

    #[test]
    fn load_is_sent_at_most_at_the_allowed_rate_and_arrives() {
        let reading = on_this_machine([127, 0, 0, 1].into(), Some(BitRate(20_000_000)));
        for (_, direction) in reading.directions() {
            let load = direction.load.value().unwrap();
            assert!(load.sent > 0.0 && load.sent < 22_000_000.0, "{load:?}");
            assert!(load.arrived > 0.0, "{load:?}");
        }
    }

    #[test]
    fn without_a_reflector_or_with_another_token_nothing_comes_back() {
        let reflector = Reflector::bind([127, 0, 0, 1].into()).unwrap();
        let meeting = reflector.meeting().unwrap();
        let order =
            Order { server: [127, 0, 0, 1].into(), reflector: Meeting { token: [1, 2], ..meeting }, load: None };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| reflector.serve(&is_over));
            assert_eq!(measure(&order), Err(Missing::NoDatagramCameBack));
            is_over.store(true, Ordering::Relaxed);
            serving.join().unwrap().unwrap();
        });
        drop(reflector);
        assert_eq!(measure(&Order { reflector: meeting, ..order }), Err(Missing::NoDatagramCameBack));
    }

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let reflector = Meeting { port: 7, token: [u64::MAX, 1] };
        let order = Order { server: [192, 0, 2, 7].into(), reflector, load: Some(BitRate(5)) };
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
    }
}
