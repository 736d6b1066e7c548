//! The server and its routes.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::access::{Access, check};
use crate::library::{Format, Library, LibraryError};
use crate::live;
use crate::pages::{self, Wanted};
use crate::reports::{Reports, blocking};

/// The interval in which a raised stop flag is seen.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// The longest wait for pages in the making at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A server on a port of 127.0.0.1.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    access: Access,
}

struct Shared<L> {
    library: Arc<L>,
    reports: Reports<L>,
}

type Site<L> = State<Arc<Shared<L>>>;
type Answer = Result<Response, LibraryError>;

impl Server {
    /// Listens on a port of 127.0.0.1; on a free one if `port` is 0.
    ///
    /// # Errors
    /// If the port is taken or not permitted.
    pub fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let access = Access::new(listener.local_addr()?.port())?;
        Ok(Self { listener, access })
    }

    /// The address to open, with its token.
    #[must_use]
    pub fn address(&self) -> String {
        self.access.address()
    }

    /// Serves until `stop` is raised.
    ///
    /// # Errors
    /// If the system refuses threads or the listening socket.
    pub fn run(self, library: impl Library, stop: &AtomicBool) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            tokio::select! {
                served = axum::serve(listener, router(library, self.access)) => served,
                () = raised(stop) => Ok(()),
            }
        });
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        served
    }
}

async fn raised(stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        tokio::time::sleep(STOP_INTERVAL).await;
    }
}

fn router<L: Library>(library: impl Into<Arc<L>>, access: Access) -> Router {
    let library = library.into();
    let shared = Arc::new(Shared { reports: Reports::new(Arc::clone(&library)), library });
    Router::new()
        .route("/", get(list::<L>))
        .route("/runs/{run}", get(run::<L>))
        .route("/runs/{run}/events", get(events::<L>))
        .route("/runs/{run}/{document}", get(document::<L>))
        .route("/compare", get(compare::<L>))
        .route("/history", get(history::<L>))
        .route("/style.css", get(|| asset("text/css", include_str!("../assets/style.css"))))
        .route("/script.js", get(|| asset("text/javascript", include_str!("../assets/script.js"))))
        .fallback(|| async { LibraryError::NoRun("page".to_owned()) })
        .with_state(shared)
        .layer(from_fn_with_state(Arc::new(access), check))
}

async fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}

async fn list<L: Library>(State(site): Site<L>, Query(wanted): Query<Wanted>) -> Answer {
    let library = Arc::clone(&site.library);
    let entries = blocking(move || library.runs()).await?;
    Ok(pages::list(&entries, &wanted))
}

async fn run<L: Library>(State(site): Site<L>, Path(name): Path<String>) -> Answer {
    let (library, wanted) = (Arc::clone(&site.library), name.clone());
    let progress = blocking(move || library.progress(&wanted)).await?;
    Ok(pages::run(&name, &progress))
}

async fn events<L: Library>(State(site): Site<L>, Path(name): Path<String>) -> Answer {
    Ok(live::events(Arc::clone(&site.library), name).await?.into_response())
}

async fn document<L: Library>(State(site): Site<L>, Path((run, document)): Path<(String, String)>) -> Answer {
    let (format, kind) = match document.as_str() {
        "report" => (Format::Html, ""),
        "report.csv" => (Format::Csv, "text/csv; charset=utf-8"),
        "report.json" => (Format::Json, "application/json"),
        "report.md" => (Format::Markdown, "text/markdown; charset=utf-8"),
        _ => return Err(LibraryError::Refused(format!("a run has no document `{document}`"))),
    };
    let text = site.reports.get(run, format).await?;
    Ok(if format == Format::Html { pages::report(&text) } else { pages::document(kind, &text) })
}

#[derive(serde::Deserialize)]
struct Two {
    #[serde(default)]
    first: String,
    #[serde(default)]
    second: String,
}

async fn compare<L: Library>(State(site): Site<L>, Query(two): Query<Two>) -> Answer {
    let Two { first, second } = two;
    if first.is_empty() || second.is_empty() {
        return Err(LibraryError::Refused("Choose a first and a second run in the list.".to_owned()));
    }
    let title = format!("{first} and {second}");
    let library = Arc::clone(&site.library);
    let text = blocking(move || library.compare([&first, &second])).await?;
    Ok(pages::text(&title, &text))
}

#[derive(serde::Deserialize)]
struct Series {
    #[serde(default)]
    study: String,
    metric: Option<String>,
}

async fn history<L: Library>(State(site): Site<L>, Query(series): Query<Series>) -> Answer {
    let Series { study, metric } = series;
    let title = format!("History of {study}");
    let metric = metric.filter(|metric| !metric.is_empty());
    let library = Arc::clone(&site.library);
    let text = blocking(move || library.history(&study, metric.as_deref())).await?;
    Ok(pages::text(&title, &text))
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
