//! Study files, tables and plans.

mod changes;
mod messages;
mod mutations;
mod plans;
mod studies;
mod tables;
