//! What users write: studies, values of options, tables of other measurements, inventories of hosts.

use std::cell::OnceCell;
use std::path::Path;

use wirelab_hosts::Inventory;
use wirelab_model::amount::Amount;
use wirelab_model::processors::ProcessorSet;
use wirelab_model::proxy::ProxyUrl;
use wirelab_model::ramp::Ramp;
use wirelab_model::requirement::Statement;
use wirelab_model::study::Study;
use wirelab_model::units::{BitRate, Frequency, Share, Size, Span};
use wirelab_model::warm_up::WarmUp;
use wirelab_plan::table::{self, Mapping};

use crate::Target;
use crate::bytes::{text, texts};

pub const TARGETS: &[Target] = &[
    Target { name: "study", seeds: studies, read: study },
    Target { name: "set", seeds: sets, read: set },
    Target { name: "values", seeds: values, read: value },
    Target { name: "mapping", seeds: mappings, read: mapping },
    Target { name: "table", seeds: tables, read: read_table },
    Target { name: "hosts", seeds: inventories, read: inventory },
];

/// The longest study that is planned: a plan of many cells takes seconds.
const PLANNED: usize = 8000;

const QUICK: &str = include_str!("../../../studies/quick/study.toml");

fn studies() -> Vec<Vec<u8>> {
    texts(&[
        QUICK,
        include_str!("../../../studies/cloud-quic/study.toml"),
        include_str!("../../../studies/grpc-balancing/study.toml"),
        include_str!("../../../studies/page-load/study.toml"),
        include_str!("../../../studies/conditions/study.toml"),
        include_str!("../../../studies/cluster-http3/study.toml"),
        include_str!("../../../studies/pairs/study.toml"),
    ])
}

fn study(input: &[u8]) {
    let text = text(input);
    if let Ok(study) = wirelab_plan::parse(&text, "study.toml")
        && text.len() < PLANNED
    {
        let _ = wirelab_plan::plan(&study);
    }
}

fn sets() -> Vec<Vec<u8>> {
    texts(&[
        "payload=1 KiB,64 KiB\nblocks.max=6",
        "protocol=h1,h3\nseed=7\nlab=loopback",
        "duration=2 s\nrate=500/s\nlink_load=10 Mbit/s",
        "compare.margin=5 %\ncompare.baseline=h2\nblocks.budget=10 min\nblocks.precision=2 %\nblocks.min=4",
        "planted=20 us\nreferences=false",
    ])
}

fn set(input: &[u8]) {
    thread_local!(static STUDY: OnceCell<Study> = const { OnceCell::new() });
    let study = STUDY.with(|study| {
        study.get_or_init(|| wirelab_plan::parse(QUICK, "study.toml").expect("the study is valid")).clone()
    });
    let sets: Vec<_> = text(input).lines().take(8).map(str::to_owned).collect();
    if let Ok(study) = wirelab_plan::resolve(study, None, &sets) {
        let _ = wirelab_plan::plan(&study);
    }
}

fn values() -> Vec<Vec<u8>> {
    texts(&[
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
        "0..500/s in 30 s, 500/s for 1 min",
        "0-3,8",
        "socks5h://ann:{{env.PASSWORD}}@proxy.example:1080",
    ])
}

fn value(input: &[u8]) {
    let text = text(input);
    let _ = (text.parse::<Span>(), text.parse::<Size>(), text.parse::<Frequency>(), text.parse::<Share>());
    let _ = (text.parse::<BitRate>(), text.parse::<WarmUp>(), text.parse::<Statement>(), text.parse::<Amount>());
    let _ = (text.parse::<Ramp>(), text.parse::<ProcessorSet>(), text.parse::<ProxyUrl>());
    let _ = Statement::from_failure(&text);
}

const MAPPING: &str = "unit = \"ms\"\n[compare]\nfactor = \"a\"\nbaseline = \"x\"\nmargin = \"5 %\"\n[columns]\nblock = \"b\"\n\
                       skip = { c = [1, \"z\"] }\n[metrics.v]\nunit = \"ms\"\nbetter = \"lower\"\n";

fn mappings() -> Vec<Vec<u8>> {
    texts(&[MAPPING])
}

fn mapping(input: &[u8]) {
    drop(Mapping::parse(&text(input), "mapping.toml"));
}

fn tables() -> Vec<Vec<u8>> {
    texts(&["a,b,c,v\nx,1,,1\ny,1,2,2\nx,2,1,3\ny,2,z,2.5\n", "a;b;v\r\nx;1;\"1\"\r\ny;1;1e3\r\n"])
}

fn read_table(input: &[u8]) {
    thread_local!(static PARSED: Mapping = Mapping::parse(MAPPING, "mapping.toml").expect("the mapping is valid"));
    PARSED.with(|mapping| drop(table::read(&text(input), "table.csv", mapping, None)));
}

fn inventories() -> Vec<Vec<u8>> {
    texts(&[
        "client=alice@a.example,server=b.example",
        "[[host]]\nname = \"a\"\nssh = \"alice@a.example\"\nroles = [\"client\"]\nzone = \"z1\"\nregion = \"r\"\n\
         [[host]]\nssh = \"ssh://b.example:22\"\nroles = [\"server\"]\naddress = \"192.0.2.7\"\n",
    ])
}

fn inventory(input: &[u8]) {
    let text = text(input);
    let _ = Inventory::parse(&text, Path::new("hosts.toml"));
    // Without an equals sign it would be the path of a file.
    if text.contains('=') {
        let _ = Inventory::read(&text);
    }
}
