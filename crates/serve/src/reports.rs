//! Rendered reports. A report takes up to seconds of processor time, so the newest ones are kept, and only one is
//! rendered at a time.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::library::{Format, Library, LibraryError, Progress};

/// The number of reports that are kept.
const KEPT: usize = 16;

/// A report with the progress of its run at the time of rendering.
type Kept = (Progress, Arc<str>);

/// The reports of a library.
pub(crate) struct Reports<L> {
    library: Arc<L>,
    kept: Mutex<HashMap<(String, Format), Kept>>,
}

impl<L: Library> Reports<L> {
    pub(crate) fn new(library: Arc<L>) -> Self {
        Self { library, kept: Mutex::default() }
    }

    /// The current report of a run.
    pub(crate) async fn get(&self, run: String, format: Format) -> Result<Arc<str>, LibraryError> {
        // Held while rendering: a second request for the same report waits for the first.
        let mut kept = self.kept.lock().await;
        let key = (run, format);
        let known = kept.get(&key).cloned();
        let library = Arc::clone(&self.library);
        let name = key.0.clone();
        let (progress, report) = blocking(move || {
            let progress = library.progress(&name)?;
            match known {
                Some((then, report)) if then == progress => Ok((progress, report)),
                _ => library.report(&name, format).map(|report| (progress, Arc::from(report))),
            }
        })
        .await?;
        if kept.len() >= KEPT && !kept.contains_key(&key) {
            kept.clear();
        }
        kept.insert(key, (progress, Arc::clone(&report)));
        Ok(report)
    }
}

/// Runs a blocking call of the library beside the server.
pub(crate) async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, LibraryError> + Send + 'static,
) -> Result<T, LibraryError> {
    let ended = tokio::task::spawn_blocking(call).await;
    ended.unwrap_or_else(|error| Err(LibraryError::Failed(format!("the page could not be made: {error}"))))
}
