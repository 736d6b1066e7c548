//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Failure, Result};

/// A flag that Ctrl-C and SIGTERM raise. A second signal ends wirelab at once; its guard then ends the endpoints.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })
    .map_err(|error| Failure::failed(format!("cannot catch Ctrl-C: {error}")))?;
    Ok(flag)
}
