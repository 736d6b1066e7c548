//! The values of a trial whose client is a program of the user.

use wirelab_model::metric::{Value, Values};
use wirelab_model::missing::Missing;
use wirelab_model::totals::Totals;

use crate::metrics::METRICS;

/// The values of every metric in [`crate::METRICS`] that totals have; the others are missing with a reason.
///
/// `window_ns` is the length of the measured window, the life of the program. Times are the printed ones.
#[must_use]
pub fn summarise_totals(totals: &Totals, window_ns: u64) -> Values {
    let missing = |name: &str| (name.to_owned(), Value::missing(Missing::NotPrinted));
    let mut values: Values = METRICS.iter().map(|metric| missing(metric.name)).collect();
    let ok = totals.requests as f64;
    let mut set = |name: &str, value| values.insert(name.to_owned(), value);
    set("requests", Value::Measured(ok));
    if let Some(failed) = totals.failed() {
        let failed = failed as f64;
        set("error_share", Value::finite(failed / (ok + failed), Missing::NoRequest));
    }
    if totals.requests == 0 {
        return values;
    }
    set("total_time", Value::Measured(window_ns as f64));
    set("request_rate", Value::finite(ok / (window_ns as f64 / 1e9), Missing::EmptyWindow));
    let failed = totals.failed().unwrap_or_default();
    for (value, ns) in &totals.printed {
        let Some(name) = value.time() else { continue };
        let value = match *ns {
            0 => Value::missing(Missing::PrintedZero),
            // Programs compute percentiles of the successes; here a failed request is slower than each of them.
            _ if failed > 0 && value.is_percentile() => Value::missing(Missing::SuccessesOnly { failed }),
            ns => Value::Measured(ns as f64),
        };
        set(name, value);
    }
    values
}

#[cfg(test)]
mod tests {
    use wirelab_model::totals::Printed;

    use super::*;

    #[test]
    fn counts_and_printed_times_are_values_and_the_rest_is_missing_with_the_reason() {
        let printed = [
            (Printed::ResponseMedian, 1_500_000),
            (Printed::ResponseMax, 9_000_000),
            (Printed::ResponseMin, 0),
            (Printed::Failed, 0),
        ];
        let values = summarise_totals(&Totals { requests: 990, printed: printed.into() }, 500_000_000);
        assert_eq!((values["response_median"].number(), values["error_share"].number()), (Some(1.5e6), Some(0.0)));
        assert_eq!(values["response_min"], Value::missing(Missing::PrintedZero));
        let printed = printed.into_iter().chain([(Printed::Failed, 10)]).collect();
        let values = summarise_totals(&Totals { requests: 990, printed }, 500_000_000);
        let number = |name: &str| values[name].number();
        assert_eq!((number("requests"), number("request_rate")), (Some(990.0), Some(1980.0)));
        assert_eq!((number("error_share"), number("total_time")), (Some(0.01), Some(5e8)));
        assert_eq!(values["response_median"], Value::missing(Missing::SuccessesOnly { failed: 10 }));
        assert_eq!(number("response_max"), Some(9e6));
        assert_eq!(values["response_p99"], Value::missing(Missing::NotPrinted));
        assert_eq!(values.len(), METRICS.len());
    }

    #[test]
    fn without_a_count_of_failures_their_share_is_missing_and_without_a_success_so_is_the_rate() {
        let values = summarise_totals(&Totals { requests: 5, printed: Default::default() }, 1_000_000);
        assert_eq!(values["error_share"], Value::missing(Missing::NotPrinted));
        let none = [(Printed::Failed, 3)].into_iter().collect();
        let values = summarise_totals(&Totals { requests: 0, printed: none }, 1_000_000);
        assert_eq!((values["error_share"].number(), values["request_rate"].number()), (Some(1.0), None));
    }
}
