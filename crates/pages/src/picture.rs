//! JPEGs of an exact size: the largest picture of a ladder of sizes that fits, filled up with comments.

use std::collections::HashMap;

use jpeg_encoder::{ColorType, Encoder};
use wirelab_model::pattern;

/// JPEG quality; 100 is the best.
const QUALITY: u8 = 90;

/// Side of the smallest picture, in pixels.
const SMALLEST: u16 = 16;

/// Side of the largest picture, in pixels: a photograph that fills a screen. Larger files are filled with comments,
/// because a browser would need a gigabyte of memory for a noisy picture of 35 MB.
const LARGEST: u16 = 1600;

/// Ratio of the sides of consecutive pictures of the ladder; the file size grows by about a fifth.
const STEP: f64 = 1.1;

/// Maximum size of a segment without its marker: two length bytes, and the content that they count (ITU-T T.81,
/// B.1.1.4).
const SEGMENT: usize = 65_535;

/// Encoded pictures so far, by side.
#[derive(Default)]
pub struct Pictures(HashMap<u16, Vec<u8>>);

impl Pictures {
    /// A JPEG of `size` bytes.
    ///
    /// # Panics
    /// If `size` is smaller than the smallest picture, which is below a kilobyte.
    pub fn of(&mut self, size: u64) -> Vec<u8> {
        let size = usize::try_from(size).expect("a picture fits the memory");
        let mut side = SMALLEST;
        // Bytes grow with the area, so start on the ladder where the size is expected.
        let expected = (size as f64 / self.bytes_per_pixel()).sqrt();
        while f64::from(above(side)) <= expected && above(side) <= LARGEST {
            side = above(side);
        }
        while side > SMALLEST && self.picture(side).len() > size {
            side = below(side);
        }
        padded(self.picture(side), size)
    }

    fn bytes_per_pixel(&mut self) -> f64 {
        const SIDE: u16 = 160;
        self.picture(SIDE).len() as f64 / f64::from(SIDE).powi(2)
    }

    fn picture(&mut self, side: u16) -> &[u8] {
        self.0.entry(side).or_insert_with(|| encoded(side))
    }
}

fn above(side: u16) -> u16 {
    (f64::from(side) * STEP).ceil() as u16
}

/// The next smaller side of the ladder.
fn below(side: u16) -> u16 {
    let mut lower = SMALLEST;
    while above(lower) < side {
        lower = above(lower);
    }
    lower
}

/// A square picture: a colour gradient with noise, which has about the bytes per pixel of a photograph.
fn encoded(side: u16) -> Vec<u8> {
    let mut state = u32::from(side).wrapping_mul(2_654_435_761) | 1;
    let mut noise = || {
        // xorshift32 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 27) as u16
    };
    let mut pixels = Vec::with_capacity(usize::from(side).pow(2) * 3);
    for y in 0..side {
        for x in 0..side {
            let place = |at: u16| (u32::from(at) * 200 / u32::from(side)) as u16;
            let grey = noise();
            pixels.extend([place(x), place(y), place(x.midpoint(y))].map(|colour| (colour + grey) as u8));
        }
    }
    let mut jpeg = Vec::new();
    let encoder = Encoder::new(&mut jpeg, QUALITY);
    encoder.encode(&pixels, side, side, ColorType::Rgb).expect("the picture has as many pixels as it says");
    jpeg
}

/// Adds comments behind the first two segments, SOI and JFIF, as cameras do. A gap that is too small for a comment
/// becomes fill bytes before the next marker (ITU-T T.81, B.1.1.2).
fn padded(jpeg: &[u8], size: usize) -> Vec<u8> {
    let mut gap = size.checked_sub(jpeg.len()).expect("the smallest picture fits");
    let jfif = 2 + 2 + usize::from(u16::from_be_bytes([jpeg[4], jpeg[5]]));
    let mut file = Vec::with_capacity(size);
    file.extend(&jpeg[..jfif]);
    while gap >= 4 {
        let length = (gap - 2).min(SEGMENT);
        file.extend([0xFF, 0xFE]);
        file.extend((length as u16).to_be_bytes());
        file.extend(pattern::body(length - 2));
        gap -= 2 + length;
    }
    file.extend(std::iter::repeat_n(0xFF, gap));
    file.extend(&jpeg[jfif..]);
    file
}

#[cfg(test)]
mod tests {
    use zune_jpeg::JpegDecoder;
    use zune_jpeg::zune_core::bytestream::ZCursor;

    use super::*;

    #[test]
    fn pictures_have_the_requested_size_and_can_be_decoded() {
        let mut pictures = Pictures::default();
        // Test around the boundaries of comments: none, fill bytes alone, one, several.
        let smallest = pictures.picture(SMALLEST).len() as u64;
        let edges = (0..8).map(|more| smallest + more);
        for size in edges.chain([2048, 4600, 17_300, 40_000, 70_001, 150_000, 290_000]) {
            let file = pictures.of(size);
            assert_eq!(file.len() as u64, size);
            let mut decoder = JpegDecoder::new(ZCursor::new(&file));
            let pixels = decoder.decode().unwrap_or_else(|error| panic!("{size} bytes: {error}"));
            let (width, height) = decoder.dimensions().unwrap();
            assert!(width >= SMALLEST.into() && width == height, "{width} x {height}");
            assert_eq!(pixels.len(), width * height * 3);
            assert!(pixels.windows(2).any(|two| two[0] != two[1]), "there is something to be seen");
        }
    }

    #[test]
    fn most_of_a_file_is_picture() {
        let mut pictures = Pictures::default();
        for size in [4600_u64, 17_300, 100_000] {
            let file = pictures.of(size);
            let most = pictures.0.values().map(Vec::len).filter(|length| *length as u64 <= size).max().unwrap();
            assert!(most as f64 > 0.7 * file.len() as f64, "{most} of {size}");
        }
    }
}
