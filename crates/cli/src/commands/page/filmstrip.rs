//! `--filmstrip`: one more load of each cell, with pictures of the window, after the measured loads.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use wirelab_browser::film::Film;

use super::loads::Cell;
use super::logs::new_folder;
use super::strip;
use crate::failure::{Failure, Result};

/// Creates the folder before the first load, because an unwritable folder found later would waste the loads.
pub fn create(folder: &Path) -> Result<PathBuf> {
    new_folder("--filmstrip", folder)?;
    Ok(folder.to_owned())
}

/// Writes the pictures, one folder per film, and `index.html` with all films side by side.
pub fn write(folder: &Path, cells: &[Cell]) -> Result {
    for (number, cell) in cells.iter().enumerate() {
        let Some(Ok(film)) = &cell.film else { continue };
        let name = name(number, cell);
        save(|| fs::create_dir(folder.join(&name)), folder)?;
        for shot in &film.shots {
            save(|| fs::write(folder.join(&name).join(picture(shot.at)), &shot.png), folder)?;
        }
    }
    save(|| fs::write(folder.join("index.html"), strip::page(cells)), folder)
}

fn save(write: impl Fn() -> std::io::Result<()>, folder: &Path) -> Result {
    write().map_err(|error| Failure::failed(format!("cannot write the filmstrip to {}: {error}", folder.display())))
}

/// The folder of a cell's pictures.
pub fn name(number: usize, cell: &Cell) -> String {
    format!("{number:02}-{}-{}", cell.setup.browser, cell.setup.protocol)
}

/// The file of a picture, named by the time in milliseconds from which the window looked like this.
pub fn picture(at: f64) -> String {
    format!("{at:08.1}ms.png")
}

/// A film as JSON.
pub fn json(number: usize, cell: &Cell) -> Json {
    match &cell.film {
        None => Json::Null,
        Some(Err(reason)) => json!({ "not_measured": reason.to_string() }),
        Some(Ok(Film { speed_index, complete, shots })) => json!({
            "speed_index_ms": tenths(*speed_index),
            "complete_ms": tenths(*complete),
            "folder": name(number, cell),
            "pictures": shots.iter().map(|shot| json!({
                "at_ms": tenths(shot.at),
                "progress": (shot.progress * 1000.0).round() / 1000.0,
                "file": picture(shot.at),
            })).collect::<Vec<_>>(),
        }),
    }
}

fn tenths(milliseconds: f64) -> f64 {
    (milliseconds * 10.0).round() / 10.0
}
