//! Trials in which an observer disturbs what it observes: only the values of that observer are kept, because it slows
//! down everything else.

use wirelab_model::metric::{Value, Values};
use wirelab_model::missing::Missing;
use wirelab_model::warning::Warning;
use wirelab_observe::Observer;
use wirelab_observe::film::ABOUT as FILM;

/// Name of the disturbing observer, if any.
pub(crate) fn by(observers: &[Box<dyn Observer>]) -> Option<&'static str> {
    observers.iter().find(|observer| observer.distorts().is_some()).map(|observer| observer.about().name)
}

/// Removes every value except those of disturbing observers.
pub(crate) fn leave_its_own(values: &mut Values, observers: &[Box<dyn Observer>]) {
    let distorting = || observers.iter().filter_map(|observer| Some((observer.about(), observer.distorts()?)));
    let Some((about, what)) = distorting().next() else { return };
    let is_its_own =
        |metric: &str| distorting().any(|(about, _)| about.metrics.iter().any(|declared| declared.name == metric));
    for (_, value) in values.iter_mut().filter(|(metric, value)| !is_its_own(metric) && value.number().is_some()) {
        *value = Value::missing(Missing::Distorted { observer: about.name.to_owned(), how: what.to_owned() });
    }
}

/// The report's warning about such a trial.
pub(crate) fn warning(observer: &str, cell: String) -> Warning {
    if observer == FILM.name {
        Warning::Filmed { cell }
    } else {
        Warning::Stopped { cell, observer: observer.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_of_the_disturbing_observer_remain_and_its_reasons_stay() {
        let observers =
            |names: &[&str]| -> Vec<_> { names.iter().map(|name| wirelab_observe::create(name).unwrap()).collect() };
        let values = || {
            Values::from_iter([
                ("response_median".to_owned(), Value::Measured(1.0)),
                ("strace_client_per_request".to_owned(), Value::Measured(2.0)),
                ("page_speed_index".to_owned(), Value::Measured(3.0)),
                ("response_p99".to_owned(), Value::missing(Missing::other("too few"))),
            ])
        };
        let distorted = |observer: &str, how: &str| {
            Value::missing(Missing::Distorted { observer: observer.to_owned(), how: how.to_owned() })
        };
        let left = |names: &[&str]| {
            let mut left = values();
            leave_its_own(&mut left, &observers(names));
            left
        };
        assert_eq!(left(&["cpu", "syscalls"]), values());
        let stopped = left(&["cpu", "strace"]);
        let reason = distorted("strace", "stopped the processes at every system call");
        assert_eq!((&stopped["response_median"], &stopped["page_speed_index"]), (&reason, &reason));
        assert_eq!(stopped["strace_client_per_request"], Value::Measured(2.0));
        assert_eq!(stopped["response_p99"], Value::missing(Missing::other("too few")));
        let filmed = left(&["cpu", "film"]);
        let reason = distorted("film", "had the window filmed, which takes the browser's time");
        assert_eq!((&filmed["response_median"], &filmed["strace_client_per_request"]), (&reason, &reason));
        assert_eq!(filmed["page_speed_index"], Value::Measured(3.0));
    }

    #[test]
    fn each_distortion_has_its_own_warning() {
        let cell = || "protocol=h2".to_owned();
        assert_eq!(warning("film", cell()), Warning::Filmed { cell: cell() });
        assert_eq!(warning("strace", cell()), Warning::Stopped { cell: cell(), observer: "strace".to_owned() });
    }
}
