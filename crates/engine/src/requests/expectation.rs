//! The expected response to a request of a mix.

use ring::digest::{SHA256, digest};
use serde_json::Value;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::mix::Expectation;

use super::json_path::JsonPath;
use super::messages::Reader;
use crate::grpc;
use crate::refusal::{Failure, Refusal};

/// Longest part of a response in a message, in characters.
const SHOWN: usize = 80;

/// The expectation, prepared for repeated checks.
#[derive(Debug)]
pub(super) struct Check {
    written: Expectation,
    json: Vec<(JsonPath, Value)>,
    form: Form,
}

/// What the bytes of a response are.
#[derive(Debug)]
pub(super) enum Form {
    /// The content of a response of HTTP.
    Body,
    /// Messages of gRPC behind their prefixes, which are no part of the content; with a reader, they can become JSON.
    Messages(Option<Reader>),
}

impl Check {
    /// Prepares an expectation.
    pub fn of(written: &Expectation, form: Form) -> Result<Self, Refusal> {
        let json = written.json.iter().map(|(path, value)| Ok((JsonPath::of(path)?, value.clone())));
        let json = json.collect::<Result<_, Refusal>>()?;
        Ok(Self { written: written.clone(), json, form })
    }

    /// Whether nothing is expected beyond success.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// The expected status; `None`: any that means success.
    pub const fn status(&self) -> Option<u16> {
        self.written.status
    }

    /// Whether [`Self::body`] needs the bytes of the body.
    pub fn reads_body(&self) -> bool {
        self.written.reads_body()
    }

    /// Checks size and content of a response of `got` bytes, which are in the form of this check.
    pub fn body(&self, got: u64, bytes: &[u8]) -> Result<(), Failure> {
        match &self.form {
            Form::Body => self.content(got, bytes, || serde_json::from_slice(bytes).ok()),
            // The protocol machine has found no incomplete message.
            Form::Messages(reader) => {
                let messages = grpc::split(bytes).unwrap_or_default();
                self.content(got, &messages.concat(), || reader.as_ref()?.json(&messages))
            }
        }
    }

    fn content(&self, got: u64, body: &[u8], json: impl FnOnce() -> Option<Value>) -> Result<(), Failure> {
        let fail = |message: String| Err(Failure::new(ErrorKind::Digest, message));
        let Expectation { size, sha256, contains, .. } = &self.written;
        match *size {
            Some(size) if got < size => {
                let message = format!("the response has {got} bytes instead of {size}");
                return Err(Failure::new(ErrorKind::Truncated, message));
            }
            Some(size) if got > size => return fail(format!("the response has {got} bytes instead of {size}")),
            _ => {}
        }
        if let Some(wanted) = sha256 {
            let hash: String = digest(&SHA256, body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            if !hash.eq_ignore_ascii_case(wanted) {
                return fail(format!("the SHA-256 of the response is {hash} instead of {wanted}"));
            }
        }
        if let Some(wanted) = contains
            && !holds(body, wanted.as_bytes())
        {
            return fail(format!("the response does not contain `{wanted}`; it begins with {}", excerpt(body)));
        }
        if self.json.is_empty() {
            return Ok(());
        }
        let Some(value) = json() else {
            let what = match &self.form {
                Form::Body => "not JSON",
                Form::Messages(_) => "no message of the method's type",
            };
            return fail(format!("the response is {what}; it begins with {}", excerpt(body)));
        };
        for (path, wanted) in &self.json {
            let found = path.find(&value);
            if found.is_empty() {
                return fail(format!("the response has nothing at `{}`", path.text()));
            }
            if !wanted.is_null() && !found.contains(&wanted) {
                let got = shortened(&found[0].to_string());
                return fail(format!("the response has {got} at `{}` instead of {wanted}", path.text()));
            }
        }
        Ok(())
    }
}

fn holds(body: &[u8], part: &[u8]) -> bool {
    part.is_empty() || body.windows(part.len()).any(|window| window == part)
}

/// The beginning of a body, as text in quotes.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN)]);
    format!("`{}`", shortened(&text))
}

fn shortened(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = text.chars().take(SHOWN).map(printable).collect();
    if text.chars().count() > SHOWN { format!("{shown}…") } else { shown }
}

#[cfg(all(test, feature = "load"))]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(written: serde_json::Value, body: &str) -> Result<(), Failure> {
        let check = Check::of(&serde_json::from_value(written).unwrap(), Form::Body).unwrap();
        check.body(body.len() as u64, body.as_bytes())
    }

    #[test]
    fn a_body_is_right_only_if_every_expectation_holds() {
        let body = r#"{"status":"ok","items":[{"id":7},{"id":8}],"note":null}"#;
        for right in [
            json!({}),
            json!({"size": body.len()}),
            json!({"contains": "\"ok\""}),
            json!({"json": {"$.status": "ok", "$.items[1].id": 8, "$.items": null}}),
            json!({"json": {"$..id": 8}}),
        ] {
            check(right.clone(), body).unwrap_or_else(|failure| panic!("{right}: {failure:?}"));
        }
        for (wrong, kind, word) in [
            (json!({"size": 3}), ErrorKind::Digest, "instead of 3"),
            (json!({"size": 300}), ErrorKind::Truncated, "instead of 300"),
            (json!({"contains": "error"}), ErrorKind::Digest, "does not contain `error`"),
            (json!({"json": {"$.status": "down"}}), ErrorKind::Digest, "\"ok\" at `$.status`"),
            (json!({"json": {"$.missing": null}}), ErrorKind::Digest, "nothing at `$.missing`"),
            (json!({"sha256": "00"}), ErrorKind::Digest, "instead of 00"),
        ] {
            let failure = check(wrong.clone(), body).unwrap_err();
            assert_eq!(failure.kind, kind, "{wrong}");
            assert!(failure.message.contains(word), "{wrong}: {}", failure.message);
        }
        let page = check(json!({"json": {"$.a": 1}}), "<html>\u{1b}[31m").unwrap_err().message;
        assert!(page.contains("not JSON") && page.contains("<html>") && !page.contains('\u{1b}'), "{page}");
    }

    #[test]
    fn a_digest_is_that_of_the_body() {
        // FIPS 180-4, the hash of `abc`.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        check(json!({"sha256": abc.to_uppercase()}), "abc").unwrap();
    }

    #[test]
    fn a_path_that_is_none_is_refused() {
        let written = serde_json::from_value(json!({"json": {"$.[": 1}})).unwrap();
        assert!(matches!(Check::of(&written, Form::Body), Err(Refusal::Unsupported(why)) if why.contains("$.[")));
    }
}
