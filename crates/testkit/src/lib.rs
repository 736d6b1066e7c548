//! Shared code of test programs: the `wirelab` command, servers, browsers, labs, a cluster, skips with typed reasons,
//! and the harness of tests that run one at a time. Only tests depend on this crate.

pub mod bidi;
pub mod browsers;
pub mod cluster;
mod command;
pub mod devtools;
mod foreign;
pub mod fuzz;
pub mod har;
pub mod installed;
pub mod lab;
pub mod page_command;
pub mod pages;
pub mod physics;
pub mod prometheus;
pub mod proxies;
pub mod readable;
mod record;
pub mod servers;
pub mod short_of_memory;
mod skips;
pub mod ssh;
pub mod stolen;
pub mod tab;
pub mod traces;
pub mod tree;

pub use command::{
    Running, Said, eventually, eventually_within, only_run, processes, program, root, run, said, wirelab,
};
pub use foreign::{FOREIGN, enter_foreign_network};
pub use skips::{Skip, skip, skip_part};
