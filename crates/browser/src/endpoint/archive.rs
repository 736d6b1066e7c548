//! The loads of a trial as an HTTP Archive, for inspection.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::endpoint::order::Order;
use crate::endpoint::{Refusal, writing};
use crate::har::{Titled, har};
use crate::load::Load;

/// Writes all loads, failed ones included.
pub fn write<'a>(path: &Path, order: &Order, loads: impl Iterator<Item = &'a Load>) -> Result<(), Refusal> {
    let title = |number: usize| {
        format!("{} {} load {}: {}", order.setup.browser, order.setup.protocol, number + 1, order.page.url)
    };
    let titled: Vec<_> = loads.enumerate().map(|(number, load)| (title(number), load)).collect();
    let titled: Vec<_> = titled.iter().map(|(title, load)| Titled { title, load }).collect();
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut file, &har(env!("CARGO_PKG_VERSION"), &titled)).map_err(io::Error::from)?;
        file.write_all(b"\n")?;
        file.flush()
    };
    write().map_err(|error| writing(path, &error))
}
