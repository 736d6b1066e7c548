//! Ctrl-C, SIGTERM and SIGHUP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::failure::{Failure, Result};

/// Returns a flag that the first Ctrl-C, SIGTERM or SIGHUP raises. A second signal ends wirelab at once; its guard then
/// ends the endpoints. SIGHUP stays ignored if the parent process ignored it, as `nohup` does.
///
/// Every call returns the same flag.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = FLAG.get() {
        return Ok(Arc::clone(flag));
    }
    let flag = Arc::clone(FLAG.get_or_init(Arc::default));
    let raised = Arc::clone(&flag);
    let was_ignored = ignore_hangup();
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })
    .map_err(|error| Failure::failed(format!("cannot catch Ctrl-C: {error}")))?;
    if was_ignored {
        ignore_hangup();
    }
    Ok(flag)
}

/// Ignores SIGHUP. Returns whether it was ignored before.
fn ignore_hangup() -> bool {
    // SAFETY: `SIG_IGN` installs no handler, so no code of this program runs in a signal context.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) == libc::SIG_IGN }
}
