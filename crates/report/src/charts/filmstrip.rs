//! Filmstrips: the browser's window while a page loads, with the versions below each other.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wirelab_model::film::Film;
use wirelab_model::metric::{Quantity, Unit};

use crate::Input;
use crate::charts::canvas::{Align, Canvas, Paint, draw};
use crate::charts::{Chart, Facet};
use crate::layout::{Group, Layout};

/// The largest number of moments in a row, and thus of pictures of a film.
const MOST: usize = 10;

/// The distance between moments in nanoseconds, or a divisor of it.
const STEP: f64 = 100e6;

/// The largest number of groups with a filmstrip; each picture takes about ten kilobytes of the page.
const MOST_GROUPS: usize = 12;

const WIDTH: f64 = 112.0;
const HEIGHT: f64 = 70.0;
const GAP: f64 = 6.0;
const FRAME: f64 = 1.5;
const HEAD: f64 = 20.0;
const LABEL: f64 = 20.0;

/// A version's title, its film, and the pictures as JPEG.
type Row = (String, Film, Vec<Vec<u8>>);

/// A filmstrip of each filmed group of cells, in the order of the study.
pub(crate) fn charts(input: &Input, layout: &Layout) -> Vec<Chart> {
    let groups = layout.groups.iter().enumerate();
    groups.filter_map(|(number, group)| chart(input, layout, number, group)).take(MOST_GROUPS).collect()
}

fn chart(input: &Input, layout: &Layout, number: usize, group: &Group) -> Option<Chart> {
    let rows = group.rows.iter().filter(|row| !row.twin);
    let films = rows.filter_map(|row| {
        let (film, pictures) = (input.typical_film)(row.cell)?;
        Some((layout.row_title(*row), film, pictures))
    });
    let films: Vec<Row> = films.filter(|(_, film, pictures)| film.pictures.len() == pictures.len()).collect();
    let longest = films.iter().map(|(_, film, _)| film.complete_ns).reduce(f64::max)?;
    Some(Chart {
        id: format!("filmstrip-{number}"),
        title: format!("Filmstrip of a load: {}", group.title()),
        caption: "Pictures in a column show the window at the same time since the start of the navigation. Each film is one load of the \
                  trial with the cell's median Speed Index. Filming slows loads down, so films are comparable with each other only. \
                  Chromium delivers every drawn frame; Firefox is asked for a picture every 100 ms."
            .to_owned(),
        legend: Vec::new(),
        facets: vec![Facet {
            title: "A frame marks a change since the previous moment".to_owned(),
            svg: strips(number, &films, &moments(longest)),
        }],
        without_outliers: Vec::new(),
    })
}

/// The shown moments, up to the first at which every window is complete.
fn moments(longest: f64) -> Vec<f64> {
    let step = STEP * (longest / STEP / (MOST - 1) as f64).ceil().max(1.0);
    (0..MOST).map(|number| number as f64 * step).take_while(|at| *at < longest + step).collect()
}

/// The picture in the window at a moment; `None` before the first picture.
fn shown(film: &Film, at: f64) -> Option<usize> {
    film.pictures.iter().rposition(|picture| picture.at_ns <= at)
}

fn strips(number: usize, films: &[Row], moments: &[f64]) -> String {
    let height = HEAD + films.len() as f64 * (LABEL + HEIGHT + GAP);
    // The width is fixed, so that few pictures are not drawn large.
    let width = MOST as f64 * (WIDTH + GAP);
    let titles: Vec<_> = films.iter().map(|(title, ..)| title.as_str()).collect();
    let name = format!("Filmstrips of a load by {}", titles.join(", "));
    let mut images = String::new();
    let drawn = draw(width, height, &name, |canvas| {
        for (column, at) in moments.iter().enumerate() {
            let words = if column == 0 { "start".to_owned() } else { Quantity(*at, Unit::Nanoseconds).to_string() };
            canvas.text(&words, (left(column) + WIDTH / 2.0, HEAD / 2.0), Align::Middle, Paint::Muted);
        }
        for (row, film) in films.iter().enumerate() {
            let top = HEAD + row as f64 * (LABEL + HEIGHT + GAP);
            strip(canvas, &mut images, (&format!("film-{number}-{row}"), top), film, moments);
        }
    });
    let drawn = drawn.replacen("<svg ", "<svg class=\"film\" ", 1);
    drawn.replacen("</svg>", &format!("{images}</svg>"), 1)
}

/// Draws the label and the frames of a film, and adds each of its pictures once.
fn strip(
    canvas: &mut Canvas,
    images: &mut String,
    (id, top): (&str, f64),
    (title, film, jpegs): &Row,
    moments: &[f64],
) {
    let time = |ns| Quantity(ns, Unit::Nanoseconds).to_string();
    let label =
        format!("{title}: Speed Index {}, complete after {}", time(film.speed_index_ns), time(film.complete_ns));
    canvas.text(&label, (0.0, top + LABEL / 2.0), Align::Left, Paint::Ink);
    let facts = [
        ("version", title.clone()),
        ("Speed Index (ns)", film.speed_index_ns.to_string()),
        ("complete (ns)", film.complete_ns.to_string()),
        ("n (pictures)", film.pictures.len().to_string()),
    ];
    canvas.exact_tip((0.0, top), (left(MOST), top + LABEL), &facts);
    let top = top + LABEL;
    let mut last: Option<(usize, usize)> = None;
    for (column, at) in moments.iter().enumerate() {
        let Some(picture) = shown(film, *at) else { continue };
        let corner = (left(column), top);
        let first = last.filter(|(shown, _)| *shown == picture).map(|(_, column)| column);
        if let Some(first) = first {
            let _ = write!(images, "<use href=\"#{id}-{picture}\" x=\"{}\"/>", units(left(column) - left(first)));
        } else {
            let _ = write!(
                images,
                "<image id=\"{id}-{picture}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" href=\"data:image/jpeg;base64,{}\"/>",
                units(corner.0),
                units(corner.1),
                units(WIDTH),
                units(HEIGHT),
                STANDARD.encode(&jpegs[picture])
            );
            last = Some((picture, column));
        }
        let paint = if first.is_none() { Paint::First } else { Paint::Grid };
        // The picture covers the rectangle except for a margin, the frame.
        let (x, y) = corner;
        canvas.rect((x - FRAME, y - FRAME), (x + WIDTH + FRAME, y + HEIGHT + FRAME), paint);
    }
}

fn left(column: usize) -> f64 {
    GAP / 2.0 + column as f64 * (WIDTH + GAP)
}

/// A length in the units of the SVG, which are half a pixel.
fn units(value: f64) -> f64 {
    value * 2.0
}

#[cfg(test)]
mod tests {
    use wirelab_model::film::Picture;

    use super::*;

    fn film(at_ms: &[f64]) -> Film {
        let picture = |at: &f64| Picture { at_ns: at * 1e6, progress: 0.5, file: String::new() };
        let complete_ns = at_ms.last().unwrap() * 1e6;
        Film { speed_index_ns: 150e6, complete_ns, pictures: at_ms.iter().map(picture).collect() }
    }

    #[test]
    fn moments_reach_to_the_end_and_are_never_too_many() {
        assert_eq!(moments(0.0), [0.0]);
        assert_eq!(moments(250e6), [0.0, 100e6, 200e6, 300e6]);
        for longest in [2300e6, 2301e6, 12_345e6, 60_000e6] {
            let moments = moments(longest);
            assert!(moments.len() <= MOST && *moments.last().unwrap() >= longest, "{longest}: {moments:?}");
        }
    }

    #[test]
    fn a_picture_is_in_the_page_once_however_long_it_is_shown() {
        let rows = [("HTTP/2".to_owned(), film(&[0.0, 150.0]), vec![vec![1], vec![2]])];
        let svg = strips(4, &rows, &moments(300e6));
        assert_eq!((svg.matches("<image ").count(), svg.matches("<use ").count()), (2, 2), "{svg}");
        assert!(svg.contains("href=\"#film-4-0-0\"") && svg.contains("href=\"#film-4-0-1\""), "{svg}");
        assert_eq!((svg.matches("f-first").count(), svg.matches("f-grid").count()), (2, 2), "what changed is framed");
        assert!(svg.contains("HTTP/2: Speed Index 150 ms, complete after 150 ms"), "{svg}");
        assert!(svg.starts_with("<svg class=\"film\" viewBox=") && svg.ends_with("</svg>"), "{svg}");
    }

    #[test]
    fn before_the_first_picture_nothing_is_shown() {
        assert_eq!(shown(&film(&[120.0]), 100e6), None);
        assert_eq!(shown(&film(&[120.0, 180.0]), 200e6), Some(1));
    }
}
