//! The pages.

use askama::Template;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::library::{Entry, LibraryError, Progress, State, StudyClaims};
use crate::workshop::{Draft, Sources, Started};

/// Everything comes from this server, and no page is embedded elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; \
                      img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A report brings its own policy in a `meta` element. It is shown in a frame of this server's pages.
const REPORT_POLICY: &str = "frame-ancestors 'self'";

/// The number of runs on a page of the list.
const PER_PAGE: usize = 100;

/// The user's filter and order of the list.
#[derive(Debug, Clone, Default, serde::Deserialize)]
pub(crate) struct Wanted {
    /// Words that name, study, title, lab, machine, state or a tag contain, or tags as `tag:NAME`.
    #[serde(default)]
    pub(crate) q: String,
    /// Page, 1 for the first.
    #[serde(default)]
    pub(crate) page: usize,
}

/// What the pages may change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writing {
    pub(crate) allowed: bool,
    /// The newest run that this server started.
    pub(crate) started: Option<Started>,
}

impl Writing {
    /// The run of this server in progress; its name is empty until it has one.
    fn in_progress(&self) -> Option<(&str, &str)> {
        let started = self.started.as_ref().filter(|started| started.end.is_none())?;
        Some((&started.what, started.run.as_deref().unwrap_or_default()))
    }

    /// Whether the run of this name is the one in progress.
    fn runs(&self, name: &str) -> bool {
        self.in_progress().is_some_and(|(_, run)| run == name)
    }

    /// The last words of the run of this name, if this server started it as its newest.
    fn last_words(&self, name: &str) -> Option<&str> {
        let started = self.started.as_ref().filter(|started| started.run.as_deref() == Some(name))?;
        started.end.as_deref().filter(|words| !words.is_empty())
    }
}

#[derive(Template)]
#[template(path = "list.html")]
struct List<'a> {
    writing: &'a Writing,
    entries: &'a [&'a Entry],
    wanted: &'a Wanted,
    /// The number of runs that match, and of all.
    matching: usize,
    all: usize,
    page: usize,
    pages: usize,
}

#[derive(Template)]
#[template(path = "run.html")]
struct Run<'a> {
    writing: &'a Writing,
    name: &'a str,
    progress: &'a Progress,
    tags: &'a [String],
}

#[derive(Template)]
#[template(path = "claims.html")]
struct Claims<'a> {
    writing: &'a Writing,
    studies: &'a [StudyClaims],
}

#[derive(Template)]
#[template(path = "compare.html")]
struct Compare<'a> {
    writing: &'a Writing,
    first: &'a str,
    others: &'a [String],
}

#[derive(Template)]
#[template(path = "history.html")]
struct History<'a> {
    writing: &'a Writing,
    study: &'a str,
    metric: &'a str,
}

#[derive(Template)]
#[template(path = "new.html")]
struct New<'a> {
    writing: &'a Writing,
    sources: &'a Sources,
}

#[derive(Template)]
#[template(path = "edit.html")]
struct Edit<'a> {
    writing: &'a Writing,
    draft: &'a Draft,
}

#[derive(Template)]
#[template(path = "text.html")]
struct Text<'a> {
    writing: &'a Writing,
    title: &'a str,
    text: &'a str,
}

/// The list of runs.
pub(crate) fn list(entries: &[Entry], wanted: &Wanted, writing: &Writing) -> Response {
    let matching: Vec<&Entry> = entries.iter().filter(|entry| matches(entry, &wanted.q)).collect();
    let pages = matching.len().div_ceil(PER_PAGE).max(1);
    let page = wanted.page.clamp(1, pages);
    let shown = matching.chunks(PER_PAGE).nth(page - 1).unwrap_or_default();
    let (matching, all) = (matching.len(), entries.len());
    page_of(StatusCode::OK, &List { writing, entries: shown, wanted, matching, all, page, pages })
}

/// Whether an entry contains every word, in any case of letters, and has the tag of every `tag:NAME`.
fn matches(entry: &Entry, words: &str) -> bool {
    let Entry { name, study, title, created, lab, machine, tags, progress } = entry;
    let text = [name, study, title, created, lab, machine, &progress.state.to_string()].map(|text| text.to_lowercase());
    let tags: Vec<_> = tags.iter().map(|tag| tag.to_lowercase()).collect();
    words.to_lowercase().split_whitespace().all(|word| match word.strip_prefix("tag:") {
        Some(tag) => tags.iter().any(|one| one == tag),
        None => text.iter().chain(&tags).any(|text| text.contains(word)),
    })
}

/// The page of a run, with its progress and its report in a frame.
pub(crate) fn run(name: &str, progress: &Progress, tags: &[String], writing: &Writing) -> Response {
    page_of(StatusCode::OK, &Run { writing, name, progress, tags })
}

/// The address of the page of a run.
pub(crate) fn address_of(run: &str) -> String {
    // The filter of the templates, which encodes slashes, too.
    let name = askama::filters::urlencode_strict(run).map(|name| name.to_string());
    format!("/runs/{}", name.unwrap_or_default())
}

/// The claims of all studies.
pub(crate) fn claims(studies: &[StudyClaims], may_write: bool) -> Response {
    page_of(StatusCode::OK, &Claims { writing: &allowed(may_write), studies })
}

/// The page with the history of a metric in a frame.
pub(crate) fn history(study: &str, metric: &str, may_write: bool) -> Response {
    page_of(StatusCode::OK, &History { writing: &allowed(may_write), study, metric })
}

/// The page to choose a study to begin with.
pub(crate) fn choose(sources: &Sources) -> Response {
    page_of(StatusCode::OK, &New { writing: &allowed(true), sources })
}

/// The editor of a study.
pub(crate) fn edit(draft: &Draft) -> Response {
    page_of(StatusCode::OK, &Edit { writing: &allowed(true), draft })
}

fn allowed(allowed: bool) -> Writing {
    Writing { allowed, started: None }
}

/// The page that compares a run with others, each in a frame.
pub(crate) fn compare(first: &str, others: &[String], may_write: bool) -> Response {
    page_of(StatusCode::OK, &Compare { writing: &allowed(may_write), first, others })
}

/// A page that says why another one is not shown, or a change is not made.
pub(crate) fn refusal(status: StatusCode, why: &str) -> Response {
    page_of(status, &Text { writing: &allowed(false), title: "Refused", text: why })
}

/// A report as a page.
pub(crate) fn report(html: &str) -> Response {
    with_policy(REPORT_POLICY, (StatusCode::OK, [(CONTENT_TYPE, "text/html; charset=utf-8")], html.to_owned()))
}

/// A document for programs.
pub(crate) fn document(kind: &'static str, text: &str) -> Response {
    with_policy(POLICY, (StatusCode::OK, [(CONTENT_TYPE, kind)], text.to_owned()))
}

impl IntoResponse for LibraryError {
    fn into_response(self) -> Response {
        refusal(self.status(), &self.to_string())
    }
}

impl LibraryError {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NoRun(_) => StatusCode::NOT_FOUND,
            Self::Refused(_) => StatusCode::BAD_REQUEST,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

fn page_of(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => with_policy(POLICY, (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], html)),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn with_policy(policy: &'static str, response: impl IntoResponse) -> Response {
    let mut response = response.into_response();
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

/// The word of a state as the name of a style.
fn style(state: &State) -> &'static str {
    match state {
        State::Running => "running",
        State::Ended => "ended",
        State::Stopped => "stopped",
        State::Unreadable(_) => "unreadable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, state: State) -> Entry {
        Entry {
            name: name.to_owned(),
            study: "shop".to_owned(),
            title: "A shop <b>".to_owned(),
            created: "2026-11-25T08:00:00Z".to_owned(),
            lab: "loopback".to_owned(),
            machine: "AMD".to_owned(),
            tags: vec!["baseline".to_owned()],
            progress: Progress { state, ..Progress::default() },
        }
    }

    #[test]
    fn an_entry_matches_if_it_has_every_word() {
        let one = entry("shop-1", State::Ended);
        for (words, expected) in [
            ("", true),
            ("  ", true),
            ("SHOP amd", true),
            ("2026-11 ended", true),
            ("tag:Baseline base shop", true),
            ("tag:base", false),
            ("shop running", false),
            ("shop-2", false),
        ] {
            assert_eq!(matches(&one, words), expected, "{words:?}");
        }
    }

    #[test]
    fn a_long_list_has_pages_and_foreign_text_is_escaped() {
        let entries: Vec<_> = (0..250).map(|number| entry(&format!("run-{number:03}"), State::Ended)).collect();
        let shown: Vec<&Entry> = entries[100..200].iter().collect();
        let wanted = Wanted { q: "run\"><script>".to_owned(), page: 2 };
        let html = List {
            writing: &Writing::default(),
            entries: &shown,
            wanted: &wanted,
            matching: 250,
            all: 250,
            page: 2,
            pages: 3,
        }
        .render()
        .unwrap();
        assert!(html.contains("run-100") && html.contains("run-199") && !html.contains("run-200"), "{html}");
        assert!(!html.contains("<script>") && !html.contains("A shop <b>"), "{html}");
    }
}
