//! `wirelab archive`: a run as a small folder.

use wirelab_run::Run;
use wirelab_run::archive::archive as keep;

use super::report::render;
use crate::args::{ArchiveArgs, Format};
use crate::failure::{Failure, Result};
use crate::output::print;
use crate::place::run_folder;

/// Writes the archive of a run, and its report beside it.
pub fn archive(args: &ArchiveArgs) -> Result {
    let folder = run_folder(args.run.as_deref(), &args.out)?;
    let run = Run::open(&folder).map_err(Failure::input)?;
    let archive = keep(&run, &args.to).map_err(Failure::failed)?;
    let report = archive.path().join("report.md");
    std::fs::write(&report, render(archive.path(), Format::Markdown)?)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", report.display())))?;
    print(&format!("{}: {} trials\n", archive.path().display(), run.trials().len()))
}
