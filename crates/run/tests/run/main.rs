//! Runs of studies in labs that start nothing.

mod clients;
mod control;
mod mesh;
mod null;
mod session;
mod support;
mod timeline;
