//! The files of a run: the folder's layout, the journal, and samples as Parquet.

pub(crate) mod checksum;
pub mod folder;
pub mod journal;
pub(crate) mod packed;
pub mod parquet;
