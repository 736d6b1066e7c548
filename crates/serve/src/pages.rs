//! The pages.

use askama::Template;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::library::{Entry, LibraryError, Progress, State};

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

#[derive(Template)]
#[template(path = "list.html")]
struct List<'a> {
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
    name: &'a str,
    progress: &'a Progress,
}

#[derive(Template)]
#[template(path = "text.html")]
struct Text<'a> {
    title: &'a str,
    text: &'a str,
}

/// The list of runs.
pub(crate) fn list(entries: &[Entry], wanted: &Wanted) -> Response {
    let matching: Vec<&Entry> = entries.iter().filter(|entry| matches(entry, &wanted.q)).collect();
    let pages = matching.len().div_ceil(PER_PAGE).max(1);
    let page = wanted.page.clamp(1, pages);
    let shown = matching.chunks(PER_PAGE).nth(page - 1).unwrap_or_default();
    page_of(StatusCode::OK, &List { entries: shown, wanted, matching: matching.len(), all: entries.len(), page, pages })
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
pub(crate) fn run(name: &str, progress: &Progress) -> Response {
    page_of(StatusCode::OK, &Run { name, progress })
}

/// A page with text in lines.
pub(crate) fn text(title: &str, text: &str) -> Response {
    page_of(StatusCode::OK, &Text { title, text })
}

/// A page that says why there is no other one.
pub(crate) fn refusal(status: StatusCode, why: &str) -> Response {
    page_of(status, &Text { title: "Not shown", text: why })
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
        let status = match &self {
            Self::NoRun(_) => StatusCode::NOT_FOUND,
            Self::Refused(_) => StatusCode::BAD_REQUEST,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        refusal(status, &self.to_string())
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
        let html =
            List { entries: &shown, wanted: &wanted, matching: 250, all: 250, page: 2, pages: 3 }.render().unwrap();
        assert!(html.contains("run-100") && html.contains("run-199") && !html.contains("run-200"), "{html}");
        assert!(!html.contains("<script>") && !html.contains("A shop <b>"), "{html}");
    }
}
