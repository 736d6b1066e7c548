//! The endpoints that are built into wirelab, and the load engine that drives their clients.
