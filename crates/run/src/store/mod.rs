//! The files of a run: the folder's layout, the journal, and samples as Parquet.

pub mod archive;
pub(crate) mod checksum;
pub mod folder;
pub mod journal;
pub mod parquet;
