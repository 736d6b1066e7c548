//! Answers from a list: each with a path and query, a status and a header. The server reads them into memory before
//! `ready`, like documents.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use wirelab_contract::page::Answer;

use crate::refusal::Refusal;
use crate::server::documents::LARGEST_TOTAL;

/// The answers of a host.
#[derive(Debug)]
pub struct Answers(HashMap<String, Response<Bytes>>);

impl Answers {
    /// Reads a list, and the bodies in its folder.
    pub fn load(list: &Path) -> Result<Self, Refusal> {
        let attempt = |path: &Path, error: &dyn std::fmt::Display| {
            Refusal::failed(format!("reading the answers, {}: {error}", path.display()))
        };
        let text = fs::read(list).map_err(|error| attempt(list, &error))?;
        let written: Vec<Answer> = serde_json::from_slice(&text).map_err(|error| attempt(list, &error))?;
        let mut answers = HashMap::new();
        let mut total = 0;
        for answer in written {
            let body = match &answer.body {
                Some(name) => {
                    let no_file = || attempt(list, &format!("`{name}` is not a file name"));
                    let path = beside(list, name).ok_or_else(no_file)?;
                    Bytes::from(fs::read(&path).map_err(|error| attempt(&path, &error))?)
                }
                None => Bytes::new(),
            };
            total += body.len() as u64;
            if total > LARGEST_TOTAL {
                return Err(Refusal::unsupported(format!(
                    "the answers {} have more than {LARGEST_TOTAL} bytes, the limit of this server",
                    list.display()
                )));
            }
            let response = response(&answer, body).map_err(|error| attempt(list, &error))?;
            // The first of several answers for a path applies.
            answers.entry(answer.path).or_insert(response);
        }
        Ok(Self(answers))
    }

    /// The answer to a request, with a body for HEAD, too; 404 for a path that is not in the list.
    pub fn to(&self, method: &Method, uri: &Uri) -> Response<Bytes> {
        let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let known = self.0.get(path).filter(|_| [Method::GET, Method::HEAD].contains(method));
        known.cloned().unwrap_or_else(|| {
            let mut unknown = Response::new(Bytes::new());
            *unknown.status_mut() = StatusCode::NOT_FOUND;
            unknown.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            unknown
        })
    }
}

/// The path of a file in the folder of the list.
fn beside(list: &Path, name: &str) -> Option<PathBuf> {
    let is_name = matches!(Path::new(name).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
    is_name.then(|| list.with_file_name(name))
}

fn response(answer: &Answer, body: Bytes) -> Result<Response<Bytes>, http::Error> {
    let status = StatusCode::from_u16(answer.status)?;
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let fields = response.headers_mut();
    for (name, value) in &answer.fields {
        fields.append(name.parse::<HeaderName>()?, HeaderValue::from_str(value)?);
    }
    // RFC 9110, section 8.6.
    if status != StatusCode::NO_CONTENT {
        fields.insert(CONTENT_LENGTH, length);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_paths_get_their_answers_and_all_others_404() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("answers.json");
        let text = r#"[
            { "path": "/a?x=1", "status": 200, "fields": [["content-type", "text/css"], ["link", "<a>"], ["link", "<b>"]], "body": "0" },
            { "path": "/old", "status": 301, "fields": [["location", "/a?x=1"]] },
            { "path": "/none", "status": 204, "fields": [] },
            { "path": "/old", "status": 200, "fields": [] }
        ]"#;
        fs::write(&list, text).unwrap();
        fs::write(folder.path().join("0"), "body").unwrap();
        let answers = Answers::load(&list).unwrap();
        let to = |method: Method, uri: &str| answers.to(&method, &uri.parse().unwrap());
        let found = to(Method::GET, "https://host.test/a?x=1");
        assert_eq!((found.status(), &found.body()[..]), (StatusCode::OK, &b"body"[..]));
        assert_eq!(found.headers()["content-type"], "text/css");
        assert_eq!(found.headers()["content-length"], "4");
        assert_eq!(found.headers().get_all("link").iter().count(), 2);
        assert_eq!(to(Method::HEAD, "https://host.test/a?x=1").headers(), found.headers());
        let moved = to(Method::GET, "/old");
        assert_eq!(moved.status(), StatusCode::MOVED_PERMANENTLY, "the first of two");
        assert_eq!(moved.headers()["location"], "/a?x=1");
        assert!(to(Method::GET, "/none").headers().is_empty());
        for (method, uri) in
            [(Method::GET, "/a"), (Method::GET, "/a?x=2"), (Method::POST, "/a?x=1"), (Method::GET, "/0")]
        {
            assert_eq!(to(method, uri).status(), StatusCode::NOT_FOUND, "{uri}");
        }
    }

    #[test]
    fn an_invalid_list_of_answers_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("answers.json");
        for (entry, words) in [
            (r#"{ "path": "/", "status": 20, "fields": [] }"#, "status"),
            (r#"{ "path": "/", "status": 200, "fields": [["a b", "c"]] }"#, "header name"),
            (r#"{ "path": "/", "status": 200, "fields": [], "body": "../secret" }"#, "`../secret` is not a file name"),
            (r#"{ "path": "/", "status": 200, "fields": [], "body": "missing" }"#, "missing"),
            (r#"{ "path": "/", "status": 200, "fields": [], "colour": 1 }"#, "colour"),
        ] {
            fs::write(&list, format!("[{entry}]")).unwrap();
            let refusal = Answers::load(&list).unwrap_err();
            assert!(refusal.to_string().contains(words), "{refusal}");
        }
    }
}
