//! The overview: every comparison in the first metric on one axis, small enough for the first screen.

use wirelab_model::metric::Unit;
use wirelab_stats::analysis::{Compared, Verdict};

use crate::Input;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Canvas, Paint, draw};
use crate::charts::forest::{Mark, ends, facts, legend, symbol, tone_paint};
use crate::charts::frame::{LETTER, WIDTH, tick_count};
use crate::charts::{Chart, Facet};
use crate::columns::is_waiting;
use crate::layout::Layout;
use crate::numbers::{Scale, change};
use crate::words::{Tone, margin, phrase, upper_first};

/// With more comparisons, a row is a level with a mark for each condition.
const ROWS: usize = 14;
const ROW: f64 = 21.0;
const HEADING: f64 = 18.0;
/// The height of a row with a mark for each condition.
const STRIP: f64 = 44.0;
const BOTTOM: f64 = 40.0;
const SIDE: f64 = 6.0;
/// The longest title of a row in characters.
const LONGEST: usize = 16;
/// The width of a change in words, such as `+120 %`.
const CHANGE: f64 = 52.0;

/// The overview; `None` if nothing was compared in the first metric.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let name = input.first_metric();
    let compared: Vec<_> = input.analysis.comparisons.iter().filter(|one| one.metric == name && !one.aa).collect();
    let first = *compared.first()?;
    let metric = input.metric(name);
    let title = upper_first(&metric.map_or_else(|| name.to_owned(), |metric| phrase(metric.title)));
    let baseline = layout.cell_title(first.baseline);
    let longest = layout.series.iter().map(|series| cut(&series.title).chars().count()).max().unwrap_or(0);
    let margin_share = input.manifest.study.compare.margin.0;
    let places = compared.iter().filter_map(|one| Some(ends(one, one.ratio?))).flat_map(|(low, high)| [low, high]);
    let places = places.chain([0.9, 1.0 / (1.0 + margin_share), 1.0 + margin_share, 1.1]);
    let axis = Axis::log(places, SIDE + longest as f64 * LETTER + 12.0, WIDTH - SIDE - CHANGE);
    let plot = Plot { input, layout, axis, name: format!("{title} as a ratio to {baseline}") };
    let waiting = metric.is_some_and(is_waiting);
    let (svg, how) = if compared.len() <= ROWS {
        (plot.rows(waiting), "Each mark is the ratio of medians under one condition, with its interval.")
    } else {
        (plot.strips(waiting), "Each mark is the ratio of medians under one condition; its row is the level.")
    };
    Some(Chart {
        id: "overview".to_owned(),
        title: format!("{title}: ratio to {baseline}"),
        caption: how.to_owned(),
        legend: legend(waiting, &margin(input), false),
        facets: vec![Facet { title: String::new(), svg }],
        without_outliers: Vec::new(),
    })
}

struct Plot<'a> {
    input: &'a Input<'a>,
    layout: &'a Layout,
    axis: Axis,
    name: String,
}

impl<'a> Plot<'a> {
    /// A row for each comparison, below a heading for each condition.
    fn rows(&self, waiting: bool) -> String {
        let groups = self.layout.groups.iter().map(|group| {
            let compared = group.rows.iter().filter(|row| !row.twin).filter_map(|row| self.compared(row.cell));
            (group.title(), compared.collect::<Vec<_>>())
        });
        let groups: Vec<_> = groups.filter(|(_, compared)| !compared.is_empty()).collect();
        let mut height = 0.0;
        let mut bands = Vec::new();
        for (_, compared) in &groups {
            let rows = compared.len() as f64 * ROW;
            bands.push((height + HEADING, height + HEADING + rows));
            height += HEADING + rows;
        }
        self.draw(height, &bands, waiting, |canvas| {
            let mut top = 0.0;
            for (title, compared) in &groups {
                canvas.text(title, (SIDE, top + HEADING / 2.0 + 1.0), Align::Left, Paint::Muted);
                top += HEADING;
                for compared in compared {
                    let middle = top + ROW / 2.0;
                    let title = cut(&self.layout.cell_title(compared.cell));
                    canvas.text(&title, (SIDE + 6.0, middle), Align::Left, Paint::Ink);
                    let shown = compared.ratio.map_or_else(|| "n/m".to_owned(), change);
                    canvas.text(&shown, (WIDTH - SIDE, middle), Align::Right, Paint::Ink);
                    self.mark(canvas, middle, compared, true);
                    top += ROW;
                }
            }
        })
    }

    /// A row for each level, with a mark for each condition.
    fn strips(&self, waiting: bool) -> String {
        let rows = self.layout.series.iter().enumerate().map(|(series, of)| {
            let rows = self.layout.groups.iter().flat_map(|group| &group.rows);
            let rows = rows.filter(|row| row.series == series && !row.twin);
            (of, rows.filter_map(|row| self.compared(row.cell)).collect::<Vec<_>>())
        });
        let rows: Vec<_> = rows.filter(|(_, compared)| !compared.is_empty()).collect();
        let height = rows.len() as f64 * STRIP;
        self.draw(height, &[(0.0, height)], waiting, |canvas| {
            for (number, (series, compared)) in rows.iter().enumerate() {
                let middle = (number as f64 + 0.5) * STRIP;
                canvas.text(&cut(&series.title), (SIDE, middle), Align::Left, Paint::Ink);
                for (at, text) in self.numbers(compared).into_iter().enumerate() {
                    canvas.text(&text, (WIDTH - SIDE, middle + (at as f64 - 1.0) * 14.0), Align::Right, Paint::Ink);
                }
                for (place, compared) in compared.iter().enumerate() {
                    // Neighbouring conditions lie on different lines, so that their marks seldom hide each other.
                    let y = middle + (place % 5) as f64 * 7.0 - 14.0;
                    self.mark(canvas, y, compared, false);
                }
            }
        })
    }

    /// `8 ▼`, `2 ▲` and the number of other conditions of a level.
    fn numbers(&self, compared: &[&Compared]) -> [String; 3] {
        let number = |is: fn(&Verdict) -> bool| compared.iter().filter(|one| is(&one.verdict)).count();
        let less = number(|verdict| matches!(verdict, Verdict::Less));
        let more = number(|verdict| matches!(verdict, Verdict::More));
        [format!("{less} ▼"), format!("{more} ▲"), format!("{} ○", compared.len() - less - more)]
    }

    fn compared(&self, cell: usize) -> Option<&'a Compared> {
        self.input.compared(cell, self.input.first_metric())
    }

    /// Draws the axis and the marks. The grid stays in bands without headings, which would be hard to read over it.
    fn draw(&self, height: f64, bands: &[(f64, f64)], waiting: bool, marks: impl FnOnce(&mut Canvas)) -> String {
        draw(WIDTH, height + BOTTOM, &self.name, |canvas| {
            let margin = self.input.manifest.study.compare.margin.0;
            let (left, right) = (self.axis.at(1.0 / (1.0 + margin)), self.axis.at(1.0 + margin));
            let (from, to) = (self.axis.at(0.0), self.axis.at(f64::MAX));
            let ticks = self.axis.ticks(tick_count(to - from, 4), Scale::of(Unit::Count, [1.0]));
            for (top, bottom) in bands {
                canvas.rect((left, *top), (right, *bottom), Paint::Margin);
                for (value, _) in &ticks {
                    canvas.line((self.axis.at(*value), *top), (self.axis.at(*value), *bottom), Paint::Grid, 1.0);
                }
                canvas.line((self.axis.at(1.0), *top), (self.axis.at(1.0), *bottom), Paint::Zero, 1.5);
            }
            for (value, label) in &ticks {
                canvas.tick(label, (self.axis.at(*value), height + 12.0));
            }
            let (less, more) = if waiting { ("← faster", "slower →") } else { ("← lower", "higher →") };
            canvas.text(less, (from, height + 29.0), Align::Left, Paint::Ink);
            canvas.text(more, (to, height + 29.0), Align::Right, Paint::Ink);
            marks(canvas);
        })
    }

    fn mark(&self, canvas: &mut Canvas, y: f64, compared: &Compared, with_interval: bool) {
        let Some(ratio) = compared.ratio else { return };
        let paint = tone_paint(Tone::of(&compared.verdict, self.input.metric(&compared.metric)));
        let (low, high) = if with_interval { ends(compared, ratio) } else { (ratio, ratio) };
        let (low, high) = (self.axis.at(low), self.axis.at(high));
        if with_interval {
            canvas.line((low, y), (high, y), paint, 2.0);
        }
        symbol(canvas, (self.axis.at(ratio), y), Mark::of(&compared.verdict, paint));
        canvas.tip((low, y), (high, y), &facts(self.input, self.layout, compared));
    }
}

fn cut(title: &str) -> String {
    if title.chars().count() <= LONGEST {
        title.to_owned()
    } else {
        title.chars().take(LONGEST - 1).chain(['…']).collect()
    }
}
