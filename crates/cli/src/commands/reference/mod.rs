//! `wirelab reference`: the reference pages of the manual, from the declarations in the code.

mod cli;
mod metrics;
mod page;
mod study;

use crate::args::ReferenceArgs;
use crate::failure::{Failure, Result};

/// Writes all pages into a folder.
pub fn reference(args: &ReferenceArgs) -> Result {
    let attempt = |error: std::io::Error| {
        Failure::failed(format!("cannot write the reference pages to {}: {error}", args.out.display()))
    };
    std::fs::create_dir_all(&args.out).map_err(attempt)?;
    let pages = [
        ("commands.md", cli::commands()),
        ("settings.md", study::settings()),
        ("study.md", study::tables()),
        ("metrics.md", metrics::metrics()),
        ("observers.md", metrics::observers()),
        ("labs.md", metrics::labs()),
    ];
    for (name, page) in pages {
        std::fs::write(args.out.join(name), page).map_err(attempt)?;
    }
    Ok(())
}
