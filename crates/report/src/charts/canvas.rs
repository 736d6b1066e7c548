//! A drawing surface over the SVG backend of `plotters`. Colours are CSS classes of the page, so that one drawing
//! serves light, dark and print.

use std::fmt::Write as _;

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, IntoFont, RGBColor, ShapeStyle, TextStyle};

/// Backend pixels per unit of the drawing. The backend has whole pixels only, and half a unit is visible.
const FINE: f64 = 2.0;

/// The backend divides font sizes by this factor to convert a height into an em.
const EM: f64 = 1.24;

/// A colour. The page's style sheet has a `.f-…` (fill) and an `.s-…` (stroke) class for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Text and marks.
    Ink,
    /// Less important text.
    Muted,
    /// The labels of a horizontal axis.
    Tick,
    /// Lines of the grid.
    Grid,
    /// The line of the baseline or of no difference.
    Zero,
    /// The margin of equivalence.
    Margin,
    /// The noise floor.
    Noise,
    /// The first of two quantities: the client.
    First,
    /// The second of two quantities: the server.
    Second,
    Box,
    /// A single trial.
    Dot,
    /// A verdict's tone.
    Better,
    /// A verdict's tone.
    Worse,
    /// A verdict's tone.
    Same,
    /// A verdict's tone.
    Unknown,
    /// A series, by its number; twelve are distinct.
    Series(usize),
}

/// The number of series with distinct colour, dash and marker.
pub(crate) const SERIES: usize = 12;

const NAMED: [(Paint, &str); 15] = [
    (Paint::Ink, "ink"),
    (Paint::Muted, "muted"),
    (Paint::Tick, "tick"),
    (Paint::Grid, "grid"),
    (Paint::Zero, "zero"),
    (Paint::Margin, "margin"),
    (Paint::Noise, "noise"),
    (Paint::First, "first"),
    (Paint::Second, "second"),
    (Paint::Box, "box"),
    (Paint::Dot, "dot"),
    (Paint::Better, "better"),
    (Paint::Worse, "worse"),
    (Paint::Same, "same"),
    (Paint::Unknown, "unknown"),
];

impl Paint {
    /// A unique colour that stands for the paint until the drawing is finished.
    fn sentinel(self) -> RGBColor {
        let number = match self {
            Self::Series(series) => NAMED.len() + series % SERIES,
            named => NAMED.iter().position(|(paint, _)| *paint == named).unwrap_or(0),
        };
        RGBColor(0xFE, 0xED, number as u8)
    }
}

/// The position of a text relative to its point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Align {
    Left,
    Middle,
    Right,
}

/// A drawing surface; its units are pixels at the intended size.
pub(crate) struct Canvas<'a> {
    backend: SVGBackend<'a>,
    width: f64,
    /// The marks' areas with their facts, as SVG elements above the drawing.
    tips: String,
}

/// The size of text in a drawing.
pub(crate) const TEXT: f64 = 12.0;

/// The width of a digit in the widest of the common typefaces.
const DIGIT: f64 = 0.64 * TEXT;

/// Draws an SVG element. `name` is its accessible title.
pub(crate) fn draw(width: f64, height: f64, name: &str, paint: impl FnOnce(&mut Canvas)) -> String {
    let mut svg = String::new();
    let backend = SVGBackend::with_string(&mut svg, (fine(width) as u32, fine(height) as u32));
    let mut canvas = Canvas { backend, width, tips: String::new() };
    paint(&mut canvas);
    canvas.backend.present().expect("drawing into a string cannot fail");
    let tips = std::mem::take(&mut canvas.tips);
    drop(canvas);
    finished(&svg, &tips, width, height, name)
}

fn fine(value: f64) -> i32 {
    (value * FINE).round() as i32
}

fn point((x, y): (f64, f64)) -> (i32, i32) {
    (fine(x), fine(y))
}

impl Canvas<'_> {
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), paint: Paint, width: f64) {
        let style = stroke(paint, width);
        self.backend.draw_line(point(from), point(to), &style).expect("drawing into a string cannot fail");
    }

    /// A line through points. A point on the same pixel as its predecessor is skipped.
    pub(crate) fn path(&mut self, points: impl IntoIterator<Item = (f64, f64)>, paint: Paint, width: f64) {
        let mut pixels: Vec<_> = points.into_iter().map(point).collect();
        pixels.dedup();
        self.backend.draw_path(pixels, &stroke(paint, width)).expect("drawing into a string cannot fail");
    }

    pub(crate) fn area(&mut self, points: impl IntoIterator<Item = (f64, f64)>, paint: Paint) {
        let pixels: Vec<_> = points.into_iter().map(point).collect();
        self.backend.fill_polygon(pixels, &paint.sentinel()).expect("drawing into a string cannot fail");
    }

    /// A filled rectangle between two corners.
    pub(crate) fn rect(&mut self, (x0, y0): (f64, f64), (x1, y1): (f64, f64), paint: Paint) {
        let corners = (point((x0.min(x1), y0.min(y1))), point((x0.max(x1), y0.max(y1))));
        self.backend
            .draw_rect(corners.0, corners.1, &paint.sentinel(), true)
            .expect("drawing into a string cannot fail");
    }

    pub(crate) fn outline(&mut self, from: (f64, f64), to: (f64, f64), paint: Paint) {
        let (a, b) = (point(from), point(to));
        let corners = [(a.0, a.1), (b.0, a.1), (b.0, b.1), (a.0, b.1), (a.0, a.1)];
        self.backend.draw_path(corners, &stroke(paint, 1.0)).expect("drawing into a string cannot fail");
    }

    pub(crate) fn dot(&mut self, at: (f64, f64), radius: f64, paint: Paint) {
        let radius = fine(radius).max(1) as u32;
        self.backend
            .draw_circle(point(at), radius, &paint.sentinel(), true)
            .expect("drawing into a string cannot fail");
    }

    pub(crate) fn ring(&mut self, at: (f64, f64), radius: f64, paint: Paint) {
        let radius = fine(radius).max(1) as u32;
        self.backend
            .draw_circle(point(at), radius, &stroke(paint, 1.5), false)
            .expect("drawing into a string cannot fail");
    }

    /// A marker; its shape and its colour identify the series.
    pub(crate) fn marker(&mut self, (x, y): (f64, f64), r: f64, series: usize) {
        let paint = Paint::Series(series);
        match series % 6 {
            0 => self.dot((x, y), r, paint),
            1 => self.rect((x - r, y - r), (x + r, y + r), paint),
            2 => self.area([(x, y - r * 1.2), (x + r * 1.15, y + r), (x - r * 1.15, y + r)], paint),
            3 => self.area([(x, y - r * 1.35), (x + r * 1.35, y), (x, y + r * 1.35), (x - r * 1.35, y)], paint),
            4 => self.area([(x, y + r * 1.2), (x + r * 1.15, y - r), (x - r * 1.15, y - r)], paint),
            _ => self.ring((x, y), r, paint),
        }
    }

    /// The exact values behind a mark, which the page shows while the pointer is in the area, and exports as a row of
    /// CSV. An area is at least as large as a fingertip's error.
    pub(crate) fn tip(&mut self, from: (f64, f64), to: (f64, f64), facts: &[(&str, String)]) {
        const LEAST: f64 = 12.0;
        let ends = |one: f64, other: f64| {
            let (middle, half) = (f64::midpoint(one, other), (other - one).abs().max(LEAST) / 2.0);
            (middle - half, middle + half)
        };
        let ((left, right), (top, bottom)) = (ends(from.0, to.0), ends(from.1, to.1));
        self.exact_tip((left, top), (right, bottom), facts);
    }

    /// A [`Self::tip`] over exactly this area, for marks so close to each other that larger areas would overlap.
    pub(crate) fn exact_tip(&mut self, (left, top): (f64, f64), (right, bottom): (f64, f64), facts: &[(&str, String)]) {
        let lines: Vec<_> = facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let _ = write!(
            self.tips,
            "<rect class=\"tip\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
            fine(left),
            fine(top),
            fine(right - left),
            fine(bottom - top),
            escaped(&lines.join("\n"))
        );
    }

    pub(crate) fn text(&mut self, text: &str, at: (f64, f64), align: Align, paint: Paint) {
        self.sized(text, at, align, paint, TEXT, false);
    }

    /// The label below a tick of a horizontal axis, shifted if the drawing's edge would cut it off.
    pub(crate) fn tick(&mut self, label: &str, (x, y): (f64, f64)) {
        let half = (label.chars().count() as f64 * DIGIT / 2.0).min(self.width / 2.0);
        self.text(label, (x.clamp(half, self.width - half), y), Align::Middle, Paint::Tick);
    }

    /// A vertical text, centred at a point: the title of a vertical axis.
    pub(crate) fn upright(&mut self, text: &str, at: (f64, f64), paint: Paint) {
        self.sized(text, at, Align::Middle, paint, TEXT, true);
    }

    fn sized(&mut self, text: &str, at: (f64, f64), align: Align, paint: Paint, size: f64, upright: bool) {
        let horizontal = match align {
            Align::Left => HPos::Left,
            Align::Middle => HPos::Center,
            Align::Right => HPos::Right,
        };
        let mut font = ("sans-serif", size * EM * FINE).into_font();
        if upright {
            font = font.transform(FontTransform::Rotate270);
        }
        let colour = paint.sentinel();
        let style = TextStyle::from(font).color(&colour).pos(Pos::new(horizontal, VPos::Center));
        self.backend.draw_text(text, &style, point(at)).expect("drawing into a string cannot fail");
    }
}

fn stroke(paint: Paint, width: f64) -> ShapeStyle {
    ShapeStyle { color: paint.sentinel().to_rgba(), filled: false, stroke_width: (width * FINE).round() as u32 }
}

/// Converts the backend's document into an element of the page: classes for sentinel colours, no fixed size, no
/// defaults.
fn finished(svg: &str, tips: &str, width: f64, height: f64, name: &str) -> String {
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let mut body = body
        .trim_end()
        .trim_end_matches("</svg>")
        .replace(" opacity=\"1\"", "")
        .replace(" fill=\"none\"", "")
        .replace(" stroke=\"none\"", "")
        .replace(" font-family=\"sans-serif\"", "")
        .replace(" \"", "\"")
        .replace("\n", "");
    for series in 0..SERIES {
        body = named(&body, Paint::Series(series), &format!("c{series}"));
    }
    for (paint, class) in NAMED {
        body = named(&body, paint, class);
    }
    format!(
        "<svg viewBox=\"0 0 {} {}\" style=\"max-width:{width}px\" role=\"img\"><title>{}</title>{body}{tips}</svg>",
        fine(width),
        fine(height),
        escaped(name)
    )
}

fn named(body: &str, paint: Paint, class: &str) -> String {
    let RGBColor(r, g, b) = paint.sentinel();
    body.replace(&format!("fill=\"#{r:02X}{g:02X}{b:02X}\""), &format!("class=\"f-{class}\""))
        .replace(&format!("stroke=\"#{r:02X}{g:02X}{b:02X}\""), &format!("class=\"s-{class}\""))
}

/// Escapes a text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_names_its_colours_and_scales_with_the_page() {
        let svg = draw(200.0, 100.0, "a < b", |canvas| {
            canvas.line((0.0, 0.0), (10.5, 10.0), Paint::Series(3), 1.0);
            canvas.text("5 & 6", (1.0, 1.0), Align::Left, Paint::Ink);
        });
        assert!(svg.starts_with("<svg viewBox=\"0 0 400 200\""), "{svg}");
        assert!(svg.contains("<title>a &lt; b</title>") && svg.contains("5 &amp; 6"), "{svg}");
        assert!(
            svg.contains("class=\"s-c3\"") && svg.contains("class=\"f-ink\"") && svg.contains("x2=\"21\""),
            "{svg}"
        );
        assert!(!svg.contains("#FEED") && !svg.contains("http"), "{svg}");
    }

    #[test]
    fn a_tip_covers_its_mark_and_lists_its_facts() {
        let svg = draw(200.0, 100.0, "tips", |canvas| {
            canvas.tip((50.0, 20.0), (90.0, 20.0), &[("cell", "a & b".to_owned()), ("ratio", "1.25".to_owned())]);
        });
        let tip = "<rect class=\"tip\" x=\"100\" y=\"28\" width=\"80\" height=\"24\"><title>cell: a &amp; b\nratio: 1.25</title>";
        assert!(svg.contains(tip) && svg.ends_with("</rect></svg>"), "{svg}");
    }

    #[test]
    fn labels_of_ticks_are_not_cut_off_by_the_edges() {
        let place = |x: f64| -> f64 {
            let svg = draw(200.0, 100.0, "ticks", |canvas| canvas.tick("1.4", (x, 50.0)));
            let (_, place) = svg.split_once("<text x=\"").unwrap();
            place.split_once('"').unwrap().0.parse::<f64>().unwrap() / FINE
        };
        let half = 1.5 * DIGIT;
        assert_eq!(place(100.0), 100.0);
        assert!((place(199.0) - (200.0 - half)).abs() <= 0.5, "{}", place(199.0));
        assert!((place(1.0) - half).abs() <= 0.5, "{}", place(1.0));
    }
}
