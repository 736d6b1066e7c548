//! The common drawing of charts that show a course: lines over numbered steps, such as the blocks of a run.

use wirelab_model::metric::Unit;

use crate::charts::Facet;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Canvas, Paint, draw};
use crate::charts::frame::{LETTER, WIDTH, tick_count};
use crate::numbers::Scale;

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 200.0;
const HEIGHT: f64 = 242.0;

/// Values that differ by more than this factor get a logarithmic axis.
const LINEAR: f64 = 3.0;

/// The largest number of points in the drawings of a chart, which bounds the size of the page.
const MOST_POINTS: usize = 600;

/// The distance between series, so that one interval does not hide the next.
const ASIDE: f64 = 2.5;

/// The course of one cell.
pub(crate) struct Line {
    pub series: usize,
    /// Ascending steps.
    pub points: Vec<Point>,
}

/// A value at a step.
pub(crate) struct Point {
    /// Counted from 1.
    pub step: u32,
    pub value: f64,
    /// The ends of a bar through the point; both are the value without a bar.
    pub spread: (f64, f64),
    pub facts: Vec<(&'static str, String)>,
}

/// Names of a drawing and its axes.
pub(crate) struct Names<'a> {
    /// The accessible title; of several drawings its beginning.
    pub drawing: String,
    pub steps: &'a str,
    pub values: &'a str,
}

/// Draws the lines, and a vertical line at each of `marks`; `None` without a point.
pub(crate) fn drawing(names: &Names, unit: Unit, lines: &[Line], marks: &[u32]) -> Option<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (first, last) = (points().map(|point| point.step).min()?, points().map(|point| point.step).max()?);
    let values = || points().flat_map(|point| [point.value, point.spread.0, point.spread.1]);
    let (lowest, highest) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let log = lowest > 0.0 && highest / lowest > LINEAR;
    let scale = Scale::of(unit, values());
    let y = if log { Axis::log(values(), BOTTOM, TOP) } else { Axis::linear(values(), BOTTOM, TOP) };
    let (ticks, name) = if log { (y.labelled(5, unit), "log scale") } else { (y.ticks(5, scale), scale.name) };
    let room = lines.len() as f64 * ASIDE + 4.0;
    let x = Axis::exact(f64::from(first), f64::from(last.max(first + 1)), LEFT + room, RIGHT - room);
    let every = (last - first) / tick_count(RIGHT - LEFT, 3) as u32 + 1;
    let title = format!("{} ({name})", names.values).replace(" ()", "");
    Some(draw(WIDTH, HEIGHT, &names.drawing, |canvas| {
        for (value, label) in ticks {
            canvas.line((LEFT, y.at(value)), (RIGHT, y.at(value)), Paint::Grid, 1.0);
            canvas.text(&label, (LEFT - 6.0, y.at(value)), Align::Right, Paint::Muted);
        }
        for step in (first..=last).step_by(every as usize) {
            canvas.tick(&step.to_string(), (x.at(f64::from(step)), BOTTOM + 12.0));
        }
        for mark in marks {
            // Between the last step before the change and the first one after it.
            let at = x.at(f64::from(*mark) - 0.5);
            canvas.line((at, TOP), (at, BOTTOM), Paint::Worse, 1.5);
        }
        canvas.line((LEFT, BOTTOM), (RIGHT, BOTTOM), Paint::Zero, 1.0);
        canvas.text(names.steps, (f64::midpoint(LEFT, RIGHT), HEIGHT - 10.0), Align::Middle, Paint::Ink);
        canvas.upright(&cut(&title), (9.0, f64::midpoint(TOP, BOTTOM)), Paint::Ink);
        for (number, line) in lines.iter().enumerate() {
            let aside = (number as f64 - (lines.len() as f64 - 1.0) / 2.0) * ASIDE;
            one(canvas, |step| x.at(f64::from(step)) + aside, &y, line);
        }
    }))
}

/// A drawing for each group of lines, by its title, until there are too many points; and a sentence for the caption if
/// groups are left out.
pub(crate) fn facets(groups: Vec<(String, Vec<Line>)>, names: &Names, unit: Unit) -> (Vec<Facet>, String) {
    let points = |lines: &[Line]| lines.iter().map(|line| line.points.len()).sum::<usize>();
    let groups: Vec<_> = groups.into_iter().filter(|(_, lines)| points(lines) > 0).collect();
    let mut room = MOST_POINTS;
    let fits = |(_, lines): &&(String, Vec<Line>)| {
        let left = room.checked_sub(points(lines));
        room = left.unwrap_or(0);
        left.is_some()
    };
    let drawn: Vec<_> = groups.iter().take_while(fits).collect();
    let facet = |(title, lines): &(String, Vec<Line>)| {
        let names = Names { drawing: format!("{} at {title}", names.drawing), ..*names };
        Some(Facet { title: title.clone(), svg: drawing(&names, unit, lines, &[])? })
    };
    let omitted = match groups.len() > drawn.len() {
        true => format!(" Only the first {} of {} groups of cells are drawn.", drawn.len(), groups.len()),
        false => String::new(),
    };
    (drawn.into_iter().filter_map(facet).collect(), omitted)
}

/// A title that is not longer than its axis.
fn cut(title: &str) -> String {
    let most = ((BOTTOM - TOP) / LETTER) as usize;
    let mut letters = title.chars();
    let begin: String = letters.by_ref().take(most).collect();
    if letters.next().is_none() { begin } else { begin + "…" }
}

fn one(canvas: &mut Canvas, x: impl Fn(u32) -> f64, y: &Axis, line: &Line) {
    let paint = Paint::Series(line.series);
    canvas.path(line.points.iter().map(|point| (x(point.step), y.at(point.value))), paint, 1.0);
    for point in &line.points {
        let across = x(point.step);
        let (low, high) = (y.at(point.spread.0), y.at(point.spread.1));
        if low != high {
            canvas.line((across, low), (across, high), paint, 1.5);
        }
        canvas.marker((across, y.at(point.value)), 3.0, line.series);
        canvas.tip((across, low), (across, high), &point.facts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f64]) -> Line {
        let point = |(step, value): (u32, &f64)| Point {
            step,
            value: *value,
            spread: (*value, *value),
            facts: vec![("value", value.to_string())],
        };
        Line { series: 0, points: (1..).zip(values).map(point).collect() }
    }

    fn drawn(lines: &[Line]) -> Option<String> {
        let names = Names { drawing: "course".to_owned(), steps: "block", values: "time" };
        drawing(&names, Unit::Nanoseconds, lines, &[2])
    }

    #[test]
    fn each_point_has_its_facts_and_large_differences_a_logarithmic_axis() {
        let svg = drawn(&[line(&[1e6, 2e6]), line(&[2e6])]).unwrap();
        assert_eq!(svg.matches("class=\"tip\"").count(), 3);
        assert!(svg.contains("time (ms)") && svg.contains("value: 2000000"), "{svg}");
        assert!(drawn(&[line(&[1e6, 4e6])]).unwrap().contains("time (log scale)"));
        assert_eq!(drawn(&[line(&[])]), None);
    }

    #[test]
    fn a_page_has_no_more_points_than_fit_and_the_caption_says_so() {
        let names = Names { drawing: "course".to_owned(), steps: "block", values: "time" };
        let group = |title: &str, count: usize| (title.to_owned(), vec![line(&vec![1e6; count])]);
        let (drawn, omitted) = facets(vec![group("a", 300), group("b", 300), group("c", 1)], &names, Unit::Nanoseconds);
        assert_eq!(drawn.iter().map(|facet| facet.title.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(omitted, " Only the first 2 of 3 groups of cells are drawn.");
        let (drawn, omitted) = facets(vec![group("a", 0), group("b", 9)], &names, Unit::Nanoseconds);
        assert_eq!((drawn.len(), omitted.as_str()), (1, ""));
    }

    #[test]
    fn a_long_course_has_few_ticks_and_one_step_has_one() {
        let ticks = |svg: &str| svg.matches("class=\"f-tick\"").count();
        let values: Vec<f64> = (1..=400).map(f64::from).collect();
        assert!((3..=16).contains(&ticks(&drawn(&[line(&values)]).unwrap())));
        assert!(drawn(&[line(&[5.0])]).unwrap().contains("class=\"tip\""));
    }
}
