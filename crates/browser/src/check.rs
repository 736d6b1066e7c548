//! Checks whether a load is a sample: complete, in time, and every resource over the forced protocol.

use std::collections::BTreeSet;

use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::protocol::Protocol;

use crate::load::Observed;
use crate::page::{Page, Setup};
use crate::refusal::Refusal;
use crate::resource::Resource;

/// The maximum number of addresses in a message; the rest is counted.
const NAMED: usize = 3;

/// Adds the protocols from the page's own timeline to the resources.
pub fn second_opinion(seen: &mut Observed) {
    let Some(timeline) = &seen.timeline else { return };
    let protocols = timeline.protocols();
    for resource in &mut seen.resources {
        let said = protocols.get(&resource.url).filter(|_| resource.redirect.is_none());
        resource.page_protocol = said.map(|said| said.iter().copied().collect::<Vec<_>>().join(", "));
    }
}

/// The outcome of a load. The first failed check decides, because it explains the later ones.
pub fn judge(setup: &Setup, page: &Page, seen: &Observed) -> Outcome {
    let failure = crashed(setup, seen)
        .or_else(|| redirected(page, seen))
        .or_else(|| not_found(page, seen))
        .or_else(|| no_page(setup, page, seen))
        .or_else(|| wrong_protocol(setup, seen))
        .or_else(|| incomplete(setup, page, seen))
        .or_else(|| unsure(setup, seen))
        .or_else(|| unexpected(page, seen));
    failure.map_or(Outcome::Ok, |(blame, reason)| Outcome::failed(blame, reason))
}

type Failure = Option<(Blame, String)>;

/// A crash explains everything else that is missing.
fn crashed(setup: &Setup, seen: &Observed) -> Failure {
    let browser = setup.browser.title();
    seen.crashed.then(|| (Blame::Client, format!("{browser}'s process of the page ended while it loaded")))
}

fn no_page(setup: &Setup, page: &Page, seen: &Observed) -> Failure {
    let words = seen.refused.as_ref()?;
    let refusal = Refusal::of(words);
    if refusal == Refusal::ErrorWithoutBody {
        let reason = format!("{} answers with an error status and no body ({words}). Is the path right?", page.url);
        return Some((Blame::Server, reason));
    }
    let title = setup.protocol.title();
    Some((Blame::Server, format!("no answer from {} over {title}: {words}{}", page.url, remedy(setup, page, refusal))))
}

/// The remedy for a page without an answer.
fn remedy(setup: &Setup, page: &Page, refusal: Refusal) -> String {
    let port = page.url.port_or_known_default().unwrap_or_default();
    let carrier = if setup.protocol.uses_udp() { "UDP" } else { "TCP" };
    match refusal {
        Refusal::Certificate => ". --ca FILE trusts another authority".to_owned(),
        Refusal::Name => ". Is the name right?".to_owned(),
        Refusal::Connection => {
            format!(". Does the server support {} on {carrier} port {port}?", setup.protocol.title())
        }
        Refusal::ErrorWithoutBody | Refusal::Other => String::new(),
    }
}

/// Checks the protocol first, because browsers fall back silently.
fn wrong_protocol(setup: &Setup, seen: &Observed) -> Failure {
    let right = alpn(setup.protocol);
    let is_wrong = |resource: &&Resource| {
        let events = resource.protocol.iter().map(String::as_str);
        let page = resource.page_protocol.iter().flat_map(|said| said.split(", "));
        events.chain(page).any(|said| said != right)
    };
    let wrong: Vec<_> = seen.resources.iter().filter(is_wrong).collect();
    let first = wrong.first()?;
    let over: BTreeSet<_> = wrong.iter().filter_map(|resource| resource.protocol.as_deref()).collect();
    let over: Vec<_> = over.into_iter().filter(|said| *said != right).collect();
    let title = setup.protocol.title();
    if over.is_empty() {
        let said = first.page_protocol.as_deref().unwrap_or_default();
        let reason = format!(
            "the browser contradicts itself: {} came over {right} by its network events, over {said} by the page's timeline",
            first.url
        );
        return Some((Blame::Client, reason));
    }
    let count = format!("{} of {} resources came over {}", wrong.len(), seen.resources.len(), over.join(" and "));
    let reason = format!("{count} where {title} was forced ({})", named(wrong.iter().copied()));
    // Only a browser's error can lead to a newer version than the forced one.
    if over.iter().any(|said| matches!(*said, "h2" | "h3")) && setup.protocol == Protocol::H1 {
        return Some((Blame::Client, reason));
    }
    let carrier = if setup.protocol.uses_udp() { "UDP" } else { "TCP" };
    Some((Blame::Server, format!("{reason}. Do their hosts speak {title} on the same {carrier} port?")))
}

/// A redirect may lead to another server, whose protocol is not forced.
fn redirected(page: &Page, seen: &Observed) -> Failure {
    let place = seen.resources.first()?.redirect.as_ref()?;
    let reason = format!("{} sends browsers to {place}. A redirect is not followed: give that URL instead", page.url);
    Some((Blame::Server, reason))
}

/// Checked before its consequences: for a response without a body, Chromium reports that there is no page.
fn not_found(page: &Page, seen: &Observed) -> Failure {
    let status = seen.resources.first()?.status.filter(|status| *status >= 400)?;
    Some((Blame::Server, format!("{} answers {status}. Is the path right?", page.url)))
}

fn incomplete(setup: &Setup, page: &Page, seen: &Observed) -> Failure {
    let silent: Vec<_> =
        seen.resources.iter().filter(|resource| !resource.is_answered() && resource.error.is_none()).collect();
    if !seen.loaded {
        let begun: Vec<_> = seen.resources.iter().filter(|resource| is_unfinished(resource)).collect();
        let why = match begun.len() {
            0 => String::new(),
            count => format!("; {count} of {} resources are not complete ({})", seen.resources.len(), named(begun)),
        };
        // A browser that falls back to nothing else waits for a handshake until the end.
        let is_silent = seen.resources.iter().all(|resource| !resource.is_answered());
        let remedy = if is_silent { remedy(setup, page, Refusal::Connection) } else { String::new() };
        return Some((Blame::Server, format!("timed out: no load event within {:?}{why}{remedy}", page.timeout)));
    }
    if !silent.is_empty() {
        let count = silent.len();
        let reason = format!("timed out: {count} requests had no answer within {:?} ({})", page.timeout, named(silent));
        return Some((Blame::Server, reason));
    }
    let failed: Vec<_> = seen.resources.iter().filter(|resource| is_broken(resource)).collect();
    let first = failed.first()?.error.clone().unwrap_or_default();
    Some((Blame::Server, format!("{} resources failed, the first by {first} ({})", failed.len(), named(failed))))
}

/// Fails a load whose protocols are not proven.
fn unsure(setup: &Setup, seen: &Observed) -> Failure {
    let mute = |resource: &&Resource| resource.is_answered() && resource.protocol.is_none();
    let browser = setup.browser.title();
    if let Some(resource) = seen.resources.iter().find(mute) {
        return Some((Blame::Client, format!("{browser} does not say over which protocol {} came", resource.url)));
    }
    if seen.resources.is_empty() {
        return Some((Blame::Client, format!("{browser} reports no request at all")));
    }
    let timeline = seen.timeline.as_ref().map(crate::timeline::Timeline::protocols);
    match timeline {
        None => Some((Blame::Server, "the page does not answer after it was loaded: its scripts are busy".to_owned())),
        Some(protocols) if protocols.is_empty() => {
            Some((Blame::Client, format!("{browser}'s timeline of the page has no protocol in it")))
        }
        // The timeline may contain requests from parts of the page that wirelab did not watch.
        Some(protocols) => protocols.iter().find_map(|(url, said)| {
            let right = alpn(setup.protocol);
            let wrong = said.iter().find(|said| **said != right)?;
            let is_seen = seen.resources.iter().any(|resource| resource.url == *url);
            let reason = format!("{url} came over {wrong} by the page's timeline where {right} was forced");
            (!is_seen).then_some((Blame::Server, reason))
        }),
    }
}

fn unexpected(page: &Page, seen: &Observed) -> Failure {
    let (expected, count) = (page.requests?, seen.resources.len());
    let reason = || format!("the page made {count} requests where {expected} were expected");
    (usize::try_from(expected) != Ok(count)).then(|| (Blame::Server, reason()))
}

/// Warnings about a load that is a sample nevertheless.
pub fn warnings(resources: &[Resource]) -> Vec<String> {
    let mut warnings = Vec::new();
    for resource in resources {
        match (resource.status, &resource.error) {
            (_, Some(error)) if resource.withdrawn => warnings.push(format!("{} was given up: {error}", resource.url)),
            (Some(status @ 400..), _) => warnings.push(format!("{} answers {status}", resource.url)),
            _ => {}
        }
    }
    warnings
}

fn is_broken(resource: &Resource) -> bool {
    resource.error.is_some() && !resource.withdrawn
}

fn is_unfinished(resource: &Resource) -> bool {
    resource.error.is_none() && resource.moments.end.is_none()
}

/// The ALPN identifier, which browsers report as protocol.
fn alpn(protocol: Protocol) -> &'static str {
    protocol.alpn().unwrap_or("http/1.1")
}

/// The addresses of the first resources, and the number of others.
fn named<'a>(resources: impl IntoIterator<Item = &'a Resource>) -> String {
    let urls: Vec<_> = resources.into_iter().map(|resource| resource.url.as_str()).collect();
    let more = urls.len().saturating_sub(NAMED);
    let list = urls[..urls.len() - more].join(", ");
    if more > 0 { format!("{list} and {more} more") } else { list }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
