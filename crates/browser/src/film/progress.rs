//! The Speed Index of a film (P. Meenan, WebPageTest 2012): the mean time at which the visible parts of a page appear,
//! in the variant by histograms.
//!
//! The completeness of a picture is the share of the change from the empty window to the last picture. The change is
//! measured by how often each brightness of each colour occurs. Positions do not matter, so content that only moves
//! down counts once. The index is the area above the curve of completeness over time.

use wirelab_model::missing::Missing;

use crate::film::Frame;
use crate::film::image::Image;

/// Number of values of a colour channel.
const LEVELS: usize = 256;

/// A film of a load that painted something.
#[derive(Debug, Clone, PartialEq)]
pub struct Film {
    /// The Speed Index in milliseconds.
    pub speed_index: f64,
    /// When the window reached its final look, in milliseconds.
    pub complete: f64,
    /// The pictures that differ from the previous one, from the empty window on.
    pub shots: Vec<Shot>,
}

/// A picture of a film.
#[derive(Debug, Clone, PartialEq)]
pub struct Shot {
    /// When the window began to look like this, in milliseconds since the start of the navigation.
    pub at: f64,
    /// The completeness, from 0 to 1.
    pub progress: f64,
    /// The picture.
    pub png: Vec<u8>,
}

/// The film of a load, from its pictures.
///
/// # Errors
/// If no picture shows content.
pub fn film(frames: &[Frame]) -> Result<Film, Missing> {
    let mut seen: Vec<(&Frame, Histogram)> = Vec::new();
    for frame in frames {
        let histogram = Histogram::of(&frame.png).ok_or(Missing::NoPictures)?;
        if seen.last().is_none_or(|(_, last)| *last != histogram) {
            seen.push((frame, histogram));
        }
    }
    // Pictures of another shape show a window without its final size.
    let pixels = seen.last().ok_or(Missing::NoPictures)?.1.pixels;
    seen.retain(|(_, histogram)| histogram.pixels == pixels);
    let (_, end) = seen.last().ok_or(Missing::NoPictures)?;
    let start = Histogram::white(end.pixels);
    // From here on the end differs from the start, so the divisor below is not 0.
    if *end == start {
        return Err(Missing::WhiteWindow);
    }
    let shots: Vec<_> = seen
        .iter()
        .map(|(frame, histogram)| Shot {
            at: frame.at,
            progress: histogram.progress(&start, end),
            png: frame.png.clone(),
        })
        .collect();
    let complete = shots.last().map_or(0.0, |shot| shot.at);
    // Before the first picture, completeness is 0.
    let mut speed_index = shots.first().map_or(0.0, |shot| shot.at);
    for two in shots.windows(2) {
        speed_index += (two[1].at - two[0].at) * (1.0 - two[0].progress);
    }
    Ok(Film { speed_index, complete, shots })
}

/// The number of pixels with each value of each colour.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Histogram {
    channels: [Vec<u32>; 3],
    pixels: u32,
}

impl Histogram {
    fn of(png: &[u8]) -> Option<Self> {
        let mut found = Self { channels: std::array::from_fn(|_| vec![0; LEVELS]), pixels: 0 };
        for pixel in Image::of(png)?.pixels() {
            for (channel, value) in found.channels.iter_mut().zip(pixel) {
                channel[usize::from(*value)] += 1;
            }
            found.pixels += 1;
        }
        Some(found)
    }

    /// The histogram of an empty window, which is white in every browser.
    fn white(pixels: u32) -> Self {
        let channel = || (0..LEVELS).map(|level| if level == LEVELS - 1 { pixels } else { 0 }).collect();
        Self { channels: std::array::from_fn(|_| channel()), pixels }
    }

    /// The share of the change from start to end, over all colours.
    fn progress(&self, start: &Self, end: &Self) -> f64 {
        let (mut there, mut all) = (0.0, 0.0);
        for channel in 0..3 {
            for level in 0..LEVELS {
                let at = |of: &Self| f64::from(of.channels[channel][level]);
                let (now, wanted) = (at(self) - at(start), at(end) - at(start));
                all += wanted.abs();
                there += (now * wanted.signum()).clamp(0.0, wanted.abs());
            }
        }
        there / all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: u32 = 10;

    /// A white picture whose first rows have this colour.
    fn picture(at: f64, rows: u32, colour: [u8; 3]) -> Frame {
        let mut png = Vec::new();
        let mut encoder = png::Encoder::new(&mut png, SIDE, SIDE);
        encoder.set_color(png::ColorType::Rgb);
        let pixels: Vec<u8> =
            (0..SIDE * SIDE).flat_map(|pixel| if pixel < rows * SIDE { colour } else { [255; 3] }).collect();
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        Frame { at, png }
    }

    const RED: [u8; 3] = [200, 10, 10];

    #[test]
    fn the_index_is_the_area_above_the_curve() {
        let frames = [
            picture(0.0, 0, RED),
            picture(100.0, 0, RED),
            picture(200.0, 5, RED),
            picture(300.0, 5, RED),
            picture(400.0, 10, RED),
            picture(900.0, 10, RED),
        ];
        let film = film(&frames).unwrap();
        // 0 until 200, one half until 400, then 1.
        assert!((film.speed_index - 300.0).abs() < 1e-9, "{film:?}");
        assert_eq!(film.complete, 400.0);
        let shares: Vec<_> = film.shots.iter().map(|shot| (shot.at, shot.progress)).collect();
        assert_eq!(shares, [(0.0, 0.0), (200.0, 0.5), (400.0, 1.0)]);
    }

    #[test]
    fn what_is_there_at_once_takes_until_it_is_there() {
        let film = film(&[picture(250.0, 3, RED)]).unwrap();
        assert_eq!((film.speed_index, film.complete), (250.0, 250.0));
    }

    #[test]
    fn only_what_differs_at_the_end_counts() {
        let frames = [picture(0.0, 10, [0, 0, 255]), picture(100.0, 10, [0, 255, 255])];
        let film = film(&frames).unwrap();
        // Red is already final. Green has to return to its initial value, which does not count.
        assert_eq!(film.shots[0].progress, 1.0, "{film:?}");
        assert_eq!(film.complete, 100.0);
    }

    #[test]
    fn a_white_window_has_no_index() {
        assert_eq!(film(&[]), Err(Missing::NoPictures));
        assert_eq!(film(&[picture(0.0, 0, RED), picture(90.0, 0, RED)]), Err(Missing::WhiteWindow));
        assert_eq!(film(&[Frame { at: 0.0, png: vec![1, 2, 3] }]), Err(Missing::NoPictures));
    }
}
