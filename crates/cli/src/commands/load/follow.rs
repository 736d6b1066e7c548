//! `wirelab load --follow`: from a URL that redirects to the URL that is measured.

use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};

use url::Url;
use wirelab_endpoint::look::{Head, look};
use wirelab_model::protocol::Protocol;
use wirelab_model::request::WrittenRequest;

use super::{admitted, spec};
use crate::args::LoadArgs;
use crate::failure::{Failure, Result};
use crate::requests::Requests;
use crate::stderr;

/// Follows at most `most` redirects of the only URL, and shows each of them. Returns the request of the last URL
/// and its protocol.
pub fn follow(args: &LoadArgs, most: u32, stop: &AtomicBool) -> Result<(Requests, Protocol)> {
    let [first] = args.urls.as_slice() else {
        return Err(Failure::input("--follow needs one URL; give the targets of redirects instead"));
    };
    if first.contains("{{") {
        return Err(Failure::input("--follow cannot follow a URL with placeholders; give the target of the redirect"));
    }
    let mut url = first.clone();
    for followed in 0.. {
        let (requests, protocol) = admitted(args, slice::from_ref(&url), stop)?;
        if protocol.is_grpc() {
            return Err(Failure::input("--follow is about HTTP; a call of gRPC has no redirects"));
        }
        let spec = spec(args, &requests, protocol)?;
        let head = look(&spec, 0, stop).map_err(|refusal| match stop.load(Ordering::Relaxed) {
            true => Failure::interrupted("interrupted before anything was measured"),
            false => Failure::failed(requests.target.unanswered(protocol, &refusal)),
        })?;
        let Some(place) = place(&head) else { return Ok((requests, protocol)) };
        if followed == most {
            return Err(Failure::input(format!(
                "{url} answers {} and redirects to {place}, after {most} redirects, which --follow allows. Give a higher \
                 number, or the URL of the target",
                head.status
            )));
        }
        let target = next(&requests, &head, place)?;
        stderr::write_line(format_args!("{url} answers {} and redirects to {target}", head.status));
        url = target.into();
    }
    unreachable!("the loop ends after `most` redirects")
}

/// The target of a redirect, as the server wrote it. A 304 and a response without `Location` are none.
fn place(head: &Head) -> Option<&str> {
    matches!(head.status, 301 | 302 | 303 | 307 | 308).then(|| head.values("location").next()).flatten()
}

/// The URL that a redirect names, if a client may send the same request there.
fn next(requests: &Requests, head: &Head, place: &str) -> Result<Url> {
    let (from, written) = (&requests.target.url, &requests.written[0]);
    let remedy = "give the URL of the target instead of --follow";
    let target = from
        .join(place)
        .map_err(|error| Failure::input(format!("{from} redirects to `{place}`, which is no URL: {error}")))?;
    if !matches!(written.method(), "GET" | "HEAD") && !matches!(head.status, 307 | 308) {
        return Err(Failure::input(format!(
            "{from} answers {} to {}. Clients differ in the method that they send to {target}; {remedy}",
            head.status,
            written.method()
        )));
    }
    let WrittenRequest { headers, cookies, body, body_file, .. } = written;
    let is_plain = headers.is_empty() && cookies.is_empty() && body.is_none() && body_file.is_none();
    if target.origin() != from.origin() && !is_plain {
        return Err(Failure::input(format!(
            "{from} redirects to another server, {target}, which may not be meant to get your header fields, cookies and \
             body; {remedy}"
        )));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_redirect_with_a_target_is_followed() {
        let head = |status, fields: &[(&str, &str)]| Head {
            status,
            fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        for status in [301, 302, 303, 307, 308] {
            assert_eq!(place(&head(status, &[("location", "/a")])), Some("/a"));
            assert_eq!(place(&head(status, &[])), None);
        }
        for status in [200, 201, 300, 304] {
            assert_eq!(place(&head(status, &[("location", "/a")])), None);
        }
    }
}
