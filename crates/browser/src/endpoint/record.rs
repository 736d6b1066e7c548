//! From a load to the record of it that a run keeps.

use wirelab_model::metric::Values;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::page::{ExpectedPage, PageLoad, PageResource};

use crate::load::Load;
use crate::resource::Resource;

/// The record of a load, whose bodies are checked to be as large as the page's files.
pub fn record(expected: &ExpectedPage, load: &Load) -> PageLoad {
    let outcome = match (load.outcome.clone(), announced(&load.resources)) {
        (Outcome::Ok, Some(bytes)) if bytes != expected.body_bytes => Outcome::failed(
            Blame::Server,
            format!("the responses announce {bytes} bytes of bodies where the page has {}", expected.body_bytes),
        ),
        (Outcome::Ok, None) => Outcome::failed(
            Blame::Server,
            "a response does not announce its length, so that nobody knows if it was whole",
        ),
        (other, _) => other,
    };
    let values = if outcome == Outcome::Ok { load.values.clone() } else { Values::default() };
    let resources = load.resources.iter().map(resource).collect();
    PageLoad { outcome, values, warnings: load.warnings.clone(), resources }
}

/// The sum of the lengths that the responses announce. Browsers take a response for failed that ends before its announced length, and
/// a load with a failed response is no sample.
fn announced(resources: &[Resource]) -> Option<u64> {
    let length = |resource: &Resource| {
        let mut fields = resource.response_headers.iter();
        let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
        value.trim().parse::<u64>().ok()
    };
    resources.iter().map(length).sum()
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

/// Milliseconds since the first request as nanoseconds. Of what a browser dates before it, by rounding, nothing is lost but that.
fn nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds.max(0.0) * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Moments;

    const EXPECTED: ExpectedPage = ExpectedPage { requests: 2, body_bytes: 300, har: None };

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
                Outcome::Failed { blame: Blame::Server, reason } => assert!(reason.contains(words), "{reason}"),
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
