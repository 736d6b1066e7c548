//! What is left of a trial in which an observer stopped the processes: its counts. All else was slowed down by it.

use wirelab_model::metric::{Value, Values};
use wirelab_observe::Observer;

/// The name of the observer that stopped them; none in most trials.
pub(crate) fn by(observers: &[Box<dyn Observer>]) -> Option<&'static str> {
    observers.iter().find(|observer| observer.stops()).map(|observer| observer.about().name)
}

/// Takes away every value but those of observers that stop.
pub(crate) fn leave_counts(values: &mut Values, observers: &[Box<dyn Observer>]) {
    let Some(name) = by(observers) else { return };
    let counts = |metric: &str| {
        let mut stopping = observers.iter().filter(|observer| observer.stops());
        stopping.any(|observer| observer.about().metrics.iter().any(|declared| declared.name == metric))
    };
    for (_, value) in values.iter_mut().filter(|(metric, value)| !counts(metric) && value.number().is_some()) {
        *value = Value::missing(format!("the observer `{name}` stopped the processes at every system call"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_counts_of_an_observer_that_stops_is_left_and_reasons_of_its_own_stay() {
        let observers =
            |names: &[&str]| -> Vec<_> { names.iter().map(|name| wirelab_observe::create(name).unwrap()).collect() };
        let values = || {
            Values::from_iter([
                ("response_median".to_owned(), Value::Measured(1.0)),
                ("strace_client_per_request".to_owned(), Value::Measured(2.0)),
                ("response_p99".to_owned(), Value::missing("too few")),
            ])
        };
        let (mut usual, mut stopped) = (values(), values());
        leave_counts(&mut usual, &observers(&["cpu", "syscalls"]));
        assert_eq!(usual, values());
        leave_counts(&mut stopped, &observers(&["cpu", "strace"]));
        let reason = Value::missing("the observer `strace` stopped the processes at every system call");
        assert_eq!(stopped["response_median"], reason);
        assert_eq!(stopped["strace_client_per_request"], Value::Measured(2.0));
        assert_eq!(stopped["response_p99"], Value::missing("too few"));
    }
}
