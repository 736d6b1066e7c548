//! The results by request, for a load with several requests.

use std::fmt::Write;

use indexmap::IndexMap;
use serde::Serialize;
use wirelab_endpoint::load::{LoadResult, Results};
use wirelab_model::metric::{Quantity, Unit, Value, Values};
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Sample;

use crate::requests::Requests;

/// The results in the order of the requests; empty if there is only one.
#[derive(Debug, Serialize)]
pub struct ByRequest(Vec<OfRequest>);

#[derive(Debug, Serialize)]
struct OfRequest {
    name: String,
    weight: u32,
    /// Successful requests.
    requests: u64,
    errors: IndexMap<ErrorKind, u64>,
    values: Values,
}

impl ByRequest {
    /// Divides the results of a load.
    pub fn of(requests: &Requests, result: &LoadResult) -> Self {
        let Results::Samples(samples) = &result.results else { return Self(Vec::new()) };
        if requests.written.len() < 2 {
            return Self(Vec::new());
        }
        let mut apart: Vec<Vec<Sample>> = vec![Vec::new(); requests.written.len()];
        for sample in samples {
            if let Some(of_request) = sample.request.and_then(|number| apart.get_mut(number as usize)) {
                of_request.push(sample.clone());
            }
        }
        let each = requests.written.iter().zip(apart).map(|(written, samples)| {
            let values = wirelab_stats::summarise(&samples, result.window_ns);
            let (requests, errors) = Results::Samples(samples).counts();
            OfRequest { name: written.name(), weight: written.weight(), requests, errors, values }
        });
        Self(each.collect())
    }

    /// A table: a line for each request.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let Some(widest) = self.0.iter().map(|one| one.name.chars().count()).max() else { return text };
        let width = widest.clamp(7, 60);
        let _ = writeln!(
            text,
            "\n{:<width$} {:>6} {:>10} {:>8} {:>12} {:>12} {:>12}",
            "request", "weight", "succeeded", "failed", "median", "p90", "p99"
        );
        for one in &self.0 {
            let time = |name: &str| match one.values.get(name) {
                Some(Value::Measured(number)) => Quantity(*number, Unit::Nanoseconds).to_string(),
                Some(Value::Infinite { .. }) => "infinite".to_owned(),
                Some(Value::NotMeasured(_)) | None => "–".to_owned(),
            };
            let _ = writeln!(
                text,
                "{:<width$} {:>6} {:>10} {:>8} {:>12} {:>12} {:>12}",
                one.name,
                one.weight,
                one.requests,
                one.errors.values().sum::<u64>(),
                time("response_median"),
                time("response_p90"),
                time("response_p99")
            );
        }
        text
    }
}
