//! The progress of a run as server-sent events (HTML Living Standard, section 9.2).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use tokio::sync::mpsc::channel;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;

use crate::library::{Library, LibraryError, Progress};
use crate::reports::blocking;

/// The interval between two readings of a run's progress.
const INTERVAL: Duration = Duration::from_millis(500);

/// The events of a run: `progress` with [`Progress`] as JSON, first at once and then after each change. The stream ends
/// when the browser leaves or the run can no longer be read; a run that ended may be resumed, so it does not end it.
///
/// # Errors
/// If the run cannot be read.
pub(crate) async fn events<L: Library>(
    library: Arc<L>,
    run: String,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, LibraryError> {
    let mut shown = read(&library, &run).await?;
    let (sender, receiver) = channel(1);
    tokio::spawn(async move {
        let mut next = Some(shown.clone());
        loop {
            if let Some(progress) = next.take() {
                let event = Event::default().event("progress").data(json(&progress));
                if sender.send(Ok(event)).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                () = sender.closed() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            let Ok(progress) = read(&library, &run).await else { return };
            if progress != shown {
                shown = progress.clone();
                next = Some(progress);
            }
        }
    });
    Ok(Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::default()))
}

async fn read<L: Library>(library: &Arc<L>, run: &str) -> Result<Progress, LibraryError> {
    let (library, run) = (Arc::clone(library), run.to_owned());
    blocking(move || library.progress(&run)).await
}

/// The progress for the page's script: the state also as the words of the page.
fn json(progress: &Progress) -> String {
    let Progress { state, blocks, trials, failed, failures, revision: _ } = progress;
    serde_json::json!({
        "state": state.to_string(),
        "blocks": blocks,
        "trials": trials,
        "failed": failed,
        "failures": failures,
    })
    .to_string()
}
