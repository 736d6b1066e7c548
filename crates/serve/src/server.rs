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
use crate::pages::{self, Wanted, Writing};
use crate::reports::{Reports, blocking};
use crate::workshop::Workshop;
use crate::writing;

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
    /// Absent: the pages only read.
    workshop: Option<Arc<dyn Workshop>>,
    reports: Reports<L>,
}

type Site<L> = State<Arc<Shared<L>>>;
type Answer = Result<Response, LibraryError>;

impl<L: Library> Shared<L> {
    /// What the pages may change.
    async fn writing(&self) -> Result<Writing, LibraryError> {
        let Some(workshop) = self.workshop.clone() else { return Ok(Writing::default()) };
        let started = blocking(move || Ok(workshop.started())).await?;
        Ok(Writing { allowed: true, started })
    }
}

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

    /// Serves until `stop` is raised. Without a workshop, the pages only read.
    ///
    /// # Errors
    /// If the system refuses threads or the listening socket.
    pub fn run<L: Library>(
        self,
        library: Arc<L>,
        workshop: Option<Arc<dyn Workshop>>,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            tokio::select! {
                served = axum::serve(listener, router(library, workshop, self.access)) => served,
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

fn router<L: Library>(library: Arc<L>, workshop: Option<Arc<dyn Workshop>>, access: Access) -> Router {
    let writing = workshop.clone().map(writing::routes).unwrap_or_default();
    let shared = Arc::new(Shared { reports: Reports::new(Arc::clone(&library)), library, workshop });
    Router::new()
        .route("/", get(list::<L>))
        .route("/runs/{run}", get(run::<L>))
        .route("/runs/{run}/events", get(events::<L>))
        .route("/runs/{run}/{document}", get(document::<L>))
        .route("/compare", get(compare::<L>))
        .route("/compare/report", get(compare_report::<L>))
        .route("/history", get(history::<L>))
        .route("/history/report", get(history_report::<L>))
        .route("/claims", get(claims::<L>))
        .route("/style.css", get(|| asset("text/css", include_str!("../assets/style.css"))))
        .route("/script.js", get(|| asset("text/javascript", include_str!("../assets/script.js"))))
        .fallback(|| async { LibraryError::NoRun("page".to_owned()) })
        .with_state(shared)
        .merge(writing)
        .layer(from_fn_with_state(Arc::new(access), check))
}

pub(crate) async fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}

async fn list<L: Library>(State(site): Site<L>, Query(wanted): Query<Wanted>) -> Answer {
    let library = Arc::clone(&site.library);
    let entries = blocking(move || library.runs()).await?;
    Ok(pages::list(&entries, &wanted, &site.writing().await?))
}

async fn run<L: Library>(State(site): Site<L>, Path(name): Path<String>) -> Answer {
    let (library, wanted) = (Arc::clone(&site.library), name.clone());
    let (progress, tags) = blocking(move || Ok((library.progress(&wanted)?, library.tags(&wanted)?))).await?;
    Ok(pages::run(&name, &progress, &tags, &site.writing().await?))
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

/// The largest number of runs that are compared with one.
const MOST_COMPARED: usize = 10;

/// Compares the run `first` with each run `second`.
async fn compare<L: Library>(State(site): Site<L>, Query(chosen): Query<Vec<(String, String)>>) -> Answer {
    let named =
        |wanted: &'static str| chosen.iter().filter(move |(name, _)| name == wanted).map(|(_, run)| run.clone());
    let (firsts, others): (Vec<_>, Vec<_>) = (named("first").collect(), named("second").collect());
    let ([first], 1..=MOST_COMPARED) = (&firsts[..], others.len()) else {
        let what = format!("Choose one first run in the list, and 1 to {MOST_COMPARED} runs to compare it with.");
        return Err(LibraryError::Refused(what));
    };
    Ok(pages::compare(first, &others, site.workshop.is_some()))
}

#[derive(serde::Deserialize)]
struct Two {
    first: String,
    second: String,
}

async fn compare_report<L: Library>(State(site): Site<L>, Query(Two { first, second }): Query<Two>) -> Answer {
    let library = Arc::clone(&site.library);
    Ok(pages::report(&blocking(move || library.compare([&first, &second])).await?))
}

async fn claims<L: Library>(State(site): Site<L>) -> Answer {
    let library = Arc::clone(&site.library);
    let studies = blocking(move || library.claims()).await?;
    Ok(pages::claims(&studies, site.workshop.is_some()))
}

#[derive(serde::Deserialize)]
struct Series {
    #[serde(default)]
    study: String,
    /// Empty for the first metric of the study.
    #[serde(default)]
    metric: String,
}

async fn history<L: Library>(State(site): Site<L>, Query(Series { study, metric }): Query<Series>) -> Response {
    pages::history(&study, metric.trim(), site.workshop.is_some())
}

async fn history_report<L: Library>(State(site): Site<L>, Query(Series { study, metric }): Query<Series>) -> Answer {
    let library = Arc::clone(&site.library);
    let metric = Some(metric).filter(|metric| !metric.is_empty());
    Ok(pages::report(&blocking(move || library.history(&study, metric.as_deref())).await?))
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
