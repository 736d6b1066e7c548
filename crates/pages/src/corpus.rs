//! The generated pages: their files and file sizes. The server generates the content.
//!
//! The first twelve pages follow the thesis of T. Schmeiser (Frankfurt University of Applied Sciences, 2015; chapter
//! 5). For each page the thesis gives the number of images, the smallest and largest image, and the total size; its
//! documents have 4 to 20 KB. The sizes in between are drawn from a fixed seed, so a page is always the same. `today`
//! has the medians of the HTTP Archive (Web Almanac 2024, chapter *Page Weight*, desktop).

use std::collections::HashMap;

use rand::Rng;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use wirelab_model::page::PageName;

/// Type of a file on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// The document, which links to all others.
    Document,
    /// A style sheet.
    Style,
    Script,
    /// A font in WOFF 2.0.
    Font,
    /// A JPEG.
    Image,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFile {
    /// Name within the folder of the page.
    pub name: String,
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
}

/// The name of a page's document.
pub const DOCUMENT: &str = "index.html";

/// Unit of the sizes in the thesis, in bytes.
const KB: u64 = 1000;

/// Unit of the sizes in the HTTP Archive, in bytes.
const KIB: u64 = 1024;

/// Files with a given total size. The smallest and the largest size both occur.
#[derive(Debug, Clone, Copy)]
struct Group {
    count: usize,
    smallest: u64,
    largest: u64,
    total: u64,
}

/// All files of a generated page: the document first, then the others in link order. Empty for folders and archives.
#[must_use]
pub fn files(page: PageName) -> Vec<PageFile> {
    let mut rng = ChaCha8Rng::seed_from_u64(PageName::ALL.iter().position(|one| *one == page).unwrap_or(0) as u64);
    let (document, others) = match page {
        // The contents of folders and archives are read at run time.
        PageName::Folder(_) | PageName::Archive(_) => return Vec::new(),
        PageName::Today => (18 * KIB, today(&mut rng)),
        _ => {
            let images = images(page, &mut rng);
            (document(images.len()), numbered(FileKind::Image, images))
        }
    };
    let document = PageFile { name: DOCUMENT.to_owned(), kind: FileKind::Document, size: document };
    [document].into_iter().chain(others).collect()
}

/// Size of all files of a page, in bytes.
#[must_use]
pub fn bytes(page: PageName) -> u64 {
    files(page).iter().map(|file| file.size).sum()
}

/// Host number, from 0, of each file of a page that is spread over `hosts` hosts. The document and the fonts are on
/// host 0, because browsers fetch fonts from other hosts without credentials, on separate connections. Files of every
/// other kind rotate over all hosts, so that each host serves both early and late files. wirelab chose these shares.
#[must_use]
pub fn spread(files: &[PageFile], hosts: usize) -> Vec<usize> {
    let mut placed: HashMap<FileKind, usize> = HashMap::new();
    let place = |file: &PageFile| match file.kind {
        FileKind::Document | FileKind::Font => 0,
        kind => {
            let before = placed.entry(kind).or_default();
            *before += 1;
            (*before - 1) % hosts
        }
    };
    files.iter().map(place).collect()
}

/// Size in bytes of a thesis document with this number of images: 4 to 20 KB.
const fn document(images: usize) -> u64 {
    4 * KB + 76 * images as u64
}

/// Image sizes of a thesis page, in bytes.
fn images(page: PageName, rng: &mut ChaCha8Rng) -> Vec<u64> {
    let group = |count: usize, smallest: u64, largest: u64, page: u64| {
        vec![Group { count, smallest, largest, total: page - document(count) }]
    };
    let very_large = [23_300 * KB, 35_500 * KB];
    let groups = match page {
        PageName::Small10 => group(10, 7800, 17_300, 109_700),
        PageName::Small20 => group(20, 4600, 17_300, 196_500),
        PageName::Small50 => group(50, 4600, 17_300, 412_800),
        PageName::Small100 => group(100, 4600, 17_300, 800_300),
        PageName::Medium10 => group(10, 40 * KB, 150 * KB, 829_600),
        PageName::Medium20 => group(20, 40 * KB, 290 * KB, 1900 * KB),
        PageName::Medium50 => group(50, 30 * KB, 290 * KB, 5500 * KB),
        PageName::Medium100 => group(100, 30 * KB, 650 * KB, 11_800 * KB),
        PageName::Large200 => group(200, 6 * KB, 650 * KB, 12_600 * KB),
        PageName::Large10 => {
            let total = 64_400 * KB - very_large.iter().sum::<u64>() - document(10);
            vec![Group { count: 8, smallest: 600 * KB, largest: 850 * KB, total }]
        }
        PageName::Large2 | PageName::Large210 | PageName::Today | PageName::Folder(_) | PageName::Archive(_) => {
            Vec::new()
        }
    };
    let mut sizes: Vec<u64> = groups.into_iter().flat_map(|group| draw(group, rng)).collect();
    match page {
        PageName::Large10 | PageName::Large2 => sizes.extend(very_large),
        PageName::Large210 => {
            sizes.extend(images(PageName::Large200, rng));
            sizes.extend(images(PageName::Large10, rng));
        }
        _ => {}
    }
    sizes.shuffle(rng);
    sizes
}

/// The median page: 71 requests and 2652 KB in total. Its parts are 18 images with 1054 KB, 24 scripts with 613 KB, 4
/// fonts with 131 KB, 8 style sheets with 78 KB, and 18 KB of document. Medians of parts do not add up to the median
/// of the total; the rest (video, other) is omitted. wirelab chose how sizes vary.
fn today(rng: &mut ChaCha8Rng) -> Vec<PageFile> {
    let styles = Group { count: 8, smallest: KIB, largest: 30 * KIB, total: 78 * KIB };
    let scripts = Group { count: 24, smallest: KIB, largest: 120 * KIB, total: 613 * KIB };
    let images = Group { count: 18, smallest: 2 * KIB, largest: 300 * KIB, total: 1054 * KIB };
    let mut drawn = |kind, group| {
        let mut sizes = draw(group, rng);
        sizes.shuffle(rng);
        numbered(kind, sizes)
    };
    let [styles, scripts, images] = [(FileKind::Style, styles), (FileKind::Script, scripts), (FileKind::Image, images)]
        .map(|(kind, group)| drawn(kind, group));
    // The font container (WOFF) needs multiples of four bytes.
    let fonts = numbered(FileKind::Font, [48, 35, 28, 20].map(|size| size * KIB).to_vec());
    [styles, scripts, fonts, images].concat()
}

fn numbered(kind: FileKind, sizes: Vec<u64>) -> Vec<PageFile> {
    let ending = match kind {
        FileKind::Document => "html",
        FileKind::Style => "css",
        FileKind::Script => "js",
        FileKind::Font => "woff2",
        FileKind::Image => "jpg",
    };
    let file = |(number, size)| PageFile { name: format!("{number:03}.{ending}"), kind, size };
    sizes.into_iter().enumerate().map(file).collect()
}

/// Draws the sizes of a group: the two bounds, and in between powers of uniform numbers with the mean that the total
/// requires. The remaining difference from the total is spread over the drawn sizes.
fn draw(group: Group, rng: &mut ChaCha8Rng) -> Vec<u64> {
    let Group { count, smallest, largest, total } = group;
    let width = (largest - smallest) as f64;
    let mean = (total as f64 / count as f64 - smallest as f64) / width;
    // A power k of a uniform number has the mean 1 / (k + 1).
    let power = 1.0 / mean - 1.0;
    let mut between = |_| smallest + (width * rng.random::<f64>().powf(power)) as u64;
    let mut sizes = vec![largest, smallest];
    sizes.extend((2..count).map(&mut between));
    loop {
        let sum: u64 = sizes.iter().sum();
        let (off, more) = (sum.abs_diff(total), sum < total);
        let has_room = |size: &&mut u64| if more { **size < largest } else { **size > smallest };
        let mut open: Vec<&mut u64> = sizes[2..].iter_mut().filter(has_room).collect();
        if off == 0 || open.is_empty() {
            return sizes;
        }
        let step = (off / open.len() as u64).max(1);
        for size in open.iter_mut().take(off as usize) {
            **size = if more { (**size + step).min(largest) } else { size.saturating_sub(step).max(smallest) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thesis_pages_have_its_counts_sizes_and_totals() {
        for (page, count, smallest, largest, total) in [
            (PageName::Small10, 10, 7800, 17_300, 109_700),
            (PageName::Small20, 20, 4600, 17_300, 196_500),
            (PageName::Small50, 50, 4600, 17_300, 412_800),
            (PageName::Small100, 100, 4600, 17_300, 800_300),
            (PageName::Medium10, 10, 40_000, 150_000, 829_600),
            (PageName::Medium20, 20, 40_000, 290_000, 1_900_000),
            (PageName::Medium50, 50, 30_000, 290_000, 5_500_000),
            (PageName::Medium100, 100, 30_000, 650_000, 11_800_000),
            (PageName::Large10, 10, 600_000, 35_500_000, 64_400_000),
            (PageName::Large200, 200, 6_000, 650_000, 12_600_000),
        ] {
            let files = files(page);
            let sizes: Vec<_> = files[1..].iter().map(|file| file.size).collect();
            assert_eq!(sizes.len(), count, "{page}");
            assert_eq!(sizes.iter().min(), Some(&smallest), "{page}");
            assert_eq!(sizes.iter().max(), Some(&largest), "{page}");
            assert_eq!(bytes(page), total, "{page}");
            assert!((4 * KB..=20 * KB).contains(&files[0].size), "{page}");
        }
        let (all, two) = (files(PageName::Large210), files(PageName::Large2));
        assert_eq!((all.len(), two.len()), (211, 3));
        assert!(bytes(PageName::Large210).abs_diff(77_000 * KB) < 50 * KB, "{}", bytes(PageName::Large210));
        assert_eq!(bytes(PageName::Large2) - two[0].size, 58_800 * KB);
    }

    #[test]
    fn todays_page_has_the_medians() {
        let files = files(PageName::Today);
        let of = |kind| {
            let sizes: Vec<_> = files.iter().filter(|file| file.kind == kind).map(|file| file.size).collect();
            (sizes.len(), sizes.iter().sum::<u64>() / KIB)
        };
        assert_eq!((of(FileKind::Image), of(FileKind::Script)), ((18, 1054), (24, 613)));
        assert_eq!((of(FileKind::Style), of(FileKind::Document)), ((8, 78), (1, 18)));
        assert_eq!(of(FileKind::Font), (4, 131));
    }

    #[test]
    fn every_host_has_its_share_of_every_kind_and_the_fonts_stay_with_their_style_sheet() {
        let files = files(PageName::Today);
        let hosts = spread(&files, 4);
        let of = |host: usize, kind: FileKind| {
            hosts.iter().zip(&files).filter(|(at, file)| **at == host && file.kind == kind).count()
        };
        for (kind, shares) in [
            (FileKind::Document, [1, 0, 0, 0]),
            (FileKind::Style, [2; 4]),
            (FileKind::Script, [6; 4]),
            (FileKind::Font, [4, 0, 0, 0]),
            (FileKind::Image, [5, 5, 4, 4]),
        ] {
            assert_eq!([0, 1, 2, 3].map(|host| of(host, kind)), shares, "{kind:?}");
        }
        let first_sheet = files.iter().position(|file| file.kind == FileKind::Style).unwrap();
        assert_eq!(hosts[first_sheet], 0, "it names the fonts");
        assert!(spread(&files, 1).iter().all(|host| *host == 0));
    }

    #[test]
    fn a_page_is_always_the_same_and_no_two_files_have_one_name() {
        for page in PageName::ALL {
            let files = files(page);
            assert_eq!(files, super::files(page));
            let names: std::collections::HashSet<_> = files.iter().map(|file| &file.name).collect();
            assert_eq!(names.len(), files.len(), "{page}");
        }
    }
}
