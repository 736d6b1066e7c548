//! The end of a path that asks.

use std::time::Duration;

use wirelab_model::missing::Missing;
use wirelab_model::path::{LoadedPath, Measured, PathDirection, PathReading, RoundTrips};
use wirelab_model::units::BitRate;

use crate::path::Order;
use crate::path::ask::{Asker, Heard, Question, failed};
use crate::path::load::{Load, Stretch};
use crate::path::marks::marks;
use crate::path::mtu::{Direction, mtu};
use crate::path::packet::{Kind, Packet};
use crate::path::train::train;

/// Duration of the load in a direction.
const LOADED: Duration = Duration::from_millis(600);

/// Round trips during the load, which begin when a queue may be full.
const PINGS: u32 = 20;
const PING_AFTER: Duration = Duration::from_millis(150);
const PING_EVERY: Duration = Duration::from_millis(20);

/// Longest delay of a full queue that is waited for.
const DRAINING: Duration = Duration::from_millis(1500);

/// Measures the path to a reflector.
///
/// # Errors
/// If nothing came back, or a socket failed. What else cannot be measured is missing in the reading.
pub fn measure(order: &Order) -> Result<PathReading, Missing> {
    let asker = Asker::reach(order)?;
    let train = train(&asker)?;
    let marks = match marks(&asker) {
        Ok(marks) => marks.map(Measured::Is),
        Err(why) => [Measured::Missing(why.clone()), Measured::Missing(why)],
    };
    let [up, down] = [Direction::Up, Direction::Down].map(|direction| {
        let mtu = mtu(&asker, direction);
        let load = match (order.load, &mtu) {
            (None, _) => Err(Missing::LoadNotAllowed),
            (Some(_), Err(why)) => Err(why.clone()),
            (Some(rate), Ok(mtu)) => loaded(&asker, direction, rate, *mtu),
        };
        (measured(mtu), measured(load))
    });
    let parts = train.delivery.into_iter().zip(train.hops).zip(marks).zip([up, down]);
    let mut parts = parts.map(|(((delivery, hops), marks), (mtu, load))| PathDirection {
        delivery,
        mtu,
        marks,
        hops: measured(hops),
        load,
    });
    let (up, down) = (parts.next().expect("two directions"), parts.next().expect("two directions"));
    Ok(PathReading { round_trip: train.round_trip, up, down })
}

fn measured<T>(found: Result<T, Missing>) -> Measured<T> {
    found.map_or_else(Measured::Missing, Measured::Is)
}

/// Loads a direction with packets of the path MTU, and measures round trips meanwhile.
fn loaded(asker: &Asker, direction: Direction, rate: BitRate, mtu: u32) -> Result<LoadedPath, Missing> {
    let load = Load { rate: rate.0 as f64, length: LOADED, size: mtu as usize - asker.socket.headers() };
    let phase = asker.new_phase();
    let patience = asker.patience() + DRAINING;
    let pings = [Question::PLAIN; PINGS as usize];
    let at = |number| PING_AFTER + PING_EVERY * number;
    let (mut round_trips, mut arrived) = (Vec::new(), Stretch::default());
    let hear = |heard: Heard| match heard.packet.kind {
        Kind::Echo => round_trips.push(heard.took_ns),
        Kind::Load => arrived.add(heard.received.length),
        Kind::Report | Kind::Flood => {}
    };
    let rates = match direction {
        Direction::Up => std::thread::scope(|scope| {
            let sender = scope.spawn(|| load.send(&asker.socket, asker.token, phase, || Ok(())));
            asker.ask(phase, &pings, at, LOADED, patience, hear)?;
            let sent = sender.join().expect("the sender does not panic").map_err(failed)?;
            Ok::<_, Missing>([sent, asker.report(phase)?.arrived as f64])
        })?,
        Direction::Down => {
            let order = Packet { more: load.to_numbers(), ..Packet::question(asker.token, Kind::Flood, phase, 0) };
            // One of them arrives; the reflector obeys once.
            (0..3).try_for_each(|_| asker.tell(&order))?;
            asker.ask(phase, &pings, at, LOADED + asker.patience(), patience, hear)?;
            let sent = asker.report(phase)?.sent as f64;
            [sent, arrived.rate(asker.socket.overhead())]
        }
    };
    let [sent, arrived] = rates;
    if sent == 0.0 || arrived == 0.0 {
        return Err(Missing::NoDatagramCameBack);
    }
    Ok(LoadedPath { sent, arrived, round_trip: RoundTrips::of(round_trips) })
}
