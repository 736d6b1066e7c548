//! Converts a load to its record in the run's results.

use wirelab_model::metric::Values;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::page::{ExpectedPage, PageHost, PageLoad, PageResource, content_type};

use crate::load::Load;
use crate::resource::Resource;

/// The record of a load. Checks its bodies against the page's files.
pub fn record(expected: &ExpectedPage, load: &Load) -> PageLoad {
    let outcome = match (load.outcome.clone(), expected.body_bytes) {
        (Outcome::Ok, Some(bytes)) => whole(bytes, &load.resources),
        (other, None) if expected.hosts.is_empty() => of_folder(other, &load.resources),
        (other, _) => other,
    };
    let outcome = match (strange(&expected.hosts, &load.resources), outcome) {
        // Other failures may be consequences of this one.
        (Some(reason), _) => Outcome::failed(Blame::Server, reason),
        (None, Outcome::Ok) => of_hosts(&expected.hosts, &load.resources),
        (None, other) => other,
    };
    let outcome = match outcome {
        Outcome::Ok if expected.early_hints && !was_hinted(load) => Outcome::failed(
            Blame::Client,
            "early hints came before the page's document, and the browser asked for nothing because of them",
        ),
        other => other,
    };
    let values = if outcome == Outcome::Ok { load.values.clone() } else { Values::default() };
    let resources = load.resources.iter().map(resource).collect();
    PageLoad { outcome, values, warnings: load.warnings.clone(), resources }
}

fn was_hinted(load: &Load) -> bool {
    load.timeline.as_ref().is_some_and(|timeline| timeline.hinted() > 0)
}

/// Checks the sum of the bodies' announced lengths.
fn whole(expected: u64, resources: &[Resource]) -> Outcome {
    let failed = |reason: String| Outcome::failed(Blame::Server, reason);
    match announced(resources.iter()) {
        Some(bytes) if bytes == expected => Outcome::Ok,
        Some(bytes) => failed(format!("the responses announce {bytes} bytes of bodies where the page has {expected}")),
        None => failed("a response does not announce its length, so it cannot be checked".to_owned()),
    }
}

/// Checks a load of a page from the user's folder.
fn of_folder(outcome: Outcome, resources: &[Resource]) -> Outcome {
    match (foreign(resources), outcome) {
        // Other failures may be consequences of this one.
        (Some(reason), _) => Outcome::failed(Blame::Server, reason),
        (None, Outcome::Ok) => typed(resources),
        (None, other) => other,
    }
}

/// The failure of a page with several hosts that makes a request to a host outside its list.
fn strange(hosts: &[PageHost], resources: &[Resource]) -> Option<String> {
    let is_strange = |resource: &&Resource| hosts.iter().all(|host| host.name != name(resource));
    let strange = resources.iter().find(is_strange).filter(|_| !hosts.is_empty())?;
    Some(format!("the page asks a host that it does not have for {}", strange.url))
}

/// The name of a resource's host.
fn name(resource: &Resource) -> &str {
    resource.host.rsplit_once(':').map_or("", |(name, _)| name)
}

/// Checks each host's share of the requests and of the bytes.
fn of_hosts(hosts: &[PageHost], resources: &[Resource]) -> Outcome {
    let wrong = hosts.iter().find_map(|host| {
        let own = || resources.iter().filter(|resource| name(resource) == host.name);
        let (requests, bytes) = (own().count(), announced(own()));
        if let Some(expected) = host.requests.filter(|expected| *expected as usize != requests) {
            return Some(format!("{} was asked for {requests} files where it has {expected} of the page's", host.name));
        }
        let expected = host.body_bytes.filter(|expected| Some(*expected) != bytes)?;
        let announced = bytes.map_or("an unknown number of".to_owned(), |bytes| bytes.to_string());
        Some(format!("{} announces {announced} bytes of bodies where it has {expected} of the page's", host.name))
    });
    wrong.map_or(Outcome::Ok, |reason| Outcome::failed(Blame::Server, reason))
}

/// The failure of a page from a folder that makes a request to another host.
fn foreign(resources: &[Resource]) -> Option<String> {
    let host = &resources.first()?.host;
    let foreign = resources.iter().find(|resource| resource.host != *host)?;
    let remedy = "and a folder has one: save the file in the folder, and link to it there";
    Some(format!("the page asks another host for {}, {remedy}", foreign.url))
}

/// Checks that each content type matches the file's extension: browsers receive a style sheet or picture with another
/// type, but do not show it.
fn typed(resources: &[Resource]) -> Outcome {
    let mistyped = resources.iter().filter(|resource| resource.status == Some(200)).find_map(|resource| {
        let path = resource.url.split(['?', '#']).next()?;
        let (right, said) = (content_type(path)?, field(resource, "content-type").unwrap_or("no type"));
        (said.split(';').next()?.trim() != right).then(|| format!("{} came as {said}, not as {right}", resource.url))
    });
    mistyped.map_or(Outcome::Ok, |reason| Outcome::failed(Blame::Server, reason))
}

/// The sum of the announced lengths; `None` if a response announces none. Browsers report a response that ends before
/// its announced length as failed, and a load with a failed response is no sample.
fn announced<'a>(resources: impl Iterator<Item = &'a Resource>) -> Option<u64> {
    resources.map(|resource| field(resource, "content-length")?.trim().parse::<u64>().ok()).sum()
}

/// A header field of a response.
fn field<'a>(resource: &'a Resource, name: &str) -> Option<&'a str> {
    let mut fields = resource.response_headers.iter();
    fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn resource(resource: &Resource) -> PageResource {
    let moments = &resource.moments;
    PageResource {
        url: resource.url.clone(),
        kind: resource.kind.clone(),
        status: resource.status,
        protocol: resource.protocol.clone(),
        error: resource.error.clone(),
        connection: resource.connection,
        start_ns: nanoseconds(moments.start),
        connect_ns: moments.connect.map(|(from, to)| (nanoseconds(from), nanoseconds(to))),
        request_ns: moments.request.map(nanoseconds),
        response_ns: moments.response.map(nanoseconds),
        end_ns: moments.end.map(nanoseconds),
        received: resource.received,
    }
}

/// Converts milliseconds since the first request to nanoseconds. Rounding may put a moment slightly before it; that
/// becomes 0.
fn nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds.max(0.0) * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Moments;
    use crate::timeline::{Entry, Timeline};

    const EXPECTED: ExpectedPage = ExpectedPage {
        requests: Some(2),
        body_bytes: Some(300),
        hosts: Vec::new(),
        early_hints: false,
        har: None,
        film: None,
        netlog_dir: None,
    };

    fn load(lengths: &[Option<&str>]) -> Load {
        let resource = |length: &Option<&str>| Resource {
            response_headers: length.iter().map(|text| ("Content-Length".to_owned(), (*text).to_owned())).collect(),
            moments: Moments { start: 0.5, end: Some(2.25), ..Moments::default() },
            ..Resource::default()
        };
        Load { resources: lengths.iter().map(resource).collect(), ..Load::not_begun(Outcome::Ok) }
    }

    #[test]
    fn a_page_is_whole_or_it_is_no_sample() {
        let whole = record(&EXPECTED, &load(&[Some("100"), Some("200")]));
        assert_eq!((&whole.outcome, whole.resources[0].end_ns), (&Outcome::Ok, Some(2_250_000)));
        for (lengths, words) in
            [(vec![Some("100"), Some("100")], "announce 200 bytes"), (vec![Some("300"), None], "does not announce")]
        {
            match record(&EXPECTED, &load(&lengths)).outcome {
                Outcome::Failed { blame: Blame::Server, reason } => {
                    assert!(reason.to_string().contains(words), "{reason}")
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn each_host_has_its_share_of_a_page() {
        let host = |name: &str, requests, body_bytes| PageHost {
            name: name.to_owned(),
            address: "192.0.2.1".parse().unwrap(),
            requests: Some(requests),
            body_bytes: Some(body_bytes),
        };
        let of = |hosts: Vec<PageHost>, asked: [&str; 2]| {
            let mut load = load(&[Some("100"), Some("200")]);
            for (resource, host) in load.resources.iter_mut().zip(asked) {
                (resource.host, resource.url) = (format!("{host}:443"), format!("https://{host}/"));
            }
            record(&ExpectedPage { hosts, ..EXPECTED }, &load).outcome
        };
        let right = || vec![host("a.test", 1, 100), host("b.test", 1, 200)];
        assert_eq!(of(right(), ["a.test", "b.test"]), Outcome::Ok);
        for (hosts, asked, words) in [
            (right(), ["a.test", "c.test"], "does not have for https://c.test/"),
            (right(), ["a.test", "a.test"], "a.test was asked for 2 files where it has 1 of the page's"),
            (right(), ["b.test", "a.test"], "a.test announces 200 bytes of bodies where it has 100"),
            (vec![host("a.test", 1, 100)], ["a.test", "b.test"], "does not have for https://b.test/"),
        ] {
            match of(hosts, asked) {
                Outcome::Failed { blame: Blame::Server, reason } => {
                    assert!(reason.to_string().contains(words), "{reason}")
                }
                other => panic!("{words}: {other:?}"),
            }
        }
    }

    #[test]
    fn hints_without_a_request_fail_the_load() {
        let expected = ExpectedPage { early_hints: true, ..EXPECTED };
        let mut load = load(&[Some("100"), Some("200")]);
        for (initiator, followed) in [("link", false), ("early-hints", true)] {
            let entry = Entry { initiator: initiator.to_owned(), ..Entry::default() };
            load.timeline = Some(Timeline { entries: vec![entry], ..Timeline::default() });
            assert_eq!(record(&expected, &load).outcome == Outcome::Ok, followed, "{initiator}");
            assert_eq!(record(&EXPECTED, &load).outcome, Outcome::Ok);
        }
    }

    #[test]
    fn a_page_from_a_folder_comes_from_one_host_with_the_types_of_its_files() {
        let resource = |url: &str, host: &str, kind: &str| Resource {
            url: url.to_owned(),
            host: host.to_owned(),
            status: Some(200),
            response_headers: vec![("content-type".to_owned(), kind.to_owned())],
            ..Resource::default()
        };
        let document = resource("https://a/index.html", "a:443", "text/html; charset=utf-8");
        let of_folder = |other: Resource| {
            let load = Load { resources: vec![document.clone(), other], ..Load::not_begun(Outcome::Ok) };
            record(&ExpectedPage { requests: None, body_bytes: None, ..EXPECTED }, &load).outcome
        };
        assert_eq!(of_folder(resource("https://a/p.png?v=1.html", "a:443", "image/png")), Outcome::Ok);
        assert_eq!(of_folder(resource("https://a/unknown", "a:443", "what/ever")), Outcome::Ok);
        let lost = Resource { status: Some(404), ..resource("https://a/p.png", "a:443", "text/html") };
        assert_eq!(of_folder(lost), Outcome::Ok, "a page may lack something");
        for (other, words) in [
            (resource("https://a/s.css", "a:443", "text/plain"), "came as text/plain, not as text/css"),
            (resource("https://b/p.png", "b:443", "image/png"), "another host for https://b/p.png"),
        ] {
            match of_folder(other) {
                Outcome::Failed { blame: Blame::Server, reason } => {
                    assert!(reason.to_string().contains(words), "{reason}")
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_load_that_failed_stays_failed_with_its_own_reason() {
        let failed = Outcome::failed(Blame::Client, "it contradicts itself");
        let load = Load { outcome: failed.clone(), ..load(&[None]) };
        assert_eq!(record(&EXPECTED, &load).outcome, failed);
    }
}
