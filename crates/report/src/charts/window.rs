//! Response times over the measured window of trials, by fifths of the window.

use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Unit;
use wirelab_model::outcome::Outcome;
use wirelab_stats::quantile;

use crate::Input;
use crate::charts::stepped::{Line, Names, Point, facets};
use crate::charts::{Chart, series_legend};
use crate::layout::{Group, Layout, Row};

/// The chart; `None` if no trial has the medians of its fifths.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let lines = |group: &Group| {
        let rows = group.rows.iter().filter(|row| !row.twin);
        (group.title(), rows.map(|row| line(input, row)).collect())
    };
    let drawing = "Response times within the window".to_owned();
    let names = Names { drawing, steps: "fifth of the window", values: "median response time" };
    let (facets, omitted) = facets(layout.groups.iter().map(lines).collect(), &names, Unit::Nanoseconds);
    (!facets.is_empty()).then(|| Chart {
        id: "within-window".to_owned(),
        title: "Response time within the measured window".to_owned(),
        caption: format!(
            "The median response time of the requests that began in each fifth of the window: points are medians over \
             trials, bars reach from the first to the third quartile of the trials. A level line is a steady state. The \
             sentence on steady state says which changes are significant.{omitted}"
        ),
        legend: series_legend(layout),
        facets,
        without_outliers: Vec::new(),
    })
}

fn line(input: &Input, row: &Row) -> Line {
    let cell = input.manifest.plan.cells[row.cell].label();
    let profiles: Vec<&[u64]> =
        input.trials.iter().filter(|record| counts(record, row.cell)).map(|record| &record.profile[..]).collect();
    let fifths = profiles.iter().map(|profile| profile.len()).max().unwrap_or(0);
    let point = |fifth: usize| {
        let values: Vec<f64> = profiles.iter().filter_map(|profile| profile.get(fifth)).map(|ns| *ns as f64).collect();
        let values = quantile::sorted(&values);
        let [first, value, third] = [0.25, 0.5, 0.75].map(|share| quantile::interpolated(&values, share));
        let (first, value, third) = (first?, value?, third?);
        let step = fifth as u32 + 1;
        let facts = vec![
            ("cell", cell.clone()),
            ("fifth of the window", step.to_string()),
            ("median (ns)", value.to_string()),
            ("first quartile (ns)", first.to_string()),
            ("third quartile (ns)", third.to_string()),
            ("n (trials)", values.len().to_string()),
        ];
        Some(Point { step, value, spread: (first, third), facts })
    };
    Line { series: row.series, points: (0..fifths).filter_map(point).collect() }
}

/// Whether a record is a successful trial of a cell.
fn counts(record: &TrialRecord, cell: usize) -> bool {
    record.trial.cell == cell && record.outcome == Outcome::Ok
}
