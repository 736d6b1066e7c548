//! Study files, tables and plans.

mod changes;
mod jobs;
mod messages;
mod mutations;
mod plans;
mod studies;
mod tables;
