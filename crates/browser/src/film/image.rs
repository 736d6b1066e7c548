//! Decoding and reducing pictures.

use jpeg_encoder::{ColorType, Encoder};

/// The minimum width of reduced pictures, in pixels.
const SMALL: usize = 320;

/// The largest decoded picture in bytes: a window of 8192 x 8192 pixels. A damaged picture may claim any size.
const LARGEST: usize = 256 << 20;

/// The JPEG quality of reduced pictures, out of 100.
const QUALITY: u8 = 60;

/// A decoded picture.
pub struct Image {
    width: usize,
    height: usize,
    /// The pixels in rows, as red, green and blue.
    pixels: Vec<[u8; 3]>,
}

impl Image {
    /// Decodes a PNG; `None` if it is invalid or too large.
    pub fn of(png: &[u8]) -> Option<Self> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().ok()?;
        let mut bytes = vec![0; reader.output_buffer_size().filter(|size| *size <= LARGEST)?];
        let info = reader.next_frame(&mut bytes).ok()?;
        let samples = info.color_type.samples();
        // Grey is used for all three colours.
        let places = if samples < 3 { [0; 3] } else { [0, 1, 2] };
        let pixels = bytes[..info.buffer_size()].chunks_exact(samples);
        Some(Self {
            width: usize::try_from(info.width).ok()?,
            height: usize::try_from(info.height).ok()?,
            pixels: pixels.map(|pixel| places.map(|place| pixel[place])).collect(),
        })
    }

    /// The pixels in rows.
    pub fn pixels(&self) -> &[[u8; 3]] {
        &self.pixels
    }

    /// A reduced JPEG: each pixel is the mean of a square of pixels.
    fn small(&self) -> Option<Vec<u8>> {
        let side = (self.width / SMALL).max(1);
        let (width, height) = (self.width / side, self.height / side);
        let mut small = Vec::with_capacity(width * height * 3);
        for row in 0..height {
            for column in 0..width {
                for colour in 0..3 {
                    let rows = (row * side..(row + 1) * side).map(|row| row * self.width);
                    let square =
                        rows.flat_map(|row| (column * side..(column + 1) * side).map(move |column| row + column));
                    let sum: usize = square.map(|place| usize::from(self.pixels[place][colour])).sum();
                    small.push((sum / (side * side)) as u8);
                }
            }
        }
        let mut jpeg = Vec::new();
        let (width, height) = (u16::try_from(width).ok()?, u16::try_from(height).ok()?);
        Encoder::new(&mut jpeg, QUALITY).encode(&small, width, height, ColorType::Rgb).ok()?;
        Some(jpeg)
    }
}

/// Reduces a PNG to a small JPEG, for storage and reports; `None` if it is no PNG.
#[must_use]
pub fn small(png: &[u8]) -> Option<Vec<u8>> {
    Image::of(png)?.small()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_picture_is_a_jpeg_of_the_means() {
        let image = Image { width: 640, height: 4, pixels: vec![[0, 0, 0]; 640 * 4] };
        let jpeg = image.small().unwrap();
        assert_eq!((&jpeg[..2], &jpeg[jpeg.len() - 2..]), (&[0xff, 0xd8][..], &[0xff, 0xd9][..]));
        // The frame header (ITU-T T.81, B.2.2) has height, then width.
        let frame = jpeg.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
        assert_eq!(jpeg[frame + 5..frame + 9], [0, 2, 1, 64]);
        assert_eq!(small(b"no picture"), None);
    }
}
