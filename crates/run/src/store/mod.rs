//! The files of a run: the folder's layout, the journal, and samples as Parquet.

pub mod folder;
pub mod journal;
pub mod parquet;
