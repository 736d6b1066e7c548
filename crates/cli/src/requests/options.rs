//! The request that options describe.

use serde_json::Value;
use wirelab_model::mix::Expectation;
use wirelab_model::request::WrittenRequest;
use wirelab_model::units::Size;

use crate::args::{MessagesArg, RequestArgs};
use crate::failure::{Failure, Result};

/// The request of the options.
pub(super) fn request(args: &RequestArgs) -> Result<WrittenRequest> {
    let mut request = WrittenRequest {
        method: args.method.clone(),
        body_size: args.body_size.filter(|size| size.bytes() > 0),
        protoset: args.protoset.clone(),
        data: args.data.clone(),
        expect: expectation(args)?,
        ..WrittenRequest::default()
    };
    match args.body.as_deref() {
        None => {}
        Some(text) if text.starts_with('@') => request.body_file = Some(text[1..].into()),
        Some(text) if text.parse::<Size>().is_ok() => {
            return Err(Failure::input(format!(
                "`--body '{text}'` is a size; --body-size '{text}' sends a generated body of that size. To send this \
                 text, write it to a file and give --body @FILE"
            )));
        }
        Some(text) => request.body = Some(text.to_owned()),
    }
    for header in &args.header {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| Failure::input("a header field given with -H is not of the form `NAME: VALUE`"))?;
        request.add_field(name.trim(), value.trim().to_owned());
    }
    for cookie in &args.cookie {
        if !request.add_cookies(cookie) {
            return Err(Failure::input("a cookie is not of the form `NAME=VALUE`"));
        }
    }
    Ok(request)
}

/// Adds what the options say to a request of a file. Options win.
pub(super) fn overlay(request: &mut WrittenRequest, given: &WrittenRequest) {
    let WrittenRequest { method, headers, cookies, body, body_file, body_size, protoset, data, expect, .. } =
        given.clone();
    request.method = method.or(request.method.take());
    for (name, values) in headers {
        request.headers.retain(|known, _| !known.eq_ignore_ascii_case(&name));
        request.headers.insert(name, values);
    }
    request.cookies.extend(cookies);
    if body.is_some() || body_file.is_some() || body_size.is_some() {
        (request.body, request.body_file, request.body_size) = (body, body_file, body_size);
    }
    request.protoset = protoset.or(request.protoset.take());
    request.data = data.or(request.data.take());
    let of_file = std::mem::take(&mut request.expect);
    request.expect = Expectation {
        status: expect.status.or(of_file.status),
        size: expect.size.or(of_file.size),
        sha256: expect.sha256.or(of_file.sha256),
        contains: expect.contains.or(of_file.contains),
        json: of_file.json.into_iter().chain(expect.json).collect(),
        messages: expect.messages.or(of_file.messages),
    };
}

fn expectation(args: &RequestArgs) -> Result<Expectation> {
    let json = args.expect_json.iter().map(|text| json(text));
    Ok(Expectation {
        status: args.expect_status,
        size: args.expect_size.map(Size::bytes),
        sha256: args.expect_sha256.clone(),
        contains: args.expect_text.clone(),
        json: json.collect::<Result<_>>()?,
        messages: match args.expect_messages {
            Some(MessagesArg::Number(number)) => Some(number),
            Some(MessagesArg::Any) | None => None,
        },
    })
}

/// A path with its value: what follows the first `=` outside of brackets, as JSON, or as text if it is no JSON.
fn json(text: &str) -> Result<(String, Value)> {
    let mut depth = 0_i32;
    let equals = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '[') - i32::from(*c == ']');
        *c == '=' && depth == 0
    });
    let Some((at, _)) = equals else { return Ok((text.trim().to_owned(), Value::Null)) };
    let (path, value) = (text[..at].trim(), text[at + 1..].trim_start_matches('=').trim());
    if value.is_empty() {
        let why = format!("--expect-json '{text}' has no value after `=`; leave out the `=` to demand only the path");
        return Err(Failure::input(why));
    }
    Ok((path.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_json_path_ends_at_the_first_equals_sign_outside_of_brackets() {
        for (text, path, value) in [
            ("$.a", "$.a", Value::Null),
            ("$.a=1", "$.a", json!(1)),
            ("$.a == \"b=c\"", "$.a", json!("b=c")),
            ("$.a=ok", "$.a", json!("ok")),
            ("$.items[?@.id==7].name=x", "$.items[?@.id==7].name", json!("x")),
        ] {
            assert_eq!(super::json(text).unwrap(), (path.to_owned(), value), "{text}");
        }
        assert!(super::json("$.a=").is_err());
    }
}
