//! The life cycle of a trial, the run folder, resume; nothing else.
