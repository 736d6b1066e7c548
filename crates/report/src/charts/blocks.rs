//! The first metric by block: whether the machine or a cell changed during the run.

use std::collections::BTreeMap;

use wirelab_model::metric::Metric;

use crate::Input;
use crate::charts::stepped::{Line, Names, Point, facets};
use crate::charts::{Chart, series_legend};
use crate::layout::{Group, Layout, Row};
use crate::words::{phrase, upper_first};

/// The chart; `None` for a table, and with fewer than two blocks.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let metric = input.metric(input.first_metric())?;
    let blocks: BTreeMap<u32, u32> =
        input.trials.iter().map(|record| (record.trial.number, record.trial.block + 1)).collect();
    if input.table.is_some() || blocks.values().max()? < &2 {
        return None;
    }
    let lines = |group: &Group| {
        let rows = group.rows.iter().filter(|row| !row.twin);
        (group.title(), rows.filter_map(|row| line(input, metric, &blocks, row)).collect())
    };
    let values = phrase(metric.title);
    let names = Names { drawing: format!("{} by block", metric.title), steps: "block", values: &values };
    let (facets, omitted) = facets(layout.groups.iter().map(lines).collect(), &names, metric.unit);
    (!facets.is_empty()).then(|| Chart {
        id: "blocks".to_owned(),
        title: format!("{} by block", upper_first(&values)),
        caption: format!(
            "Each point is one trial. All cells run once in each block, in random order, and verdicts compare trials of \
             the same block. So what changes all cells of a block alike changes no verdict.{omitted}"
        ),
        legend: series_legend(layout),
        facets,
        without_outliers: Vec::new(),
    })
}

fn line(input: &Input, metric: &Metric, blocks: &BTreeMap<u32, u32>, row: &Row) -> Option<Line> {
    let cell = input.manifest.plan.cells[row.cell].label();
    let values = &input.estimate(row.cell, metric.name)?.values;
    let unit = crate::csv::token(metric.unit);
    let point = |(trial, value): &(u32, f64)| {
        let step = *blocks.get(trial)?;
        let facts = vec![
            ("cell", cell.clone()),
            ("block", step.to_string()),
            (metric.name, value.to_string()),
            ("unit", unit.clone()),
        ];
        Some(Point { step, value: *value, spread: (*value, *value), facts })
    };
    let mut points: Vec<_> = values.iter().filter_map(point).collect();
    points.sort_by_key(|point| point.step);
    Some(Line { series: row.series, points })
}
