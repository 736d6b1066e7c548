//! The contract suite and the schemas.

mod broken;
mod schemas;
