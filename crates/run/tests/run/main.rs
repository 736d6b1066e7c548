//! Runs of studies in labs that start no processes.

mod clients;
mod control;
mod mesh;
mod null;
mod planted;
mod session;
mod support;
mod timeline;
