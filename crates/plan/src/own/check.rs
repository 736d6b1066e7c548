//! Rules for requests of users, which need no file.

use wirelab_model::request::WrittenRequest;

use super::template::Template;
use crate::error::StudyError;
use crate::locate::{Step, steps};
use crate::words::nearest;

/// The methods that a misspelt one may mean.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// The most requests of a mix.
const MOST: usize = 1000;

/// The largest sum of weights.
const HEAVIEST: u64 = 100_000;

/// Checks requests. The error names the key below the table of the request.
///
/// # Errors
/// If a value cannot be sent, or two keys contradict each other.
pub fn check(requests: &[WrittenRequest]) -> Result<(), StudyError> {
    if requests.len() > MOST {
        return Err(StudyError::new(format!("{} requests, at most {MOST}", requests.len())).at(steps!["request"]));
    }
    for (number, request) in requests.iter().enumerate() {
        one(request).map_err(|error| error.below(&steps!["request", number]))?;
        let name = request.name();
        if requests[..number].iter().any(|other| other.name() == name) {
            let message = format!("the name `{name}` is that of an earlier request; give this one another `name`");
            return Err(StudyError::new(message).at(steps!["request", number]));
        }
    }
    let total: u64 = requests.iter().map(|request| u64::from(request.weight())).sum();
    if total > HEAVIEST {
        let message = format!("the weights add up to {total}, at most {HEAVIEST}; divide them by a common factor");
        return Err(StudyError::new(message).at(steps!["request"]));
    }
    Ok(())
}

fn one(request: &WrittenRequest) -> Result<(), StudyError> {
    let wrong = |key: &[Step], message: String| Err(StudyError::new(message).at(key.to_vec()));
    if request.weight == Some(0) {
        return wrong(&steps!["weight"], "a request with weight 0 is never sent; remove it".to_owned());
    }
    if let Some(method) = &request.method
        && !is_token(method)
    {
        return wrong(&steps!["method"], format!("`{method}` is not an HTTP method such as `POST`"));
    }
    if let Some(method) = &request.method
        && !METHODS.contains(&method.as_str())
        && METHODS.contains(&method.to_ascii_uppercase().as_str())
    {
        let message = format!("the method `{method}` is not in capitals, as HTTP's methods are");
        return Err(StudyError::new(message).meant(nearest(method, METHODS)).at(steps!["method"]));
    }
    let path = request.path();
    if !path.starts_with('/') {
        return wrong(&steps!["path"], format!("the path `{path}` does not begin with a slash"));
    }
    if path.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return wrong(&steps!["path"], format!("the path `{path}` has a blank; write it as %20"));
    }
    let bodies = [
        ("body", request.body.is_some()),
        ("body_file", request.body_file.is_some()),
        ("body_size", request.body_size.is_some()),
    ];
    let bodies: Vec<_> = bodies.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect();
    if let [first, second, ..] = bodies[..] {
        return wrong(&steps![second], format!("a request has one body, but `{first}` is set too; remove one"));
    }
    for (name, values) in &request.headers {
        if !is_token(name) {
            return wrong(&steps!["headers", name], format!("`{name}` is not the name of a header field"));
        }
        if ["content-length", "transfer-encoding", "connection"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return wrong(
                &steps!["headers", name],
                format!("`{name}` belongs to the protocol; wirelab sends it itself"),
            );
        }
        // A value of a placeholder is checked when the request is made.
        if values.all().iter().any(|value| value.chars().any(|c| c.is_control() && c != '\t')) {
            return wrong(&steps!["headers", name], format!("the value of `{name}` has a control character"));
        }
    }
    if let Some(name) = request.cookies.keys().find(|name| !is_token(name)) {
        return wrong(&steps!["cookies", name], format!("`{name}` is not the name of a cookie"));
    }
    expectation(request)
}

fn expectation(request: &WrittenRequest) -> Result<(), StudyError> {
    let expect = &request.expect;
    let wrong = |key: &str, message: String| Err(StudyError::new(message).at(steps!["expect", key]));
    if let Some(status) = expect.status
        && !(200..600).contains(&status)
    {
        return wrong("status", format!("{status} is not a final HTTP status, from 200 to 599"));
    }
    if let Some(sha256) = &expect.sha256
        && (sha256.len() != 64 || !sha256.chars().all(|c| c.is_ascii_hexdigit()))
    {
        return wrong("sha256", format!("`{sha256}` is not a SHA-256, which has 64 hexadecimal digits"));
    }
    if expect.contains.as_ref().is_some_and(|text| Template::of(text).placeholders().next().is_some()) {
        return wrong("contains", "an expectation has no placeholders; it is the same for every row".to_owned());
    }
    for path in expect.json.keys() {
        if let Err(error) = jsonpath_rust::parser::parse_json_path(path) {
            let why = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
            let message = format!("`{path}` is not a JSON path such as `$.items[0].id`: {why}");
            return Err(StudyError::new(message).at(steps!["expect", "json", path]));
        }
    }
    Ok(())
}

/// Whether it is a token (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(toml: &str) -> String {
        check(&[toml::from_str(toml).unwrap()]).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_sent_is_refused_at_its_key() {
        for (toml, place, words) in [
            ("weight = 0", "request[0].weight", "never sent"),
            ("method = 'PO ST'", "request[0].method", "not an HTTP method"),
            ("method = 'post'", "request[0].method", "did you mean `POST`?"),
            ("path = 'items'", "request[0].path", "slash"),
            ("path = '/a b'", "request[0].path", "%20"),
            ("body = 'a'\nbody_size = '1 KiB'", "request[0].body_size", "one body"),
            ("headers = { 'a b' = 'c' }", "request[0].headers.a b", "header field"),
            ("headers = { Content-Length = '3' }", "request[0].headers.Content-Length", "itself"),
            ("headers = { a = \"b\\nc\" }", "request[0].headers.a", "control character"),
            ("cookies = { 'a=b' = 'c' }", "request[0].cookies.a=b", "cookie"),
            ("expect = { status = 100 }", "request[0].expect.status", "200 to 599"),
            ("expect = { sha256 = 'abc' }", "request[0].expect.sha256", "64"),
            ("expect = { contains = '{{user}}' }", "request[0].expect.contains", "placeholders"),
            ("expect = { json = { 'items' = 1 } }", "request[0].expect.json.items", "JSON path"),
        ] {
            let why = why(toml);
            assert!(why.contains(place) && why.contains(words), "{toml}: {why}");
        }
    }

    #[test]
    fn requests_have_names_of_their_own_and_weights_that_fit_a_round() {
        let same: Vec<WrittenRequest> = vec![WrittenRequest::default(); 2];
        assert!(check(&same).unwrap_err().to_string().contains("`GET /` is that of an earlier request"));
        let heavy = WrittenRequest { weight: Some(200_000), ..WrittenRequest::default() };
        assert!(check(&[heavy]).unwrap_err().to_string().contains("common factor"));
        check(&[WrittenRequest::default()]).unwrap();
    }
}
