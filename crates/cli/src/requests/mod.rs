//! The requests of `load`, `probe` and `ab`: from options and files to the requests that are sent.

mod har;
mod options;
pub mod reflection;
mod targets;

use std::path::Path;

use serde::Deserialize;
use wirelab_endpoint::look::Head;
use wirelab_model::mix::MixedRequest;
use wirelab_model::protocol::Protocol;
use wirelab_model::request::WrittenRequest;
use wirelab_model::spec::{ClientSpec, Request};
use wirelab_model::units::Span;
use wirelab_plan::own::{self, Found, RequestError};
use wirelab_run::requests::{Reflect, render};

use crate::args::{AbArgs, LoadArgs, MixArgs, ProbeArgs, ReachArgs};
use crate::failure::{Failure, Result};
use crate::target::{Location, Target};

/// The requests to send, and their server.
pub struct Requests {
    /// The server.
    pub target: Target,
    /// The requests as written.
    pub written: Vec<WrittenRequest>,
    /// The requests with all values, among them secrets.
    mix: Vec<MixedRequest>,
}

/// A file of requests, with the same tables as a study.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFile {
    request: Vec<WrittenRequest>,
}

/// Requests without the values of their placeholders, and their server.
pub struct Asked {
    /// The server.
    pub target: Target,
    written: Vec<WrittenRequest>,
}

impl Asked {
    /// The requests of `wirelab load` to these URLs, which are those of its arguments or the target of their redirect.
    pub fn of_load(args: &LoadArgs, urls: &[String]) -> Result<Self> {
        let mut found = match (of_other_tools(&args.mix)?, &args.mix.request_file) {
            (Some(found), _) => found,
            (None, Some(path)) => in_file(path, urls)?,
            (None, None) => of_urls(urls, &args.mix.weights)?,
        };
        let given = options::request(&args.request)?;
        for one in &mut found {
            options::overlay(&mut one.request, &given);
            if args.protocol.is_some_and(Protocol::is_grpc) {
                one.request.method.get_or_insert_with(|| "POST".to_owned());
            }
        }
        Self::of(found, &args.reach)
    }

    /// The request of `wirelab probe`.
    pub fn of_probe(args: &ProbeArgs) -> Result<Self> {
        let request = options::request(&args.request)?;
        Self::of(vec![Found { url: args.url.clone(), request }], &args.reach)
    }

    fn of(found: Vec<Found>, reach: &ReachArgs) -> Result<Self> {
        let mut server: Option<(Location, String)> = None;
        let mut written = Vec::with_capacity(found.len());
        for Found { url, mut request } in found {
            let location = Location::parse(&url)?;
            request.path.get_or_insert_with(|| location.path.clone());
            match &server {
                Some((first, first_url)) if !first.is_beside(&location) => {
                    return Err(Failure::input(format!(
                        "`{url}` and `{first_url}` are on different servers; all requests of a load go to one. Measure \
                         each server by itself"
                    )));
                }
                Some(_) => {}
                None => server = Some((location, url)),
            }
            written.push(request);
        }
        let Some((location, _)) = server else { return Err(Failure::input("no URL was given")) };
        name_apart(&mut written);
        own::check(&written).map_err(Failure::input)?;
        Ok(Self { target: location.reached(reach)?, written })
    }

    /// The requests with the values of their placeholders. If they are calls of gRPC, `reflect` may ask the server for
    /// descriptors.
    pub fn render(self, is_grpc: bool, reflect: &Reflect<'_>) -> Result<Requests> {
        let Self { target, written } = self;
        let mix = render(&written, is_grpc, reflect).map_err(|error| match error {
            RequestError::Reflection(why) => why.downcast().map_or_else(Failure::input, |failure| *failure),
            other => Failure::input(other),
        })?;
        Ok(Requests { target, written, mix })
    }
}

impl Requests {
    /// The spec of a client that sends these requests; see [`Target::spec`].
    pub fn spec(&self, protocol: Protocol, reach: &ReachArgs, connect_timeout: Span, seed: u64) -> ClientSpec {
        let mut spec = self.target.spec(protocol, reach, connect_timeout, seed);
        match self.only_plain() {
            Some(only) => spec.request = only.clone(),
            None => spec.mix.clone_from(&self.mix),
        }
        spec
    }

    /// The only request, if every client can send it: its body is generated, and nothing is expected of its response.
    fn only_plain(&self) -> Option<&Request> {
        let [only] = self.mix.as_slice() else { return None };
        let [variant] = only.variants.as_slice() else { return None };
        (variant.body.is_none() && only.expect.is_empty() && only.method.is_none()).then_some(variant)
    }

    /// The requests with all values.
    pub fn mix(&self) -> &[MixedRequest] {
        &self.mix
    }

    /// Each request with the number of its first variant.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &WrittenRequest)> {
        let mut next = 0;
        self.written.iter().zip(&self.mix).map(move |(written, mixed)| {
            let number = next;
            next += mixed.variants.len();
            (number, written)
        })
    }

    /// Refuses a response that is not worth measuring.
    pub fn accept(&self, written: &WrittenRequest, head: &Head) -> Result {
        let (status, path) = (head.status, written.path());
        match written.expect.status {
            Some(wanted) if wanted == status => Ok(()),
            Some(wanted) => {
                let url = self.target.url_of(path);
                Err(Failure::failed(format!("{url} answers {status} instead of {wanted}, so nothing was measured")))
            }
            None => self.target.accept((written.method(), path), head),
        }
    }

    /// The URL of the only request, or the server of several.
    pub fn url(&self) -> String {
        match self.written.as_slice() {
            [only] => self.target.url_of(only.path()),
            _ => self.target.url_of("/"),
        }
    }
}

/// The requests that `wirelab ab` sends to both builds; empty without options for requests. Only the paths of URLs
/// count, because the builds are the servers.
pub fn of_ab(args: &AbArgs) -> Result<Vec<WrittenRequest>> {
    let given = options::request(&args.request)?;
    let found = match (of_other_tools(&args.mix)?, &args.mix.request_file) {
        (Some(found), _) => found
            .into_iter()
            .map(|one| {
                let path = Location::parse(&one.url)?.path;
                Ok(WrittenRequest { path: Some(one.request.path.unwrap_or(path)), ..one.request })
            })
            .collect::<Result<_>>()?,
        (None, Some(path)) => of_request_file(path)?,
        (None, None) => of_paths(&args.paths, &args.mix.weights)?,
    };
    let mut written = match found.is_empty() {
        true if given == WrittenRequest::default() => return Ok(Vec::new()),
        true => vec![WrittenRequest::default()],
        false => found,
    };
    written.iter_mut().for_each(|one| options::overlay(one, &given));
    name_apart(&mut written);
    own::check(&written).map_err(Failure::input)?;
    Ok(written)
}

/// A request for each path, with its weight.
fn of_paths(paths: &[String], weights: &[u32]) -> Result<Vec<WrittenRequest>> {
    check_weights(weights, paths.len(), "paths (--path)")?;
    let request = |(number, path): (usize, &String)| WrittenRequest {
        path: Some(path.clone()),
        weight: weights.get(number).copied(),
        ..WrittenRequest::default()
    };
    Ok(paths.iter().enumerate().map(request).collect())
}

/// The requests of a command line of curl, of a file of targets or of an archive; `None` without these options.
fn of_other_tools(mix: &MixArgs) -> Result<Option<Vec<Found>>> {
    match (&mix.curl, &mix.targets, &mix.har) {
        (Some(command), ..) => Ok(Some(vec![own::curl::parse(command).map_err(Failure::input)?])),
        (None, Some(path), _) => targets::parse(&text(path)?, path).map(Some),
        (None, None, Some(path)) => har::parse(&text(path)?, path).map(Some),
        (None, None, None) => Ok(None),
    }
}

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::input(format!("cannot read the requests of `{}`: {error}", path.display())))
}

/// The URLs, each with its weight.
fn of_urls(urls: &[String], weights: &[u32]) -> Result<Vec<Found>> {
    check_weights(weights, urls.len(), "URLs")?;
    let found = urls.iter().enumerate().map(|(number, url)| Found {
        url: url.clone(),
        request: WrittenRequest { weight: weights.get(number).copied(), ..WrittenRequest::default() },
    });
    Ok(found.collect())
}

fn check_weights(weights: &[u32], count: usize, what: &str) -> Result {
    if weights.is_empty() || weights.len() == count {
        return Ok(());
    }
    Err(Failure::input(format!("--weights has {} numbers for {count} {what}; give one number for each", weights.len())))
}

/// The requests of a file, whose server is that of the URL.
fn in_file(path: &Path, urls: &[String]) -> Result<Vec<Found>> {
    let [url] = urls else {
        return Err(Failure::input("--request-file FILE needs one URL, that of the server; its path is not used"));
    };
    Ok(of_request_file(path)?.into_iter().map(|request| Found { url: url.clone(), request }).collect())
}

fn of_request_file(path: &Path) -> Result<Vec<WrittenRequest>> {
    let text = text(path)?;
    let file: RequestFile = wirelab_plan::read(&text, &path.display().to_string()).map_err(Failure::input)?;
    let with_path = |request: WrittenRequest| WrittenRequest { path: Some(request.path().to_owned()), ..request };
    Ok(file.request.into_iter().map(with_path).collect())
}

/// Gives requests names of their own, and merges equal ones.
fn name_apart(written: &mut Vec<WrittenRequest>) {
    let mut apart: Vec<WrittenRequest> = Vec::with_capacity(written.len());
    for request in written.drain(..) {
        let same = |known: &&mut WrittenRequest| {
            WrittenRequest { name: request.name.clone(), weight: request.weight, ..(**known).clone() } == request
        };
        if request.name.is_none()
            && let Some(known) = apart.iter_mut().find(same)
        {
            known.weight = Some(known.weight().saturating_add(request.weight()));
            continue;
        }
        apart.push(request);
    }
    for number in 0..apart.len() {
        let name = apart[number].name();
        let earlier = apart[..number]
            .iter()
            .filter(|other| other.name() == name || other.name().starts_with(&format!("{name} (")))
            .count();
        if apart[number].name.is_none() && earlier > 0 {
            apart[number].name = Some(format!("{name} ({})", earlier + 1));
        }
    }
    *written = apart;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_requests_become_one_with_their_weights_and_others_get_names_of_their_own() {
        let one = |body: Option<&str>| WrittenRequest {
            method: Some("GET".to_owned()),
            path: Some("/a".to_owned()),
            body: body.map(str::to_owned),
            ..WrittenRequest::default()
        };
        let mut written = vec![one(None), one(Some("x")), one(None), one(Some("y"))];
        name_apart(&mut written);
        let names: Vec<_> = written.iter().map(|request| (request.name(), request.weight())).collect();
        let expected = [("GET /a", 2), ("GET /a (2)", 1), ("GET /a (3)", 1)];
        assert_eq!(names, expected.map(|(name, weight)| (name.to_owned(), weight)));
    }
}
