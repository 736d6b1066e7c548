//! The pages and requests that change something. They exist only with a [`Workshop`].

use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::library::LibraryError;
use crate::pages;
use crate::reports::blocking;
use crate::server::asset;
use crate::workshop::{Draft, Order, Saved, Source, Workshop};

type Desk = State<Arc<dyn Workshop>>;
type Answer = Result<Response, LibraryError>;

/// The routes of a workshop. Requests have passed the access rules.
pub(crate) fn routes(workshop: Arc<dyn Workshop>) -> Router {
    Router::new()
        .route("/new", get(choose))
        .route("/edit", get(edit))
        .route("/completions.json", get(completions))
        .route("/editor.js", get(|| asset("text/javascript", include_str!("../assets/editor.js"))))
        .route("/complete.js", get(|| asset("text/javascript", include_str!("../assets/complete.js"))))
        .route("/check", post(check))
        .route("/save", post(save))
        .route("/start", post(start))
        .route("/resume", post(resume))
        .route("/stop", post(stop))
        .route("/runs/{run}/tags", post(tag))
        .with_state(workshop)
}

async fn choose(State(desk): Desk) -> Answer {
    let sources = blocking(move || desk.sources()).await?;
    Ok(pages::choose(&sources))
}

#[derive(Deserialize)]
struct Chosen {
    builtin: Option<String>,
    file: Option<String>,
    run: Option<String>,
}

async fn edit(State(desk): Desk, Query(chosen): Query<Chosen>) -> Answer {
    let source = match (chosen.builtin, chosen.file, chosen.run) {
        (Some(name), None, None) => Source::Builtin(name),
        (None, Some(name), None) => Source::File(name),
        (None, None, Some(name)) => Source::Run(name),
        _ => return Err(LibraryError::Refused("Choose one study to begin with.".to_owned())),
    };
    let draft = blocking(move || desk.open(&source)).await?;
    Ok(pages::edit(&draft))
}

async fn completions(State(desk): Desk) -> Answer {
    let text = blocking(move || Ok(desk.completions())).await?;
    Ok(pages::document("application/json", &text))
}

/// The answer to a script: an object, which has `error` if the request failed.
fn said(answer: Result<Value, LibraryError>) -> Response {
    let (status, object) = match answer {
        Ok(object) => (StatusCode::OK, object),
        Err(error) => (error.status(), json!({ "error": error.to_string() })),
    };
    let mut response = pages::document("application/json", &object.to_string());
    *response.status_mut() = status;
    response
}

fn parsed<T: DeserializeOwned>(body: &str) -> Result<T, LibraryError> {
    serde_json::from_str(body).map_err(|error| LibraryError::Refused(format!("the request is not understood: {error}")))
}

async fn check(State(desk): Desk, body: String) -> Response {
    said(match parsed::<Draft>(&body) {
        Ok(draft) => blocking(move || Ok(json!(desk.check(&draft)))).await,
        Err(error) => Err(error),
    })
}

#[derive(Deserialize)]
struct Save {
    #[serde(flatten)]
    draft: Draft,
    #[serde(default)]
    replace: bool,
}

async fn save(State(desk): Desk, body: String) -> Response {
    let save = |Save { draft, replace }| {
        blocking(move || Ok(json!({ "exists": desk.save(&draft, replace)? == Saved::Exists })))
    };
    said(match parsed(&body) {
        Ok(wanted) => save(wanted).await,
        Err(error) => Err(error),
    })
}

#[derive(Deserialize)]
struct Start {
    file: String,
    #[serde(default)]
    preset: String,
}

async fn start(State(desk): Desk, body: String) -> Response {
    let start = |Start { file, preset }: Start| {
        let preset = Some(preset).filter(|preset| !preset.is_empty());
        blocking(move || Ok(json!({ "run": desk.start(&Order::Study { file, preset })? })))
    };
    said(match parsed(&body) {
        Ok(wanted) => start(wanted).await,
        Err(error) => Err(error),
    })
}

#[derive(Deserialize)]
struct Named {
    run: String,
}

async fn resume(State(desk): Desk, Form(Named { run }): Form<Named>) -> Answer {
    let run = blocking(move || desk.start(&Order::Resume(run))).await?;
    Ok(back_to(&run))
}

async fn stop(State(desk): Desk, Form(Named { run }): Form<Named>) -> Answer {
    blocking(move || desk.stop()).await?;
    Ok(back_to(&run))
}

#[derive(Deserialize)]
struct Tag {
    tag: String,
    #[serde(default)]
    remove: bool,
}

async fn tag(State(desk): Desk, Path(run): Path<String>, Form(Tag { tag, remove }): Form<Tag>) -> Answer {
    let name = run.clone();
    blocking(move || desk.tag(&name, tag.trim(), remove)).await?;
    Ok(back_to(&run))
}

/// Leads to the page of a run, or to the list, so that a reload repeats no change.
fn back_to(run: &str) -> Response {
    let address = if run.is_empty() { "/".to_owned() } else { pages::address_of(run) };
    (StatusCode::SEE_OTHER, [(LOCATION, address)]).into_response()
}
