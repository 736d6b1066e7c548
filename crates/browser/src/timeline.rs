//! A page's own timeline: the moments of the load, and a second source for the protocol of every resource.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use url::Url;

/// A function that runs in a page before its own scripts. By default, timelines keep 250 resources only (Resource
/// Timing, section 3.2), and only observers get the largest paint.
pub(crate) const PREPARE: &str = "() => {
  performance.setResourceTimingBufferSize(100000);
  let last = null;
  const note = entries => { for (const entry of entries) last = entry.startTime; };
  try {
    const observer = new PerformanceObserver(list => note(list.getEntries()));
    observer.observe({ type: 'largest-contentful-paint', buffered: true });
    const read = () => { note(observer.takeRecords()); return last; };
    Object.defineProperty(globalThis, Symbol.for('wirelab'), { value: read });
  } catch {}
}";

/// An expression that returns a page's timeline as JSON.
pub(crate) const READ: &str = "(() => {
  const navigation = performance.getEntriesByType('navigation')[0];
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  const largest = globalThis[Symbol.for('wirelab')];
  const entries = [navigation, ...performance.getEntriesByType('resource')];
  return JSON.stringify({
    origin: performance.timeOrigin,
    content_loaded: navigation.domContentLoadedEventStart,
    loaded: navigation.loadEventStart,
    request: navigation.requestStart,
    response: navigation.responseStart,
    final_response: navigation.finalResponseHeadersStart ?? 0,
    first_paint: paint ? paint.startTime : null,
    largest_paint: largest ? largest() : null,
    entries: entries.map(entry => ({ url: entry.name, protocol: entry.nextHopProtocol, initiator: entry.initiatorType })),
  });
})()";

/// The timeline of a page. All times except `origin` are milliseconds since the start of the navigation; 0 means that
/// it did not happen.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Timeline {
    /// The start of the navigation, in milliseconds of the Unix epoch.
    pub origin: f64,
    /// `DOMContentLoaded` fires.
    pub content_loaded: f64,
    /// `load` fires.
    pub loaded: f64,
    /// The request for the document leaves the browser.
    pub request: f64,
    /// The document's first response starts; it may be an interim one (103).
    pub response: f64,
    /// The header of the document's final response starts.
    pub final_response: f64,
    /// The first text or image is painted.
    pub first_paint: Option<f64>,
    /// The largest text or image is painted.
    pub largest_paint: Option<f64>,
    /// The document and every resource.
    pub entries: Vec<Entry>,
}

/// An entry of the timeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Entry {
    /// The address.
    pub url: String,
    /// The protocol as an ALPN identifier; empty if another host hides it.
    pub protocol: String,
    /// The element or script that caused the request.
    #[serde(default)]
    pub initiator: String,
}

impl Timeline {
    /// The number of resources that were requested because of early hints (Resource Timing, section 4.3).
    pub(crate) fn hinted(&self) -> usize {
        self.entries.iter().filter(|entry| entry.initiator == "early-hints").count()
    }

    /// The protocols by address (without the fragment), as far as the page may see them.
    pub(crate) fn protocols(&self) -> BTreeMap<String, BTreeSet<&str>> {
        let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for Entry { url, protocol, .. } in &self.entries {
            let Ok(mut url) = Url::parse(url) else { continue };
            if !protocol.is_empty() && matches!(url.scheme(), "http" | "https") {
                url.set_fragment(None);
                found.entry(url.into()).or_default().insert(protocol);
            }
        }
        found
    }
}
