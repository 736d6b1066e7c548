//! Differences between the clients that share the workload of a trial.

use wirelab_model::journal::Portion;
use wirelab_model::metric::{Better, Computed, Metric, Side, Unit, Value, Values, declared};
use wirelab_model::missing::Missing;
use wirelab_model::warning::Warning;

const VANTAGE: &str = "the clients' own records, and wirelab's clock";

type Compute = fn(&[Portion]) -> Value;

const fn metric(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    compute: Compute,
) -> Computed<Compute> {
    let (side, better) = (Side::Client, Better::Lower);
    Computed { metric: Metric { name, title, unit, side, vantage: VANTAGE, better, meaning }, compute }
}

/// Every metric that [`clients`] produces, in its order. Trials of one client have none.
pub static CLIENTS_METRICS: &[Metric] = &declared(&TABLE);

static TABLE: [Computed<Compute>; 3] = [
    metric(
        "clients_rate_ratio",
        "Requests per second over clients, largest to smallest",
        Unit::Count,
        "Each client's successful requests divided by the length of its own window: the largest divided by the \
         smallest, 1 if all are equal.",
        |portions| ratio(rates(portions)),
    ),
    metric(
        "clients_median_ratio",
        "Median response time over clients, largest to smallest",
        Unit::Count,
        "The median response time of each client: the largest divided by the smallest, 1 if all are equal.",
        |portions| ratio(medians(portions)),
    ),
    metric(
        "clients_start_spread",
        "Start of clients, first to last",
        Unit::Nanoseconds,
        "An upper bound of the time between the starts of the first and the last client: from the start command of \
         the first client to the latest possible start of any client. The latest possible start of a client is its end \
         minus the length of its own window.",
        |portions| Value::Measured(spread(portions) as f64),
    ),
];

/// The ratio above which clients are uneven, and the requests per client below which the ratio is not judged. By
/// chance, the rates of 400 arrivals each differ by a quarter in one of a hundred pairs.
const UNEVEN: f64 = 1.25;
const ENOUGH: u64 = 400;

/// The share of the window above which clients did not start together.
const APART: f64 = 0.05;

/// The values of every metric in [`CLIENTS_METRICS`]; empty for a single client.
#[must_use]
pub fn clients(portions: &[Portion]) -> Values {
    if portions.is_empty() {
        return Values::new();
    }
    TABLE.iter().map(|row| (row.metric.name.to_owned(), (row.compute)(portions))).collect()
}

fn ratio(ratio: Option<f64>) -> Value {
    ratio.map_or_else(|| Value::missing(Missing::ClientWithoutAnswer), Value::Measured)
}

/// The warnings on uneven clients, and on clients that did not start together. `label` is the cell's.
#[must_use]
pub fn uneven(label: &str, portions: &[Portion], window_ns: u64) -> Vec<Warning> {
    if portions.is_empty() {
        return Vec::new();
    }
    let uneven =
        |what: &str, share: f64| Warning::ClientsUneven { cell: label.to_owned(), what: what.to_owned(), share };
    let mut warnings = Vec::new();
    let (rate, median) = ("number of requests per second", "median response time");
    if portions.iter().any(|portion| portion.requests == 0) {
        // Each client has a share of the workload, so a client without requests is uneven at any count.
        warnings.push(uneven(rate, 0.0));
    } else if portions.iter().all(|portion| portion.requests >= ENOUGH) {
        let found = [(rate, rates(portions)), (median, medians(portions))];
        let found = found.into_iter().filter_map(|(what, ratio)| Some((what, ratio.filter(|ratio| *ratio > UNEVEN)?)));
        warnings.extend(found.map(|(what, ratio)| uneven(what, 1.0 / ratio)));
    }
    let share = spread(portions) as f64 / window_ns as f64;
    if share > APART {
        warnings.push(Warning::ClientsApart { cell: label.to_owned(), share });
    }
    warnings
}

fn rates(portions: &[Portion]) -> Option<f64> {
    largest_to_smallest(portions.iter().map(|portion| portion.requests as f64 / portion.window_ns.max(1) as f64))
}

fn medians(portions: &[Portion]) -> Option<f64> {
    largest_to_smallest(portions.iter().map(|portion| portion.response_median_ns.unwrap_or_default() as f64))
}

fn largest_to_smallest(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (smallest, largest) =
        numbers.fold((f64::INFINITY, 0.0_f64), |(least, most), number| (least.min(number), most.max(number)));
    (smallest > 0.0 && smallest.is_finite()).then(|| largest / smallest)
}

/// The latest start; the window begins with the start command to the first client.
fn spread(portions: &[Portion]) -> u64 {
    portions.iter().map(|portion| portion.begun_ns).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 1_000_000_000;

    fn portion(requests: u64, median: u64, begun_ns: u64) -> Portion {
        let response_median_ns = (requests > 0).then_some(median);
        Portion { begun_ns, window_ns: WINDOW, requests, response_median_ns, ..Portion::default() }
    }

    #[test]
    fn equal_clients_give_no_warning() {
        let alike = [portion(1000, 100, 0), portion(1100, 120, 2_000_000)];
        let values = clients(&alike);
        assert!(values.keys().map(String::as_str).eq(CLIENTS_METRICS.iter().map(|metric| metric.name)));
        assert_eq!(values["clients_rate_ratio"], Value::Measured(1.1));
        assert_eq!(values["clients_median_ratio"], Value::Measured(1.2));
        assert_eq!(values["clients_start_spread"], Value::Measured(2e6));
        assert_eq!(uneven("x", &alike, WINDOW), []);
        assert_eq!((clients(&[]), uneven("x", &[], 0)), (Values::new(), Vec::new()));
    }

    #[test]
    fn one_that_got_less_or_began_late_is_named_with_its_ratio() {
        let warnings = uneven("x", &[portion(1000, 100, 0), portion(500, 300, 60_000_000)], WINDOW);
        let uneven = |what: &str, share| Warning::ClientsUneven { cell: "x".to_owned(), what: what.to_owned(), share };
        let expected = [
            uneven("number of requests per second", 0.5),
            uneven("median response time", 1.0 / 3.0),
            Warning::ClientsApart { cell: "x".to_owned(), share: 0.06 },
        ];
        assert_eq!(warnings, expected);
    }

    #[test]
    fn few_requests_differ_by_chance_but_none_at_all_does_not() {
        assert_eq!(uneven("x", &[portion(20, 100, 0), portion(10, 300, 0)], WINDOW), []);
        let none = [portion(20, 100, 0), portion(0, 0, 0)];
        assert_eq!(uneven("x", &none, WINDOW).len(), 1);
        assert_eq!(clients(&none)["clients_rate_ratio"], Value::missing(Missing::ClientWithoutAnswer));
    }
}
