//! The forest plot: the ratio of every cell to its baseline with interval, margin and noise floor.

use wirelab_model::metric::Better;
use wirelab_stats::analysis::{Compared, Interval, Verdict};

use crate::Input;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Canvas, Paint, draw};
use crate::charts::frame::{WIDTH, tick_count};
use crate::charts::{Chart, Facet, Key, swatch};
use crate::columns::is_waiting;
use crate::layout::{Group, Layout};
use crate::numbers::{Scale, change_with, share};
use crate::words::{Tone, direction, margin, noise_floor, phrase};

const ROW: f64 = 40.0;
const TOP: f64 = 4.0;
const BOTTOM: f64 = 42.0;
const SIDE: f64 = 8.0;

/// The forest plot of a metric; `None` if nothing was compared in it.
pub(crate) fn chart(input: &Input, layout: &Layout, metric: &str) -> Option<Chart> {
    let compared: Vec<_> = input.analysis.comparisons.iter().filter(|c| c.metric == metric).collect();
    let real: Vec<_> = compared.iter().copied().filter(|compared| !compared.aa).collect();
    let first = real.first().or_else(|| compared.first())?;
    let declared = input.metric(metric);
    let title = declared.map_or_else(|| metric.to_owned(), |metric| phrase(metric.title));
    let baseline = layout.cell_title(first.baseline);
    let margin_share = input.manifest.study.compare.margin.0;
    let ends = compared.iter().flat_map(|c| {
        let ends = [c.interval, c.noise_floor].into_iter().flatten().flat_map(|i| [i.low, i.high]);
        ends.chain(c.ratio).filter(|ratio| *ratio > 0.0)
    });
    let axis = Axis::log(ends.chain([0.8, 1.0 / (1.0 + margin_share), 1.0 + margin_share, 1.25]), SIDE, WIDTH - SIDE);
    let (left, right) = match declared {
        Some(metric) if is_waiting(metric) => ("faster", "slower"),
        _ => ("lower", "higher"),
    };
    let axis_title = [format!("← {left}"), format!("ratio to {baseline} (log scale)"), format!("{right} →")];
    let facets: Vec<_> = layout
        .groups
        .iter()
        .enumerate()
        .filter_map(|(number, group)| {
            let facet = FacetOf { input, layout, group, axis, axis_title: &axis_title, metric };
            let noise = noise_floor(input, layout, number, metric);
            facet.svg(noise).map(|svg| Facet { title: group.title(), svg })
        })
        .collect();
    let better = match declared.map(|metric| metric.better) {
        Some(Better::Higher) => "Right of 1 is better.",
        _ => "Left of 1 is better.",
    };
    // An imported table seldom has an A/A pair.
    let has_noise = input.table.is_none() || compared.iter().any(|compared| compared.aa);
    let noise = if has_noise { "The grey band is the A/A noise floor. " } else { "" };
    let counted = input.design().counted();
    Some(Chart {
        id: format!("forest-{metric}"),
        title: format!("{}, {}", crate::words::upper_first(&title), tally(input, &real, &baseline)),
        caption: format!(
            "Each mark is the ratio of medians to {baseline} at the same levels, with its bootstrap interval over {counted}. {better} Triangle: a difference beyond chance. Square: equivalent within the margin of ±{}. Ring: inconclusive or preliminary. {noise}All facets share one axis.",
            share(margin_share)
        ),
        legend: legend(declared.is_some_and(is_waiting), &margin(input), has_noise),
        facets,
        without_outliers: Vec::new(),
    })
}

/// The number of comparisons by verdict: `against HTTP/1.1: 3 slower, 1 equivalent`.
fn tally(input: &Input, compared: &[&Compared], baseline: &str) -> String {
    let metric = compared.first().and_then(|compared| input.metric(&compared.metric));
    let words: Vec<_> = ["faster", "slower", "lower", "higher", "equivalent", "inconclusive", "preliminary"]
        .into_iter()
        .map(|word| (word, compared.iter().filter(|compared| direction(&compared.verdict, metric) == word).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    if words.is_empty() {
        format!("{baseline} against itself")
    } else {
        format!("against {baseline}: {}", words.join(", "))
    }
}

pub(crate) fn legend(waiting: bool, margin: &str, has_noise: bool) -> Vec<Key> {
    let mark = |tone, text: &str| Key {
        svg: draw(22.0, 14.0, text, |canvas| symbol(canvas, (11.0, 7.0), tone)),
        text: text.to_owned(),
    };
    let (less, more) = if waiting { ("faster", "slower") } else { ("lower", "higher") };
    let mut keys = vec![
        mark(Mark::Less(Paint::Ink), less),
        mark(Mark::More(Paint::Ink), more),
        mark(Mark::Same, "equivalent"),
        mark(Mark::Unknown, "inconclusive or preliminary"),
        swatch(Paint::Margin, &format!("margin ±{margin}")),
    ];
    keys.extend(has_noise.then(|| swatch(Paint::Noise, "noise floor (A/A)")));
    keys
}

struct FacetOf<'a> {
    input: &'a Input<'a>,
    layout: &'a Layout,
    group: &'a Group,
    axis: Axis,
    axis_title: &'a [String; 3],
    metric: &'a str,
}

impl FacetOf<'_> {
    fn svg(&self, noise: Option<Interval>) -> Option<String> {
        let mut here: Vec<&Compared> = self
            .group
            .rows
            .iter()
            .flat_map(|row| {
                self.input.analysis.comparisons.iter().filter(|c| c.cell == row.cell && c.metric == self.metric)
            })
            .collect();
        if here.is_empty() {
            return None;
        }
        here.sort_by_key(|compared| compared.aa);
        let bottom = TOP + here.len() as f64 * ROW;
        let name = format!("Ratios of {} at {}", self.metric, self.group.title());
        Some(draw(WIDTH, bottom + BOTTOM, &name, |canvas| {
            let mut ticks = Vec::new();
            let count = tick_count(WIDTH - 2.0 * SIDE, 4);
            for (value, label) in self.axis.ticks(count, Scale::of(wirelab_model::metric::Unit::Count, [1.0])) {
                ticks.push(self.axis.at(value));
                canvas.tick(&label, (self.axis.at(value), bottom + 13.0));
            }
            let [less, middle, more] = self.axis_title;
            canvas.text(less, (SIDE, bottom + 30.0), Align::Left, Paint::Ink);
            canvas.text(middle, (WIDTH / 2.0, bottom + 30.0), Align::Middle, Paint::Ink);
            canvas.text(more, (WIDTH - SIDE, bottom + 30.0), Align::Right, Paint::Ink);
            for (number, compared) in here.into_iter().enumerate() {
                let top = TOP + number as f64 * ROW;
                self.ground(canvas, top, &ticks, noise);
                self.row(canvas, top, compared);
            }
        }))
    }

    /// Grid and bands of a row. They stay below its text, which would be hard to read over them.
    fn ground(&self, canvas: &mut Canvas, top: f64, ticks: &[f64], noise: Option<Interval>) {
        let (from, to) = (top + 18.0, top + ROW - 4.0);
        let margin = self.input.manifest.study.compare.margin.0;
        canvas.rect((self.axis.at(1.0 / (1.0 + margin)), from), (self.axis.at(1.0 + margin), to), Paint::Margin);
        if let Some(noise) = noise {
            canvas.rect((self.axis.at(noise.low), from), (self.axis.at(noise.high), to), Paint::Noise);
        }
        for x in ticks {
            canvas.line((*x, from), (*x, to), Paint::Grid, 1.0);
        }
        canvas.line((self.axis.at(1.0), from), (self.axis.at(1.0), to), Paint::Zero, 1.5);
        canvas.line((SIDE, to), (WIDTH - SIDE, to), Paint::Grid, 1.0);
    }

    /// The text of a row, and below it the interval with its mark over the whole width.
    fn row(&self, canvas: &mut Canvas, top: f64, compared: &Compared) {
        let title = self.layout.cell_title(compared.cell);
        let (text, y) = (top + 9.0, top + 26.0);
        canvas.text(&title, (SIDE, text), Align::Left, Paint::Ink);
        let Some(ratio) = compared.ratio else {
            canvas.text(crate::words::no_ratio(self.input, compared), (WIDTH - SIDE, text), Align::Right, Paint::Muted);
            return;
        };
        let tone = Tone::of(&compared.verdict, self.input.metric(self.metric));
        let paint = if compared.aa { Paint::Muted } else { tone_paint(tone) };
        if let Some(interval) = &compared.interval {
            let (low, high) = (self.axis.at(interval.low), self.axis.at(interval.high));
            canvas.line((low, y), (high, y), paint, 2.0);
            canvas.line((low, y - 4.0), (low, y + 4.0), paint, 1.5);
            canvas.line((high, y - 4.0), (high, y + 4.0), paint, 1.5);
        }
        let words = change_with(ratio, compared.interval.as_ref());
        canvas.text(&words, (WIDTH - SIDE, text), Align::Right, Paint::Ink);
        let mark = if compared.aa { Mark::Unknown } else { Mark::of(&compared.verdict, paint) };
        symbol(canvas, (self.axis.at(ratio), y), mark);
        let (low, high) = ends(compared, ratio);
        canvas.tip((self.axis.at(low), y), (self.axis.at(high), y), &facts(self.input, self.layout, compared));
    }
}

/// The ends of the interval; of the mark without an interval.
pub(super) fn ends(compared: &Compared, ratio: f64) -> (f64, f64) {
    compared.interval.map_or((ratio, ratio), |interval| (interval.low.min(ratio), interval.high.max(ratio)))
}

/// The exact numbers of a comparison.
pub(super) fn facts(input: &Input, layout: &Layout, compared: &Compared) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        (
            "cell",
            input.manifest.plan.cells.get(compared.cell).map_or_else(String::new, wirelab_model::plan::Cell::label),
        ),
        ("baseline", layout.cell_title(compared.baseline)),
        ("metric", compared.metric.clone()),
        ("ratio", compared.ratio.map_or_else(|| "not measured".to_owned(), |ratio| ratio.to_string())),
    ];
    if let Some(interval) = compared.interval {
        facts.push(("interval low", interval.low.to_string()));
        facts.push(("interval high", interval.high.to_string()));
        facts.push(("confidence", interval.confidence.to_string()));
    }
    facts.extend(compared.p_holm.map(|p| ("p (Holm)", p.to_string())));
    facts.push((if input.table.is_some() { "n" } else { "n (blocks)" }, compared.blocks.to_string()));
    let verdict = if compared.aa { "A/A" } else { direction(&compared.verdict, input.metric(&compared.metric)) };
    facts.push(("verdict", verdict.to_owned()));
    facts
}

pub(crate) const fn tone_paint(tone: Tone) -> Paint {
    match tone {
        Tone::Better => Paint::Better,
        Tone::Worse => Paint::Worse,
        Tone::Same => Paint::Same,
        Tone::Unknown => Paint::Unknown,
    }
}

/// The shape of a mark: the verdict for readers without colour.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    Less(Paint),
    More(Paint),
    Same,
    Unknown,
}

impl Mark {
    pub(crate) const fn of(verdict: &Verdict, paint: Paint) -> Self {
        match verdict {
            Verdict::Less => Self::Less(paint),
            Verdict::More => Self::More(paint),
            Verdict::Equivalent => Self::Same,
            Verdict::CannotTell { .. } => Self::Unknown,
        }
    }
}

pub(crate) fn symbol(canvas: &mut Canvas, (x, y): (f64, f64), mark: Mark) {
    match mark {
        Mark::Less(paint) => canvas.area([(x - 6.0, y), (x + 5.0, y - 6.0), (x + 5.0, y + 6.0)], paint),
        Mark::More(paint) => canvas.area([(x + 6.0, y), (x - 5.0, y - 6.0), (x - 5.0, y + 6.0)], paint),
        Mark::Same => canvas.rect((x - 4.5, y - 4.5), (x + 4.5, y + 4.5), Paint::Same),
        Mark::Unknown => canvas.ring((x, y), 4.5, Paint::Unknown),
    }
}
