//! The figures of a study: the requests of each box, and the numbers of a box.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use wirelab_model::metric::Unit;
use wirelab_model::plan::Cell;
use wirelab_model::study::Figure;

use crate::Input;
use crate::layout::{level_title, sentence};
use crate::no_requests::NoRequests;
use crate::numbers::Scale;

/// A figure.
pub(crate) struct Drawn {
    /// The study's title of the figure.
    pub title: String,
    /// Its plots, in the order of the study.
    pub plots: Vec<Plot>,
}

/// Boxes below each other on one axis.
pub(crate) struct Plot {
    /// The common levels of the boxes.
    pub title: String,
    /// A box for each level of the figure's factor.
    pub rows: Vec<Row>,
}

/// A box, or the reason for its absence.
pub(crate) struct Row {
    /// The level.
    pub label: String,
    /// The distribution of its requests.
    pub requests: Result<Boxed, NoRequests>,
    /// The median total time of the cell, summed over pooled cells; `None` if a cell has no value.
    pub total: Option<f64>,
}

/// The numbers of a box plot (Tukey 1977). Times are nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Boxed {
    pub count: u64,
    /// First quartile, median, third quartile (interpolated, type 7 of Hyndman and Fan 1996).
    pub quartiles: [f64; 3],
    /// The smallest and the largest value within 1.5 times the interquartile range of the box.
    pub whiskers: (f64, f64),
    /// The smallest and the largest value.
    pub range: (f64, f64),
    /// The values beyond the whiskers with their counts, ascending.
    pub outliers: Vec<(u64, u64)>,
}

impl Boxed {
    /// From values with their counts, ascending; `None` without values.
    pub(crate) fn of(counts: &[(u64, u64)]) -> Option<Self> {
        let count: u64 = counts.iter().map(|(_, count)| count).sum();
        let (first, last) = (counts.first()?.0 as f64, counts.last()?.0 as f64);
        let quartiles = [0.25, 0.5, 0.75].map(|share| interpolated(counts, count, share));
        let reach = 1.5 * (quartiles[2] - quartiles[0]);
        let within = |value: u64| (quartiles[0] - reach..=quartiles[2] + reach).contains(&(value as f64));
        let mut inside = counts.iter().map(|(value, _)| *value).filter(|value| within(*value));
        let low = inside.next().map_or(first, |value| value as f64);
        let high = inside.next_back().map_or(low, |value| value as f64);
        let outliers = counts.iter().copied().filter(|(value, _)| !within(*value)).collect();
        // An interpolated quartile between distant values may lie beyond the last value within reach; a whisker starts
        // at the box.
        let whiskers = (low.min(quartiles[0]), high.max(quartiles[2]));
        Some(Self { count, quartiles, whiskers, range: (first, last), outliers })
    }

    /// The number of outliers.
    pub(crate) fn outlying(&self) -> u64 {
        self.outliers.iter().map(|(_, count)| count).sum()
    }

    /// The interval from the smallest to the largest drawn value.
    pub(crate) const fn extent(&self, outliers: bool) -> (f64, f64) {
        if outliers { self.range } else { self.whiskers }
    }
}

/// A quantile of values with their counts, linearly interpolated between ranks.
fn interpolated(counts: &[(u64, u64)], count: u64, share: f64) -> f64 {
    let place = share * (count - 1) as f64;
    let value = |rank: u64| {
        let mut passed = 0;
        let found = counts.iter().find(|(_, count)| {
            passed += count;
            passed > rank
        });
        found.map_or(f64::NAN, |(value, _)| *value as f64)
    };
    let (below, above) = (value(place.floor() as u64), value(place.ceil() as u64));
    below + (above - below) * place.fract()
}

/// The figures of the study with at least one cell in the plan.
pub(crate) fn figures(input: &Input) -> Vec<Drawn> {
    let drawn = |figure: &Figure| Drawn { title: figure.title.clone(), plots: plots(input, figure) };
    input.manifest.study.figures.iter().map(drawn).filter(|drawn| !drawn.plots.is_empty()).collect()
}

fn plots(input: &Input, figure: &Figure) -> Vec<Plot> {
    // Levels in common, then the level of the row, then the numbers of its cells.
    let mut plots: IndexMap<String, IndexMap<String, Vec<usize>>> = IndexMap::new();
    for (number, cell) in input.manifest.plan.cells.iter().enumerate() {
        if cell.twin_of.is_some() || !figure.cells.matches(cell) {
            continue;
        }
        let Some(level) = cell.levels.get(&figure.rows) else { continue };
        let rows = plots.entry(title(figure, cell)).or_default();
        rows.entry(level_title(&figure.rows, level)).or_default().push(number);
    }
    let row = |(label, cells): (String, Vec<usize>)| {
        let have = cells.iter().filter(|cell| (input.pooled)(**cell).is_ok()).count();
        let partly = have > 0 && have < cells.len();
        Row {
            // The label shows that the box covers fewer cells than its neighbours.
            label: if partly { format!("{label} ({have} of {})", cells.len()) } else { label },
            requests: pooled(input, &cells),
            total: cells.iter().map(|cell| Some(input.estimate(*cell, "total_time")?.median)).sum(),
        }
    };
    plots.into_iter().map(|(title, rows)| Plot { title, rows: rows.into_iter().map(row).collect() }).collect()
}

/// The levels of the remaining factors: neither rows, nor pooled, nor fixed by the figure.
fn title(figure: &Figure, cell: &Cell) -> String {
    let is_fixed = |factor: &str| figure.cells.0.get(factor).is_some_and(|wanted| !wanted.is_array());
    let others = cell
        .levels
        .iter()
        .filter(|(factor, _)| **factor != figure.rows && !figure.pool.contains(factor) && !is_fixed(factor));
    let others: IndexMap<_, _> = others.map(|(factor, level)| (factor.clone(), level.clone())).collect();
    if others.is_empty() { "All cells".to_owned() } else { sentence(&others) }
}

/// The requests of all these cells as one distribution; cells without requests are skipped.
fn pooled(input: &Input, cells: &[usize]) -> Result<Boxed, NoRequests> {
    let mut counts = BTreeMap::<u64, u64>::new();
    let mut missing = None;
    for cell in cells {
        match (input.pooled)(*cell) {
            Ok(pooled) => {
                pooled.counts.into_iter().for_each(|(value, count)| *counts.entry(value).or_default() += count)
            }
            Err(why) => missing = missing.or(Some(why)),
        }
    }
    let counts: Vec<_> = counts.into_iter().collect();
    Boxed::of(&counts).ok_or_else(|| missing.unwrap_or(NoRequests::NoneSucceeded))
}

/// The columns of a plot in text.
pub(crate) const HEADER: [&str; 9] =
    ["", "requests", "smallest", "Q1", "median", "Q3", "largest", "outliers", "total time"];

/// How to read the figures.
pub(crate) const NOTE: &str = "Response times of single requests, pooled over trials; intervals and verdicts come from trials. \
    Outliers lie more than 1.5 times the interquartile range (Q3 − Q1) outside the box. Smallest and largest include outliers; the \
    whiskers exclude them. Total time is the length of the measured window: the median over trials, summed over pooled cells. \
    `(2 of 3)` marks a box with requests from 2 of its 3 cells.";

/// The width of a box in text, in characters.
const WIDTH: usize = 32;

impl Plot {
    /// The unit of its numbers.
    pub(crate) fn scale(&self) -> Scale {
        let boxes = self.rows.iter().filter_map(|row| row.requests.as_ref().ok());
        Scale::of(Unit::Nanoseconds, boxes.flat_map(|found| found.quartiles))
    }

    /// The rows as text: the columns of [`HEADER`], then the box without outliers.
    pub(crate) fn table(&self) -> Vec<Vec<String>> {
        let scale = self.scale();
        let extent = extent(self.rows.iter(), false);
        let with_unit = |value: f64| format!("{} {}", scale.number(value), scale.name);
        self.rows
            .iter()
            .map(|row| {
                let Ok(found) = &row.requests else {
                    let mut cells = vec![row.label.clone(), "0".to_owned()];
                    cells.resize(HEADER.len(), "–".to_owned());
                    cells.push(String::new());
                    return cells;
                };
                let [q1, median, q3] = found.quartiles;
                let mut cells = vec![row.label.clone(), found.count.to_string()];
                cells.extend([found.range.0, q1, median, q3, found.range.1].map(with_unit));
                cells.push(found.outlying().to_string());
                cells.push(
                    row.total
                        .map_or_else(|| "–".to_owned(), |total| crate::numbers::quantity(total, Unit::Nanoseconds)),
                );
                cells.push(extent.map_or_else(String::new, |extent| drawn(found, extent)));
                cells
            })
            .collect()
    }
}

/// The common interval of all boxes of a plot; `None` without boxes.
pub(crate) fn extent<'a>(rows: impl Iterator<Item = &'a Row>, outliers: bool) -> Option<(f64, f64)> {
    let extents = rows.filter_map(|row| Some(row.requests.as_ref().ok()?.extent(outliers)));
    extents.reduce(|(low, high), (other_low, other_high)| (low.min(other_low), high.max(other_high)))
}

/// A box in one line: `├──▒▒┃▒▒▒────┤`.
fn drawn(found: &Boxed, (low, high): (f64, f64)) -> String {
    let length = if high > low { high - low } else { 1.0 };
    let place = |value: f64| (((value - low) / length).clamp(0.0, 1.0) * (WIDTH - 1) as f64).round() as usize;
    let [q1, median, q3] = found.quartiles.map(place);
    let (from, to) = (place(found.whiskers.0), place(found.whiskers.1));
    let text: String = (0..WIDTH)
        .map(|at| match at {
            _ if at == median => '┃',
            _ if (q1..=q3).contains(&at) => '▒',
            _ if at == from => '├',
            _ if at == to => '┤',
            _ if (from..to).contains(&at) => '─',
            _ => ' ',
        })
        .collect();
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(values: &[u64]) -> Boxed {
        let counts: Vec<_> = values.iter().map(|value| (*value, 1)).collect();
        Boxed::of(&counts).unwrap()
    }

    #[test]
    fn quartiles_are_interpolated_and_outliers_are_beyond_one_and_a_half_boxes() {
        // numpy.quantile([1, 2, 4, 7, 11, 16, 22, 29, 37, 46, 200], [.25, .5, .75]) == [5.5, 16, 33]
        let found = boxed(&[1, 2, 4, 7, 11, 16, 22, 29, 37, 46, 200]);
        assert_eq!(found.quartiles, [5.5, 16.0, 33.0]);
        assert_eq!((found.whiskers, found.range), ((1.0, 46.0), (1.0, 200.0)));
        assert_eq!((found.outliers, found.count), (vec![(200, 1)], 11));
    }

    #[test]
    fn counted_values_are_the_same_as_repeated_ones() {
        let found = Boxed::of(&[(10, 5), (20, 4), (900, 2)]).unwrap();
        assert_eq!((found.quartiles, found.outlying(), found.count), ([10.0, 20.0, 20.0], 2, 11));
        assert_eq!(found.whiskers, (10.0, 20.0));
        assert_eq!(Boxed::of(&[]), None);
        let one = boxed(&[7]);
        assert_eq!((one.quartiles, one.whiskers, one.outlying()), ([7.0; 3], (7.0, 7.0), 0));
    }

    #[test]
    fn a_box_is_drawn_between_the_ends_of_its_plot() {
        let found = boxed(&[0, 10, 20, 30, 40]);
        let text = drawn(&found, (0.0, 62.0));
        assert_eq!(text, "├────▒▒▒▒▒┃▒▒▒▒▒────┤");
        assert_eq!(drawn(&boxed(&[5]), (5.0, 5.0)), "┃");
    }
}
