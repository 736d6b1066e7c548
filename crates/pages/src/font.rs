//! Fonts of an exact size in WOFF 2.0 (W3C Recommendation, 2024): glyphs with random outlines fill the file.
//!
//! WOFF requires Brotli compression of its tables (RFC 7932). Random outlines are incompressible, so they are stored
//! in uncompressed blocks, which Brotli permits and which need no library.

/// Side of the em square in font units; Chromium and Firefox scale it to the text size.
const EM: u16 = 1000;

/// Points per glyph outline.
const POINTS: u16 = 60;

/// Bytes of a glyph without instructions: bounding box, end point, instruction length, and flags and coordinates of
/// its points.
const GLYPH: usize = 10 + 2 + 2 + POINTS as usize * 5;

/// Bytes per glyph in `loca` and `hmtx`.
const BESIDES: usize = 4 + 4;

/// First character, a space; the others follow in Unicode order.
const FIRST: u16 = 0x20;

/// Maximum size of an uncompressed Brotli block, in bytes.
const STORED: usize = 1 << 16;

/// A font of `size` bytes, a multiple of four, because WOFF requires it. `number` seeds its outlines.
///
/// # Panics
/// If `size` is smaller than a font with two glyphs, about a kilobyte.
pub fn font(number: usize, size: u64) -> Vec<u8> {
    let size = usize::try_from(size).expect("a font fits the memory");
    let of = |glyphs: u16, filler: usize| packed(&tables(number, glyphs, filler));
    let smallest = of(2, 0).len();
    let room = size.checked_sub(smallest).expect("the smallest font fits");
    // Brotli blocks have headers, so the last glyph may not fit.
    let mut glyphs = 2 + u16::try_from(room / (GLYPH + BESIDES)).expect("a font has less than 65,536 glyphs");
    while of(glyphs, 0).len() > size {
        glyphs -= 1;
    }
    // Instructions of the last glyph fill the remaining bytes. They have no effect: each selects the same axis.
    let mut filler = size - of(glyphs, 0).len();
    while of(glyphs, filler).len() > size {
        filler -= 1;
    }
    let file = of(glyphs, filler);
    assert_eq!(file.len(), size, "the size of a font is a multiple of four");
    file
}

/// A table: its number in WOFF's list of known tables, and its content.
struct Table {
    known: u8,
    content: Vec<u8>,
}

/// Big-endian numbers, as in fonts.
#[derive(Default)]
struct Numbers(Vec<u8>);

impl Numbers {
    fn u16s(mut self, numbers: &[u16]) -> Self {
        self.0.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        self
    }

    fn u32s(mut self, numbers: &[u32]) -> Self {
        self.0.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
}

/// The required tables of a font (ISO/IEC 14496-22, section 4.2), in the order of their WOFF numbers.
fn tables(number: usize, glyphs: u16, filler: usize) -> Vec<Table> {
    let instructions = u16::try_from(filler).expect("what fills a font up is less than a glyph");
    let mut outlines = Outlines::new(number);
    let (mut glyf, mut loca) = (Vec::new(), Numbers::default());
    for glyph in 0..glyphs {
        loca = loca.u32s(&[glyf.len() as u32]);
        glyf.extend(outlines.glyph(if glyph + 1 == glyphs { filler } else { 0 }));
    }
    let loca = loca.u32s(&[glyf.len() as u32]);
    let last = FIRST + glyphs - 2;
    // Two segments of format 4: the characters, and the end.
    let cmap = Numbers::default().u16s(&[0, 1, 3, 1]).u32s(&[12]).u16s(&[4, 32, 0, 4, 4, 1, 0]);
    let cmap = cmap.u16s(&[last, 0xFFFF, 0, FIRST, 0xFFFF, 1_u16.wrapping_sub(FIRST), 1, 0, 0]);
    // Flags: baseline and side bearing at 0, integer scaling, and lossless compression, which WOFF requires.
    let head = Numbers::default().u32s(&[0x0001_0000, 0x0001_0000, 0, 0x5F0F_3CF5]).u16s(&[0x080B, EM]);
    let head = head.u32s(&[0, 0, 0, 0]).u16s(&[0, 0, EM, EM, 0, 8, 2, 1, 0]);
    let descender = 0_u16.wrapping_sub(EM / 5);
    let hhea = Numbers::default().u32s(&[0x0001_0000]).u16s(&[EM, descender, 0, EM, 0, 0, EM, 1, 0, 0]);
    let hhea = hhea.u16s(&[0, 0, 0, 0, 0, glyphs]);
    let hmtx = (0..glyphs).fold(Numbers::default(), |metrics, _| metrics.u16s(&[EM, 0]));
    let maxp =
        Numbers::default().u32s(&[0x0001_0000]).u16s(&[glyphs, POINTS, 1, 0, 0, 2, 0, 0, 0, 0, 0, instructions, 0, 0]);
    let os2 = Numbers::default().u16s(&[4, EM, 400, 5, 0]).u16s(&[EM / 2, EM / 2, 0, 0, EM / 2, EM / 2, 0, 0, 50, 300]);
    let os2 = os2.u16s(&[0]).bytes(&[0; 10]).u32s(&[1, 0, 0, 0]).bytes(b"none").u16s(&[0x40, FIRST, last]);
    let os2 = os2.u16s(&[EM, descender, 0, EM, EM / 5]).u32s(&[1, 0]).u16s(&[EM / 2, EM, 0, FIRST, 0]);
    let post = Numbers::default().u32s(&[0x0003_0000, 0]).u16s(&[0, 50]).u32s(&[0; 5]);
    let all = [cmap, head, hhea, hmtx, maxp, names(number), os2, post, Numbers::default().bytes(&glyf), loca];
    // `cvt ` and `fpgm`, numbers 8 and 9, exist only for instructions.
    let known = [0, 1, 2, 3, 4, 5, 6, 7, 10, 11];
    known.into_iter().zip(all).map(|(known, Numbers(content))| Table { known, content }).collect()
}

/// Names of family, style, full font and PostScript font, in the encoding of Windows.
fn names(number: usize) -> Numbers {
    let family = format!("wirelab-{number}");
    let names = [(1, family.as_str()), (2, "Regular"), (4, &family), (6, &family)];
    let (mut records, mut texts) = (Numbers::default().u16s(&[0, 4, 6 + 4 * 12]), Numbers::default());
    for (name, text) in names {
        let text: Vec<u16> = text.encode_utf16().collect();
        records = records.u16s(&[3, 1, 0x409, name, 2 * text.len() as u16, texts.0.len() as u16]);
        texts = texts.u16s(&text);
    }
    records.bytes(&texts.0)
}

/// Generator of random outlines.
struct Outlines(u32);

impl Outlines {
    fn new(number: usize) -> Self {
        Self((number as u32).wrapping_mul(2_654_435_761) | 1)
    }

    /// A random coordinate within the em square.
    fn place(&mut self) -> u16 {
        // xorshift32 (Marsaglia 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        (self.0 >> 16) as u16 % (EM + 1)
    }

    /// A glyph with one contour; point distances take two bytes each.
    fn glyph(&mut self, filler: usize) -> Vec<u8> {
        let places: Vec<[u16; 2]> = (0..POINTS).map(|_| [self.place(), self.place()]).collect();
        let end =
            |side: usize, take: fn(u16, u16) -> u16| places.iter().map(|place| place[side]).reduce(take).unwrap_or(0);
        let [low, high] = [u16::min, u16::max];
        let glyph = Numbers::default().u16s(&[1, end(0, low), end(1, low), end(0, high), end(1, high), POINTS - 1]);
        let mut glyph = glyph.u16s(&[filler as u16]).bytes(&vec![0; filler]).bytes(&[1; POINTS as usize]);
        for side in 0..2 {
            let mut before = 0;
            for place in &places {
                glyph = glyph.u16s(&[place[side].wrapping_sub(before)]);
                before = place[side];
            }
        }
        glyph.0
    }
}

/// Writes the WOFF file.
fn packed(tables: &[Table]) -> Vec<u8> {
    let (mut directory, mut content) = (Numbers::default(), Vec::new());
    let mut unpacked = 12 + 16 * tables.len();
    for table in tables {
        // `glyf` and `loca` are transformed by default; these flags disable it.
        let unchanged = if matches!(table.known, 10 | 11) { 3 << 6 } else { 0 };
        directory = directory.bytes(&[table.known | unchanged]).bytes(&seven_bits(table.content.len()));
        content.extend(&table.content);
        unpacked += table.content.len().next_multiple_of(4);
    }
    let content = stored(&content);
    let length = (HEADER + directory.0.len() + content.len()).next_multiple_of(4);
    let header = Numbers::default().bytes(b"wOF2").u32s(&[0x0001_0000, length as u32]).u16s(&[tables.len() as u16, 0]);
    let header = header.u32s(&[unpacked as u32, content.len() as u32]).u16s(&[1, 0]).u32s(&[0; 5]);
    let mut file = header.bytes(&directory.0).bytes(&content).0;
    file.resize(length, 0);
    file
}

/// Size of the WOFF header, in bytes.
const HEADER: usize = 48;

/// A base-128 number: seven bits per byte, with the highest bit set in all bytes but the last.
fn seven_bits(number: usize) -> Vec<u8> {
    let pieces = (1..5).take_while(|piece| number >> (7 * piece) > 0).count() + 1;
    let piece = |at: usize| (number >> (7 * at)) as u8 & 0x7F | if at > 0 { 0x80 } else { 0 };
    (0..pieces).rev().map(piece).collect()
}

/// Content as uncompressed Brotli blocks (RFC 7932, section 9): a window of 64 KiB, uncompressed blocks, and an empty
/// last one. Bits are packed from the lowest on.
fn stored(content: &[u8]) -> Vec<u8> {
    let mut stream = Vec::with_capacity(content.len() + 16);
    for (index, piece) in content.chunks(STORED).enumerate() {
        let head = (piece.len() - 1) << 3 | 1 << 19;
        // The window size, one bit with the value 0, comes before the first block.
        let head = if index == 0 { head << 1 } else { head };
        stream.extend(&(head as u32).to_le_bytes()[..3]);
        stream.extend(piece);
    }
    stream.push(0b11);
    stream
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fonts_have_the_requested_size_and_differ() {
        for size in [1500, 2048, 20 << 10, 48 << 10, 65_540, 65_544, 128 << 10] {
            let (one, other) = (font(0, size), font(1, size));
            assert_eq!((one.len() as u64, other.len() as u64), (size, size));
            assert_eq!(one[8..12], (size as u32).to_be_bytes(), "the container says its own length");
            assert_ne!(one, other);
        }
    }

    #[test]
    fn numbers_of_the_container_are_those_of_its_specification() {
        assert_eq!(seven_bits(63), [63]);
        assert_eq!(seven_bits(128), [0x81, 0]);
        assert_eq!(seven_bits(16_384), [0x81, 0x80, 0]);
        // The window, a piece of one byte, and the end.
        assert_eq!(stored(b"a"), [0, 0, 0b0001_0000, b'a', 0b11]);
    }
}
