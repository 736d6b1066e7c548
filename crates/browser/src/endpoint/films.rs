//! The films of a trial: the Speed Index of every load, and the pictures of the load with the median Speed Index.

use std::fs;
use std::path::Path;

use wirelab_model::film::{Developed, Film, Films, INDEX, Picture};
use wirelab_model::metric::Value;
use wirelab_model::missing::Missing;

use crate::endpoint::{Refusal, writing};
use crate::film::{self, Frame};

/// The films of the loads so far, with reduced pictures, because the originals of a trial would not fit into memory.
pub struct Reel<'a> {
    folder: &'a Path,
    films: Vec<Result<Developed, Missing>>,
}

impl<'a> Reel<'a> {
    /// An empty collection for a folder.
    pub const fn new(folder: &'a Path) -> Self {
        Self { folder, films: Vec::new() }
    }

    /// Adds the pictures of a load.
    pub fn take(&mut self, frames: Vec<Frame>) {
        self.films.push(developed(&frames));
    }

    /// Writes the index and the pictures of the typical film.
    pub fn write(&self) -> Result<(), Refusal> {
        let typical = self.typical();
        for (picture, jpeg) in typical.iter().flat_map(|(film, jpegs)| film.pictures.iter().zip(jpegs)) {
            let path = self.folder.join(&picture.file);
            fs::write(&path, jpeg).map_err(|error| writing(&path, &error))?;
        }
        let speed_index = self.films.iter().map(|film| match film {
            Ok((film, _)) => Value::Measured(film.speed_index_ns),
            Err(why) => Value::missing(why.clone()),
        });
        let films = Films { speed_index: speed_index.collect(), typical: typical.map(|(film, _)| film.clone()) };
        let path = self.folder.join(INDEX);
        let text = serde_json::to_vec_pretty(&films).map_err(std::io::Error::from);
        text.and_then(|text| fs::write(&path, text)).map_err(|error| writing(&path, &error))
    }

    fn typical(&self) -> Option<&Developed> {
        let mut films: Vec<_> = self.films.iter().filter_map(|film| film.as_ref().ok()).collect();
        films.sort_by(|(one, _), (other, _)| one.speed_index_ns.total_cmp(&other.speed_index_ns));
        films.get(films.len().checked_sub(1)? / 2).copied()
    }
}

/// The film of a load, with reduced pictures.
fn developed(frames: &[Frame]) -> Result<Developed, Missing> {
    let found = film::film(frames)?;
    let jpegs: Option<Vec<_>> = found.shots.iter().map(|shot| film::small(&shot.png)).collect();
    let picture = |shot: &film::Shot| Picture {
        at_ns: shot.at * 1e6,
        progress: shot.progress,
        file: format!("{:08.1}ms.jpg", shot.at),
    };
    let film = Film {
        speed_index_ns: found.speed_index * 1e6,
        complete_ns: found.complete * 1e6,
        pictures: found.shots.iter().map(picture).collect(),
    };
    Ok((film, jpegs.ok_or(Missing::PictureNotReduced)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of one colour.
    fn frame(at: f64, grey: u8) -> Frame {
        let mut png = Vec::new();
        let mut encoder = png::Encoder::new(&mut png, 8, 8);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&[grey; 64]).unwrap();
        Frame { at, png }
    }

    #[test]
    fn every_load_has_its_index_and_the_median_one_its_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let mut reel = Reel::new(folder.path());
        for complete in [300.0, 100.0, 200.0] {
            reel.take(vec![frame(0.0, 255), frame(complete, 9)]);
        }
        reel.take(vec![frame(0.0, 255)]);
        reel.write().unwrap();
        let index = fs::read_to_string(folder.path().join(INDEX)).unwrap();
        let films: Films = serde_json::from_str(&index).unwrap();
        let numbers: Vec<_> = films.speed_index.iter().map(Value::number).collect();
        assert_eq!(numbers, [Some(300e6), Some(100e6), Some(200e6), None]);
        let typical = films.typical.unwrap();
        assert_eq!((typical.speed_index_ns, typical.complete_ns), (200e6, 200e6));
        for picture in &typical.pictures {
            let jpeg = fs::read(folder.path().join(&picture.file)).unwrap();
            assert_eq!(jpeg[..2], [0xff, 0xd8], "{picture:?}");
        }
        assert_eq!(typical.pictures.len(), 2);
    }
}
