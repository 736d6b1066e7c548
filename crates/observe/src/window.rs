//! Shared parts of the observers of processes: readings per side, and values relative to the window.

use wirelab_model::metric::{Metric, Side, Value, Values};
use wirelab_model::missing::Missing;

use crate::tree::Pid;
use crate::{Targets, Window};

/// A value for each side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sides<T> {
    /// The client's value.
    pub client: T,
    /// The servers' value.
    pub server: T,
}

impl<T> Sides<T> {
    /// Applies `read` to the processes of each side. A side that the lab does not show gives a reason.
    pub fn read(targets: &Targets, read: impl Fn(&[Pid]) -> Result<T, Missing>) -> Sides<Result<T, Missing>> {
        let of = |pids: Option<&[Pid]>, side| pids.ok_or(Missing::ProcessHidden { side }).and_then(&read);
        Sides {
            client: of(targets.clients.as_deref(), Side::Client),
            server: of(targets.servers.as_deref(), Side::Server),
        }
    }

    /// Combines the readings at the begin and the end of the window for each side.
    pub fn join<E, U>(
        begin: Option<&Sides<Result<T, Missing>>>,
        end: Option<&Sides<Result<E, Missing>>>,
        join: impl Fn(&T, &E) -> Result<U, Missing>,
    ) -> Sides<Result<U, Missing>> {
        let (Some(begin), Some(end)) = (begin, end) else {
            let never = || Err(Missing::NoWindow);
            return Sides { client: never(), server: never() };
        };
        let side = |begin: &Result<T, Missing>, end: &Result<E, Missing>| {
            join(begin.as_ref().map_err(Clone::clone)?, end.as_ref().map_err(Clone::clone)?)
        };
        Sides { client: side(&begin.client, &end.client), server: side(&begin.server, &end.server) }
    }
}

/// A number, or the reason why it is missing.
pub type Reading = Result<f64, Missing>;

/// A count divided by the requests that succeeded.
pub fn per_request(count: &Reading, window: &Window) -> Reading {
    divided(count, window.requests as f64, Missing::NoSuccess)
}

/// A count divided by the payload bytes.
pub fn per_byte(count: &Reading, window: &Window) -> Reading {
    divided(count, window.bytes as f64, Missing::NoPayload)
}

/// A time in nanoseconds divided by the window's length.
pub fn share(ns: &Reading, window: &Window) -> Reading {
    divided(ns, window.ns as f64, Missing::EmptyWindow)
}

fn divided(count: &Reading, by: f64, otherwise: Missing) -> Reading {
    let count = count.clone()?;
    if by > 0.0 { Ok(count / by) } else { Err(otherwise) }
}

/// Names the readings of an observer: one for each metric, in the order of declaration.
///
/// # Panics
/// If the numbers of readings and metrics differ; a test checks every observer.
pub fn values<const N: usize>(metrics: &[Metric], readings: [Reading; N]) -> Values {
    assert_eq!(metrics.len(), N, "an observer gives a value for each metric that it declares");
    let value = |reading: Reading| match reading {
        Ok(number) => Value::finite(number, Missing::NotFinite),
        Err(reason) => Value::missing(reason),
    };
    metrics.iter().map(|metric| metric.name.to_owned()).zip(readings.into_iter().map(value)).collect()
}
