//! What endpoints and runs write: events, descriptions, results, and the files of a run folder.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use serde_json::json;
use wirelab_lab::Lines;
use wirelab_model::endpoint::Description;
use wirelab_model::exposition::Exposed;
use wirelab_model::histogram::Histograms;
use wirelab_model::spec::Recording;
use wirelab_run::results;
use wirelab_run::store::folder::Folder;
use wirelab_run::store::journal;

use crate::Target;
use crate::bytes::{part, pieces, texts, with_part};

pub const TARGETS: &[Target] = &[
    Target { name: "events", seeds: event_seeds, read: events },
    Target { name: "describe", seeds: descriptions, read: describe },
    Target { name: "results", seeds: result_seeds, read: read_results },
    Target { name: "histograms", seeds: histogram_seeds, read: histograms },
    Target { name: "manifest", seeds: manifests, read: manifest },
    Target { name: "journal", seeds: journals, read: read_journal },
];

fn event_seeds() -> Vec<Vec<u8>> {
    let text = "{\"event\":\"ready\",\"port\":8443,\"configured\":{\"a\":1}}\n{\"event\":\"warm\"}\n\n\
                {\"event\":\"begin\"}\n{\"event\":\"end\",\"window_ns\":7}\n{\"event\":\"done\"}\n{\"event\":\"error\"";
    vec![with_part(&[9], text.as_bytes())]
}

/// The events are the same in any pieces.
fn events(input: &[u8]) {
    let Some((sizes, bytes)) = part(input) else { return };
    let found = |sizes: &[u8]| {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for piece in pieces(bytes, sizes) {
            lines.push(piece);
            while let Some(event) = lines.next_event() {
                found.push(event);
                // An overlong line stays one.
                if found.last().is_some_and(Result::is_err) {
                    return found;
                }
            }
        }
        lines.end();
        found.extend(lines.next_event());
        found
    };
    assert_eq!(found(&[0]), found(sizes), "the events depend on the pieces of the input");
}

fn descriptions() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"contract":1,"name":"a","library":"b","version":"1","language":"c","server":{"protocols":["h1","h3"],
"features":["early_data"],"exposition":true},"client":{"protocols":["grpc"],"features":[],"own_requests":true}}"#,
        r#"{"labels":{"role":"client"},"requests":3,"failed":0,"connections":1,"response":{"counts":[1],"sum_ns":2}}"#,
    ])
}

fn describe(input: &[u8]) {
    let _ = serde_json::from_slice::<Description>(input).map_err(|error| wirelab_model::is_unknown(&error));
    let _ = serde_json::from_slice::<Exposed>(input);
}

fn result_seeds() -> Vec<Vec<u8>> {
    let sample = "{\"intended_ns\":0,\"start_ns\":0,\"first_byte_ns\":1,\"last_byte_ns\":2,\"bytes_out\":0,\
                  \"bytes_in\":3,\"connection\":0,\"handshake\":\"full\",\"status\":200}\n";
    let load = "{\"status\":\"ok\",\"values\":{},\"resources\":[]}\n";
    let totals = "{\"requests\":7,\"printed\":{\"response_median\":1000}}";
    [(0, sample), (2, load), (3, totals)].map(|(kind, text)| [&[kind], text.as_bytes()].concat()).to_vec()
}

fn read_results(input: &[u8]) {
    let Some((kind, content)) = input.split_first() else { return };
    let recording = match kind % 4 {
        0 => Recording::Samples,
        1 => Recording::Histograms,
        2 => Recording::Loads,
        _ => Recording::Totals,
    };
    let _ = results::parse(content, recording).map_err(|error| error.to_string());
}

fn histogram_seeds() -> Vec<Vec<u8>> {
    let mut known = json!({
        "requests": 3, "bytes_in": 30, "bytes_out": 0, "connections": 1, "errors": {}, "handshakes": {}
    });
    let times = |values: &[u64]| {
        let mut hdr = hdrhistogram::Histogram::<u64>::new(3).expect("three digits are valid");
        values.iter().for_each(|value| hdr.record(*value).expect("the histogram grows"));
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&hdr, &mut bytes).expect("writing to memory does not fail");
        let v2 = STANDARD.encode(bytes);
        json!({ "v2": v2, "count": values.len(), "min_ns": 1000, "max_ns": 900_000, "sum_ns": 1_000_000 })
    };
    for (name, values) in [
        ("response", &[1000_u64, 99_000, 900_000][..]),
        ("service", &[1000, 99_000, 900_000]),
        ("lag", &[1, 2, 3]),
        ("handshake", &[]),
        ("first_byte", &[900, 98_000, 800_000]),
        ("failure", &[]),
    ] {
        known[name] = times(values);
    }
    vec![serde_json::to_vec(&known).expect("JSON always serialises")]
}

fn histograms(input: &[u8]) {
    if let Ok(histograms) = serde_json::from_slice::<Histograms>(input) {
        let _ = wirelab_stats::summarise_histograms(&histograms, 1_000_000);
        let _ = wirelab_stats::response_counts(&histograms);
        let _ = wirelab_stats::merge_histograms(&[histograms.clone(), histograms]);
    }
}

fn manifests() -> Vec<Vec<u8>> {
    texts(&[r#"{"format":1,"plan":{"cells":[],"comparisons":[],"seed":1}}"#])
}

fn manifest(input: &[u8]) {
    drop(Folder::at(Path::new("run")).parse_manifest(input));
}

fn journals() -> Vec<Vec<u8>> {
    texts(&["{\"entry\":\"started\",\"at\":\"2025-01-02T03:04:05Z\"}\n\
         {\"entry\":\"stopped\",\"reason\":\"interrupted\",\"at\":\"2025-01-02T03:04:06Z\"}\n{\"entry\":"])
}

fn read_journal(input: &[u8]) {
    if let Ok(contents) = journal::parse(Path::new("journal.jsonl"), input) {
        assert_eq!(contents.whole + contents.torn, input.len() as u64, "bytes are neither whole nor torn");
    }
}
