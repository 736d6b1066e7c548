//! Links and paths that changed between their measurements.

use indexmap::IndexMap;
use wirelab_model::journal::LinkCheck;
use wirelab_model::path::{Measured, PathProperty, PathReading};
use wirelab_model::warning::Warning;

/// Difference of the median round trips of two measurements that counts as a change: as a share, and in nanoseconds,
/// which the noise of a machine can reach.
const SHARE: f64 = 0.1;
const NOISE_NS: u64 = 200_000;

/// A warning for each link or path and each of its properties that changed, in the order of the first measurements.
#[must_use]
pub fn link_drift(checks: &[LinkCheck]) -> Vec<Warning> {
    let mut links: IndexMap<String, Seen<'_>> = IndexMap::new();
    for check in checks {
        for record in &check.links {
            links.entry(record.placement.clone()).or_default().round_trips.extend(record.reading.round_trip_ns);
        }
        for record in &check.paths {
            if let Measured::Is(reading) = &record.reading {
                let seen = links.entry(record.label()).or_default();
                seen.round_trips.push(reading.round_trip.median_ns);
                seen.readings.push(reading);
            }
        }
    }
    links.iter().flat_map(|(link, seen)| seen.changes(link)).collect()
}

/// The measurements of a link.
#[derive(Default)]
struct Seen<'a> {
    round_trips: Vec<u64>,
    readings: Vec<&'a PathReading>,
}

impl Seen<'_> {
    fn changes(&self, link: &str) -> Vec<Warning> {
        let changes = [
            (PathProperty::RoundTrip, self.round_trip()),
            (PathProperty::Mtu, self.differing(|reading| Some(reading.mtu()?.to_string()))),
            (PathProperty::Route, self.differing(routes)),
            (PathProperty::Marks, self.differing(marks)),
        ];
        let warning = |what, (from, to)| Warning::LinkChanged { link: link.to_owned(), what, from, to };
        changes.into_iter().filter_map(|(what, change)| Some(warning(what, change?))).collect()
    }

    fn round_trip(&self) -> Option<(String, String)> {
        let first = *self.round_trips.first()?;
        let other = *self.round_trips.iter().max_by_key(|ns| ns.abs_diff(first))?;
        let difference = other.abs_diff(first);
        let ms = |ns: u64| format!("{:.3} ms", ns as f64 / 1e6);
        let counts = difference > NOISE_NS && difference as f64 > SHARE * first.min(other) as f64;
        counts.then(|| (ms(first), ms(other)))
    }

    /// The first value, and the first other one.
    fn differing(&self, value: impl Fn(&PathReading) -> Option<String>) -> Option<(String, String)> {
        let mut values = self.readings.iter().filter_map(|reading| value(reading));
        let first = values.next()?;
        let other = values.find(|other| *other != first)?;
        Some((first, other))
    }
}

/// The numbers of routers in both directions.
fn routes(reading: &PathReading) -> Option<String> {
    let texts = reading.directions().map(|(name, direction)| {
        let hops: Vec<_> = direction.hops.value()?.iter().map(u8::to_string).collect();
        Some(format!("{} {name}", hops.join(" or ")))
    });
    let [up, down] = texts;
    Some(format!("{} and {}", up?, down?))
}

/// The marks that arrived in both directions, as numbers; a mark without any arrival may be a loss, and is left out.
fn marks(reading: &PathReading) -> Option<String> {
    let texts = reading.directions().map(|(name, direction)| {
        let arrived = direction.marks.value()?.iter().filter(|mark| !mark.arrived.is_empty());
        let changed = arrived.filter(|mark| mark.arrived != [mark.sent]);
        let byte = |byte: &u8| format!("{byte:#04x}");
        let bytes = |all: &[u8]| all.iter().map(byte).collect::<Vec<_>>().join(", ");
        let changed: Vec<_> =
            changed.map(|mark| format!("{} to [{}]", byte(&mark.sent), bytes(&mark.arrived))).collect();
        Some(if changed.is_empty() { format!("kept {name}") } else { format!("{} {name}", changed.join(", ")) })
    });
    let [up, down] = texts;
    Some(format!("{} and {}", up?, down?))
}

#[cfg(test)]
mod tests {
    use wirelab_model::missing::Missing;
    use wirelab_model::path::{Delivery, Mark, PathDirection, PathRecord, RoundTrips};

    use super::*;

    fn reading(round_trip_ns: u64, mtu: u32, hops: &[u8], arrived: u8) -> PathReading {
        let direction = PathDirection {
            delivery: Delivery::default(),
            mtu: Measured::Is(mtu),
            marks: Measured::Is(vec![Mark { sent: 2, arrived: vec![arrived] }]),
            hops: Measured::Is(hops.to_vec()),
            load: Measured::Missing(Missing::LoadNotAllowed),
        };
        let round_trip = RoundTrips::of(vec![round_trip_ns]).unwrap();
        PathReading { round_trip, up: direction.clone(), down: direction }
    }

    fn drift(readings: Vec<Measured<PathReading>>) -> Vec<(PathProperty, String, String)> {
        let check = |reading| {
            let [placement, client, server] = ["lan", "a", "b"].map(str::to_owned);
            let paths = vec![PathRecord { placement, client, server, reading }];
            LinkCheck { block: 0, at: String::new(), links: Vec::new(), paths }
        };
        let checks: Vec<_> = readings.into_iter().map(check).collect();
        let changed = |warning| match warning {
            Warning::LinkChanged { link, what, from, to } => {
                assert_eq!(link, "lan (a → b)");
                (what, from, to)
            }
            other => panic!("{other:?}"),
        };
        link_drift(&checks).into_iter().map(changed).collect()
    }

    #[test]
    fn a_steady_path_gives_no_warning() {
        let lost = Measured::Missing(Missing::NoDatagramCameBack);
        let near = reading(10_900_000, 1500, &[4], 2);
        assert_eq!(drift(vec![Measured::Is(reading(10_000_000, 1500, &[4], 2)), lost, Measured::Is(near)]), []);
        // A large share of a short round trip is noise.
        let short = [100_000, 250_000].map(|ns| Measured::Is(reading(ns, 1500, &[4], 2)));
        assert_eq!(drift(short.to_vec()), []);
        assert_eq!(link_drift(&[]), []);
    }

    #[test]
    fn each_property_that_changed_is_named_with_both_values() {
        let [before, after] = [reading(10_000_000, 1500, &[4], 2), reading(12_000_000, 1400, &[4, 6], 0)];
        let changes = drift(vec![Measured::Is(before), Measured::Is(after)]);
        let text = |property| {
            let (_, from, to) = changes.iter().find(|(what, ..)| *what == property).unwrap();
            format!("{from} | {to}")
        };
        assert_eq!(text(PathProperty::RoundTrip), "10.000 ms | 12.000 ms");
        assert_eq!(text(PathProperty::Mtu), "1500 | 1400");
        assert_eq!(text(PathProperty::Route), "4 up and 4 down | 4 or 6 up and 4 or 6 down");
        assert_eq!(text(PathProperty::Marks), "kept up and kept down | 0x02 to [0x00] up and 0x02 to [0x00] down");
    }
}
