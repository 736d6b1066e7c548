//! One file per command.

pub mod ab;
pub mod analyze;
pub mod archive;
pub mod compare;
pub mod doctor;
mod earlier;
pub mod endpoint;
pub mod endpoints;
pub mod history;
pub mod labs;
pub mod load;
pub mod logs;
pub mod manual;
pub mod page;
pub mod probe;
pub mod reference;
pub mod report;
pub mod run;
mod sensitivity;
pub mod serve;
pub mod studies;
pub mod tag;

use wirelab_model::warning::Warning;

use crate::stderr;

/// Warns of numbers that describe an unoptimised build.
fn warn_if_not_optimised() {
    if !wirelab_endpoint::OPTIMISED {
        let warning = Warning::NotOptimised;
        stderr::write_line(format_args!("! {} {}", warning.meaning(), warning.remedy()));
    }
}
