//! The results of each of several requests of the user.

use serde::Serialize;
use wirelab_model::metric::{Unit, Value, Values};

use crate::Input;
use crate::numbers::{quantity, thousands};

/// The results of a request in a cell, over all its successful trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfRequest {
    pub name: String,
    pub weight: u32,
    /// Requests that succeeded.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// The metrics of response times, of all these requests together.
    pub values: Values,
}

/// The header of the rows.
pub(crate) const HEADER: [&str; 8] = ["cell", "request", "weight", "succeeded", "failed", "median", "P90", "P99"];

/// The limits of the table.
pub(crate) const NOTE: &str =
    "Response times of all trials together, without intervals; verdicts are about all requests of a cell.";

/// A row for each request of each cell; empty if no cell has several requests.
pub(crate) fn rows(input: &Input) -> Vec<[String; 8]> {
    let cells = input.manifest.plan.cells.iter().enumerate();
    let of_cell = |(number, cell): (usize, &wirelab_model::plan::Cell)| {
        let label = cell.label();
        (input.by_request)(number).into_iter().map(move |one| row(&label, &one)).collect::<Vec<_>>()
    };
    cells.flat_map(of_cell).collect()
}

fn row(label: &str, one: &OfRequest) -> [String; 8] {
    let time = |metric: &str| match one.values.get(metric) {
        Some(Value::Measured(number)) => quantity(*number, Unit::Nanoseconds),
        Some(Value::Infinite { .. }) => "infinite".to_owned(),
        Some(Value::NotMeasured(_)) | None => "–".to_owned(),
    };
    [
        label.to_owned(),
        one.name.clone(),
        one.weight.to_string(),
        thousands(one.requests),
        thousands(one.failed),
        time("response_median"),
        time("response_p90"),
        time("response_p99"),
    ]
}
