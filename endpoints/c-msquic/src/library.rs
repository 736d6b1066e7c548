//! The library MsQuic: its functions, its one registration, and its orderly end.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use msquic::ffi::{HQUIC, QUIC_API_TABLE, QUIC_CONNECTION_SHUTDOWN_FLAGS_QUIC_CONNECTION_SHUTDOWN_FLAG_SILENT};
use msquic::{Api, Registration, RegistrationConfig, Status};
use wirelab_endpoint::program::Refusal;

/// The time that the end of the process waits for MsQuic's threads to release closed objects.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);

/// MsQuic's functions, by their names in C.
pub fn functions() -> &'static QUIC_API_TABLE {
    Api::get_ffi()
}

/// Calls a function of MsQuic. The table of a version has all of that version.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        ($crate::library::functions().$name.expect(concat!("MsQuic has ", stringify!($name))))($($argument),*)
    };
}
pub(crate) use call;

/// The one registration, whose worker threads all connections of this process share.
pub fn registration() -> Result<&'static Registration, Refusal> {
    static REGISTRATION: OnceLock<Result<Registration, Status>> = OnceLock::new();
    let made = REGISTRATION.get_or_init(|| {
        let registration = Registration::new(&RegistrationConfig::new().set_app_name("wirelab".to_owned()))?;
        // SAFETY: the handle is only kept for `close`, after which no code uses the registration.
        *raw() = Some(Raw(unsafe { registration.as_raw() }));
        Ok(registration)
    });
    made.as_ref().map_err(|status| Refusal::failed(format!("starting MsQuic: {status}")))
}

/// The handle of the registration, once it exists.
struct Raw(HQUIC);

// SAFETY: MsQuic's handles may be used from any thread.
unsafe impl Send for Raw {}

fn raw() -> MutexGuard<'static, Option<Raw>> {
    static RAW: Mutex<Option<Raw>> = Mutex::new(None);
    RAW.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of MsQuic's open objects.
static OPEN: Mutex<usize> = Mutex::new(0);
static CLOSED_ONE: Condvar = Condvar::new();

/// Belongs to an open object of MsQuic, and is dropped after it.
#[derive(Debug)]
pub struct Open(());

impl Open {
    /// An object was opened.
    pub fn one() -> Self {
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        CLOSED_ONE.notify_all();
    }
}

/// Closes the registration at the end of the process, because the crate unloads MsQuic then. Connections that are still
/// open are dropped without a goodbye. Objects that are not closed in time stay open, and so does the registration: its
/// close would wait for ever.
pub fn close() {
    let Some(Raw(registration)) = raw().take() else { return };
    // SAFETY: the registration is open; this says goodbye for all of its connections.
    unsafe {
        call!(RegistrationShutdown(
            registration,
            QUIC_CONNECTION_SHUTDOWN_FLAGS_QUIC_CONNECTION_SHUTDOWN_FLAG_SILENT,
            0
        ));
    }
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = CLOSED_ONE.wait_timeout_while(open, CLOSING_TIMEOUT, |open| *open > 0);
    let (open, _) = waited.unwrap_or_else(PoisonError::into_inner);
    if *open == 0 {
        // SAFETY: nothing of it is open, and `main` ends after this, so no code uses it again.
        unsafe { call!(RegistrationClose(registration)) };
    } else {
        eprintln!("{} objects of MsQuic are still open at the end", *open);
    }
}
