//! Pages to load: real HTML, CSS, JavaScript and images, in a folder that a server uses as document root.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Number of small images of the page.
pub const IMAGES: u32 = 50;

/// Number of requests of the page: document, style, script, images.
pub const REQUESTS: u32 = 3 + IMAGES;

/// Writes `index.html` and its resources.
pub fn write_page(folder: &Path) {
    let mut body = String::from("<h1>Fifty images</h1>\n");
    fs::create_dir_all(folder.join("images")).unwrap();
    for number in 0..IMAGES {
        let name = format!("images/{number:02}.png");
        fs::write(folder.join(&name), image(number)).unwrap();
        let _ = writeln!(body, "<img src=\"{name}\" width=\"64\" height=\"64\" alt=\"\">");
    }
    fs::write(folder.join("style.css"), "body { background: #eef; font: 16px sans-serif }\nimg { margin: 2px }\n")
        .unwrap();
    fs::write(folder.join("script.js"), "document.title = 'the script ran';\n").unwrap();
    write_document(folder, "index.html", &body);
}

/// Writes a document with this body, and with links to style and script.
pub fn write_document(folder: &Path, name: &str, body: &str) {
    let head = "<meta charset=\"utf-8\"><title>page</title><link rel=\"icon\" href=\"data:,\">\n\
                <link rel=\"stylesheet\" href=\"style.css\"><script src=\"script.js\"></script>";
    fs::write(
        folder.join(name),
        format!("<!doctype html>\n<html lang=\"en\"><head>{head}</head>\n<body>{body}</body></html>\n"),
    )
    .unwrap();
}

/// A PNG of 32 x 32 pixels with incompressible noise (some 3 KB), different for each number.
fn image(number: u32) -> Vec<u8> {
    const SIDE: u32 = 32;
    let mut state = number.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut noise = || {
        // xorshift32 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    let pixels: Vec<u8> = (0..SIDE * SIDE * 3).map(|_| noise()).collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIDE, SIDE);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    file
}
