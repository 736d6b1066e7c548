//! Runs of studies in labs that start no processes.

mod clients;
mod control;
mod mesh;
mod null;
mod planted;
mod references;
mod session;
mod support;
mod timeline;
