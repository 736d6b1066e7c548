//! The filmstrips as a page: the pictures of every film at the same moments, one row per film.

use std::fmt::Write;

use wirelab_browser::film::{Film, Shot};

use super::filmstrip::{name, picture};
use super::loads::Cell;

/// The maximum number of moments in a row.
const MOST: usize = 24;

/// The interval of moments is a multiple of this, in milliseconds.
const STEP: f64 = 100.0;

const STYLE: &str = "
  :root { color-scheme: light dark; font: 15px/1.4 system-ui, sans-serif }
  body { margin: 1.5rem }
  .strips { overflow-x: auto }
  table { border-collapse: collapse }
  th { text-align: left; font-weight: normal; padding: 0 1rem 0 0; white-space: nowrap; vertical-align: middle }
  th b { display: block }
  thead th { padding: 0 2px; text-align: center }
  td { padding: 2px; vertical-align: middle }
  img { display: block; width: 160px; border: 1px solid GrayText }
  img.changed { border-color: Highlight; outline: 2px solid Highlight }
";

/// The page; its pictures are files beside it.
pub fn page(cells: &[Cell]) -> String {
    let films = || cells.iter().enumerate().filter_map(|(number, cell)| Some((number, cell, cell.film.as_ref()?)));
    let longest = films().filter_map(|(.., film)| film.as_ref().ok()).map(|film| film.complete).fold(0.0, f64::max);
    let moments = moments(longest);
    let mut rows = String::new();
    for (number, cell, film) in films() {
        let title = format!("{} {}", cell.setup.browser.title(), cell.setup.protocol.title());
        let url = escaped(cell.page.url.as_str());
        let _ = match film {
            Ok(film) => writeln!(
                rows,
                "<tr><th scope=\"row\"><b>{title}</b>{url}<br>Speed Index {:.0} ms, complete after {:.0} ms</th>{}</tr>",
                film.speed_index,
                film.complete,
                strip(&name(number, cell), film, &moments)
            ),
            Err(reason) => writeln!(
                rows,
                "<tr><th scope=\"row\"><b>{title}</b>{url}</th><td colspan=\"{}\">not measured: {}</td></tr>",
                moments.len(),
                escaped(&reason.to_string())
            ),
        };
    }
    let head: String = moments.iter().map(|at| format!("<th scope=\"col\">{at:.0} ms</th>")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Filmstrips</title><style>{STYLE}</style></head>\n\
         <body><h1>Filmstrips</h1>\n<p>What the window showed at each moment since the start of the navigation; framed is what had changed \
         since the moment before. One load of each, filmed, which makes loads longer: compare films with films only.</p>\n\
         <div class=\"strips\"><table><thead><tr><td></td>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div></body></html>\n"
    )
}

/// The moments to show, up to the one at which every window is complete.
fn moments(longest: f64) -> Vec<f64> {
    let step = STEP * (longest / STEP / (MOST - 1) as f64).ceil().max(1.0);
    (0..MOST).map(|number| number as f64 * step).take_while(|at| *at < longest + step).collect()
}

fn strip(folder: &str, film: &Film, moments: &[f64]) -> String {
    let mut cells = String::new();
    let mut last: Option<&Shot> = None;
    for at in moments {
        let shot = film.shots.iter().rfind(|shot| shot.at <= *at);
        let is_new = shot.map(|shot| shot.at) != last.map(|shot| shot.at);
        let _ = match shot {
            Some(shot) => write!(
                cells,
                "<td><img src=\"{folder}/{}\" alt=\"{:.0} % after {at:.0} ms\"{}></td>",
                picture(shot.at),
                shot.progress * 100.0,
                if is_new { " class=\"changed\"" } else { "" }
            ),
            None => write!(cells, "<td></td>"),
        };
        last = shot;
    }
    cells
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_reach_to_the_end_and_are_never_too_many() {
        assert_eq!(moments(0.0), [0.0]);
        assert_eq!(moments(250.0), [0.0, 100.0, 200.0, 300.0]);
        for longest in [2300.0, 2301.0, 12_345.0, 60_000.0] {
            let moments = moments(longest);
            assert!(moments.len() <= MOST && *moments.last().unwrap() >= longest, "{longest}: {moments:?}");
        }
    }

    #[test]
    fn a_strip_shows_the_newest_picture_at_each_moment() {
        let shot = |at, progress| Shot { at, progress, png: Vec::new() };
        let film = Film { speed_index: 120.0, complete: 150.0, shots: vec![shot(0.0, 0.0), shot(150.0, 1.0)] };
        let strip = strip("00-firefox-h2", &film, &[0.0, 100.0, 200.0]);
        let files: Vec<_> = strip.match_indices("src=\"").map(|(at, _)| &strip[at + 5..at + 29]).collect();
        assert_eq!(files, ["00-firefox-h2/000000.0ms", "00-firefox-h2/000000.0ms", "00-firefox-h2/000150.0ms"]);
        assert_eq!(strip.matches("class=\"changed\"").count(), 2);
    }
}
