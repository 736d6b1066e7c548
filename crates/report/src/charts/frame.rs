//! The common frame of charts with one row per cell: labels on the left, a horizontal axis below, the marks between.

use crate::charts::canvas::{Align, Canvas, Paint, draw};

/// The height of a row.
pub(crate) const ROW: f64 = 30.0;
/// The width of a facet; three facets beside each other fill the page.
pub(crate) const WIDTH: f64 = 372.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 40.0;
/// The average width of a letter of the text.
pub(crate) const LETTER: f64 = 6.3;
/// The longest label in characters. Longer labels are cut; the tables show them in full.
const LONGEST: usize = 22;

/// The area of the marks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The left end of the axis.
    pub left: f64,
    /// Its right end.
    pub right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    /// A frame for rows with these labels, with `margin` for numbers to the right of the axis.
    pub(crate) fn new(labels: &[String], margin: f64) -> Self {
        let longest = labels.iter().map(|label| cut(label).chars().count()).max().unwrap_or(0);
        let left = (longest as f64 * LETTER + 14.0).max(40.0);
        let bottom = TOP + labels.len() as f64 * ROW;
        Self { left, right: WIDTH - margin.max(14.0), top: TOP, bottom }
    }

    /// The middle of a row.
    pub(crate) fn row(&self, number: usize) -> f64 {
        self.top + (number as f64 + 0.5) * ROW
    }

    /// Draws labels, grid and axis, and then the marks.
    pub(crate) fn draw(
        &self,
        name: &str,
        labels: &[String],
        ticks: &[(f64, String)],
        title: &str,
        marks: impl FnOnce(&mut Canvas),
    ) -> String {
        draw(WIDTH, self.bottom + BOTTOM, name, |canvas| {
            for (x, label) in ticks {
                canvas.line((*x, self.top), (*x, self.bottom), Paint::Grid, 1.0);
                canvas.tick(label, (*x, self.bottom + 11.0));
            }
            marks(canvas);
            canvas.line((self.left, self.bottom), (self.right, self.bottom), Paint::Zero, 1.0);
            let middle = f64::midpoint(self.left, self.right);
            canvas.text(title, (middle, self.bottom + 29.0), Align::Middle, Paint::Ink);
            for (number, label) in labels.iter().enumerate() {
                canvas.text(&cut(label), (self.left - 8.0, self.row(number)), Align::Right, Paint::Ink);
            }
        })
    }

    /// A band over the whole height, between two places of the axis.
    pub(crate) fn band(&self, canvas: &mut Canvas, from: f64, to: f64, paint: Paint) {
        canvas.rect((from, self.top), (to.max(from + 1.0), self.bottom), paint);
    }

    /// Writes words in place of a missing mark.
    pub(crate) fn missing(&self, canvas: &mut Canvas, number: usize, words: &str) {
        canvas.text(words, (self.left + 6.0, self.row(number)), Align::Left, Paint::Muted);
    }
}

/// The number of ticks that fit an axis of this length with labels of this many letters.
pub(crate) fn tick_count(length: f64, letters: usize) -> usize {
    ((length / (letters as f64 * LETTER + 14.0)) as usize).clamp(2, 8)
}

fn cut(label: &str) -> String {
    if label.chars().count() <= LONGEST {
        label.to_owned()
    } else {
        label.chars().take(LONGEST - 1).chain(['…']).collect()
    }
}
