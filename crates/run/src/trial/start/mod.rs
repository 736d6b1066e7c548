//! Starts the processes of a trial other than servers and clients.

pub(crate) mod control;
pub(crate) mod mesh;
