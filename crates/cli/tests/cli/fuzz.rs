//! Readers of foreign text (of users, endpoints and other tools) never panic.

use std::fs;
use std::path::Path;

use serde_json::Value;
use wirelab_model::histogram::Histograms;
use wirelab_model::requirement::Statement;
use wirelab_model::units::{BitRate, Frequency, Share, Size, Span};
use wirelab_model::warm_up::WarmUp;
use wirelab_pages::Archive;
use wirelab_plan::table::{self, Mapping};
use wirelab_run::store::folder::Folder;
use wirelab_run::store::journal;
use wirelab_testkit::fuzz::fuzz;
use wirelab_testkit::{root, run};

fn files(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Vec<Vec<u8>> {
    paths.into_iter().map(|path| fs::read(root().join(path)).unwrap()).collect()
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Gives the text of an input to a reader.
fn text(read: impl Fn(&str)) -> impl Fn(&[u8]) {
    move |input| read(&String::from_utf8_lossy(input))
}

#[test]
fn studies() {
    let names = ["quick", "cloud-quic", "grpc-balancing", "page-load", "conditions", "cluster-http3", "pairs"];
    let corpus = files(names.map(|name| format!("studies/{name}/study.toml")));
    fuzz(
        "study",
        &corpus,
        text(|text| {
            // A plan of many cells takes seconds.
            if let Ok(study) = wirelab_plan::parse(text, "study.toml")
                && text.len() < 8000
            {
                let _ = wirelab_plan::plan(&study);
            }
        }),
    );
}

#[test]
fn values_on_the_command_line() {
    let corpus = texts(&[
        "100 ms",
        "1.5 s",
        "64 KiB",
        "1 MiB",
        "500/s",
        "2k/s",
        "0.1 %",
        "10 Mbit/s",
        "1000",
        "p99 at most 50 ms",
        "p99 > 50 ms",
        "errors > 0.1 %",
        "rate < 900/s",
        "response_p99 no more than 5 % worse than the baseline",
    ]);
    fuzz(
        "values",
        &corpus,
        text(|text| {
            let _ = (text.parse::<Span>(), text.parse::<Size>(), text.parse::<Frequency>(), text.parse::<Share>());
            let _ = (text.parse::<BitRate>(), text.parse::<WarmUp>(), text.parse::<Statement>());
            let _ = Statement::from_failure(text);
        }),
    );
}

#[test]
fn tables_and_their_mappings() {
    let mapping = "unit = \"ms\"\n[compare]\nfactor = \"a\"\nbaseline = \"x\"\nmargin = \"5 %\"\n[columns]\nblock = \"b\"\n\
                   skip = { c = [1, \"z\"] }\n[metrics.v]\nunit = \"ms\"\nbetter = \"lower\"\n";
    let corpus = texts(&[mapping]);
    fuzz("mapping", &corpus, text(|text| drop(Mapping::parse(text, "mapping.toml"))));
    let mapping = Mapping::parse(mapping, "mapping.toml").unwrap();
    let corpus = texts(&["a,b,c,v\nx,1,,1\ny,1,2,2\nx,2,1,3\ny,2,z,2.5\n", "a;b;v\r\nx;1;\"1\"\r\ny;1;1e3\r\n"]);
    fuzz("table", &corpus, text(|text| drop(table::read(text, "table.csv", &mapping, None))));
}

#[test]
fn archives_of_pages() {
    let har = r#"{"log":{"version":"1.2","creator":{"name":"x","version":"1"},"entries":[
{"request":{"method":"GET","url":"https://a.example/","headers":[]},"response":{"status":200,
"headers":[{"name":"content-type","value":"text/html"}],"content":{"size":5,"mimeType":"text/html","text":"aGVsbG8=",
"encoding":"base64"}}},{"request":{"method":"GET","url":"https://b.example/x.png","headers":[]},"response":{"status":200,
"headers":[],"content":{"size":3,"mimeType":"image/png","text":"abc"}}}]}}"#;
    fuzz("har", &texts(&[har]), text(|text| drop(Archive::of(text))));
}

/// A run of the fake lab.
fn a_run() -> (tempfile::TempDir, Folder) {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet", "--set", "blocks.max=6"]).with_status(0);
    let run = wirelab_testkit::only_run(folder.path());
    (folder, Folder::at(&run))
}

#[test]
fn manifests_and_journals() {
    let (_kept, of_run) = a_run();
    let manifest = vec![fs::read(of_run.manifest()).unwrap()];
    let lines = fs::read_to_string(of_run.journal()).unwrap();
    // With its checksum, a changed line would never be read.
    let without_checksum = |line: &str| {
        let mut entry: Value = serde_json::from_str(line).unwrap();
        entry.as_object_mut().unwrap().remove("checksum");
        format!("{entry}\n").into_bytes()
    };
    let journal: Vec<_> = lines.lines().take(12).map(without_checksum).collect();
    let other = tempfile::tempdir().unwrap();
    let other = Folder::at(other.path());
    fuzz("journal", &journal, |input| {
        fs::write(other.path().join("journal.jsonl"), input).unwrap();
        drop(journal::read(&other.journal()));
    });
    fuzz("manifest", &manifest, |input| {
        fs::write(other.manifest(), input).unwrap();
        drop(other.read_manifest());
    });
}

#[test]
fn histograms_of_clients() {
    let mut known = serde_json::json!({ "requests": 3, "bytes_in": 30, "bytes_out": 0, "connections": 1, "errors": {}, "handshakes": {} });
    let times = |values: &[u64]| {
        use base64::Engine as _;
        use hdrhistogram::serialization::{Serializer, V2Serializer};
        let mut hdr = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        values.iter().for_each(|value| hdr.record(*value).unwrap());
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&hdr, &mut bytes).unwrap();
        let v2 = base64::prelude::BASE64_STANDARD.encode(bytes);
        serde_json::json!({ "v2": v2, "count": values.len(), "min_ns": 1000, "max_ns": 900_000, "sum_ns": 1_000_000 })
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
    let known = serde_json::to_vec(&known).unwrap();
    let parsed: Result<Histograms, _> = serde_json::from_slice(&known);
    assert!(parsed.is_ok(), "{parsed:?}");
    fuzz("histograms", &[known], |input| {
        if let Ok(histograms) = serde_json::from_slice::<Histograms>(input) {
            let _ = wirelab_stats::summarise_histograms(&histograms, 1_000_000);
            let _ = wirelab_stats::response_counts(&histograms);
        }
    });
}
