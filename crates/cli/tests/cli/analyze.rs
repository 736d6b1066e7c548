//! `wirelab analyze` as a user types it, and the claims that a report of a foreign table may make.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tempfile::tempdir;
use wirelab_model::metric::Metric;
use wirelab_model::plan::{Job, Requests, Work};
use wirelab_model::protocol::Protocol;
use wirelab_model::units::Size;
use wirelab_plan::table::{Mapping, Measured, read};
use wirelab_report::Input;
use wirelab_stats::Analysis;
use wirelab_testkit::run;

/// Two pages, two versions, and twelve loads of each with some scatter. On page b the second version takes half as
/// long.
fn long() -> String {
    let mut text = "version,page,run,load_ms\n".to_owned();
    for run in 0..12 {
        for (version, page, level) in [("old", "a", 100), ("new", "a", 101), ("old", "b", 200), ("new", "b", 100)] {
            let wobble = (run * 7 + version.len() * 5 + run * run * 3) % 13;
            text.push_str(&format!("{version},{page},{run},{}\n", level as f64 + wobble as f64 / 4.0));
        }
    }
    text
}

const MAPPING: &str = "[compare]\nfactor = \"version\"\n[columns]\nby = [\"page\"]\nblock = \"run\"\n[metrics.load]\nvalue = \"load_ms\"\n";

/// Runs with these arguments beside a table. Expects status 2 and these words.
#[track_caller]
fn check(table: &str, args: &[&str], words: &[&str]) {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), table).unwrap();
    let args: Vec<_> = ["analyze", "t.csv"].into_iter().chain(args.iter().copied()).collect();
    run(folder.path(), &args).with_status(2).complains(words);
}

#[test]
fn the_published_loads_are_analysed_in_every_form() {
    let folder = tempdir().unwrap();
    for format in ["terminal", "markdown", "html", "csv", "comparisons", "contests", "json"] {
        let said = run(folder.path(), &["analyze", "page-load", "--format", format]).with_status(0);
        assert!(said.out.len() > 1000 && said.err.is_empty(), "{format}: {}{}", said.out, said.err);
        assert!(!said.out.contains("NaN"), "{format} shows NaN");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
}

#[test]
fn the_manual_has_the_tables_that_the_command_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manual = fs::read_to_string(root.join("docs/analyze.md")).unwrap();
    let said = run(&root, &["analyze", "page-load", "--format", "markdown"]).with_status(0);
    let paired = run(&root, &["analyze", "page-load", "--block", "run", "--format", "markdown"]).with_status(0);
    let (_, from) = said.out.split_once("### Onload time, every comparison").expect("a table for each metric");
    let tables = from.lines().filter(|line| line.starts_with("| ") || line.starts_with("Of 16 better means"));
    let tallies = paired.out.lines().filter(|line| line.starts_with("Of 16 better means"));
    let lines: Vec<_> = tables.chain(tallies).collect();
    assert!(lines.len() > 40, "{lines:?}");
    for line in lines {
        assert!(
            manual.contains(line),
            "docs/analyze.md lacks this line of `wirelab analyze page-load --format markdown`:\n{line}"
        );
    }
}

#[test]
fn the_report_of_a_small_table_is_as_agreed() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("loads.csv"), long()).unwrap();
    let args = ["analyze", "loads.csv", "--factor", "version", "--value", "load_ms", "--by", "page", "--ignore", "run"];
    insta::assert_snapshot!(run(folder.path(), &args).with_status(0).out);
}

#[test]
fn a_mapping_beside_the_table_is_found_reported_and_overridden() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("loads.csv"), long()).unwrap();
    fs::write(folder.path().join("loads.toml"), MAPPING).unwrap();
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = plain(&run(folder.path(), &["analyze", "loads.csv"]).with_status(0).out);
    assert!(said.contains("mapping: `loads.toml` (assumed)"), "{said}");
    assert!(said.contains("a verdict needs 10 blocks that both sides have"), "{said}");
    let said = plain(&run(folder.path(), &["analyze", "loads.csv", "--baseline", "new"]).with_status(0).out);
    assert!(said.contains("baseline: `new`") && said.contains("slower"), "{said}");
}

#[test]
fn wrong_input_is_answered_with_place_and_nearest_word() {
    check(&long(), &[], &["t.csv", "compared factor is unknown", "--factor", "`version`", "`page`"]);
    check(&long(), &["--factor", "versoin"], &["no column `versoin`", "did you mean `version`?"]);
    check(&long(), &["--factor", "version", "--value", "load_ms"], &["`page`", "--by page", "--ignore page"]);
    let by = ["--factor", "version", "--value", "load_ms", "--by", "page"];
    let with = |more: &[&'static str]| by.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>();
    check(&long(), &with(&["--ignore", "run", "--baseline", "odl"]), &["`odl`", "did you mean `old`?"]);
    check(&long(), &with(&["--ignore", "run", "--unit", "msec"]), &["unknown unit `msec`", "`ms`"]);
    check(&long(), &with(&["--ignore", "run", "--margin", "5"]), &["5", "a share such as `5 %`"]);
    check(&long(), &["--wide", "h1"], &["`h1`", "h1=h1_ms"]);
    check(
        &long().replace("old,a,3,", "old,a,2,"),
        &with(&["--block", "run"]),
        &["t.csv:14:7", "`run` 2 twice", "line 10"],
    );
    check("v,ms\na,1\nb,fast\n", &["--factor", "v", "--value", "ms"], &["t.csv:3:3", "`fast`", "  |   ^^^^"]);
    check("", &[], &["t.csv is empty"]);
}

#[test]
fn a_file_that_is_not_there_is_named_with_the_nearest_published_table() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["analyze", "page-laod"])
        .with_status(2)
        .complains(&["`page-laod`", "did you mean `page-load`?"]);
    run(folder.path(), &["analyze", "nowhere/t.csv"]).with_status(2).complains(&["nowhere/t.csv"]);
    run(folder.path(), &["analyze", "."]).with_status(2).complains(&["a regular file"]);
    run(folder.path(), &["analyze", "page-load", "--mapping", "no.toml"])
        .with_status(2)
        .complains(&["mapping file no.toml"]);
}

#[test]
fn a_wrong_mapping_file_is_located() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), long()).unwrap();
    fs::write(folder.path().join("t.toml"), MAPPING.replace("\"version\"", "\"versions\"")).unwrap();
    run(folder.path(), &["analyze", "t.csv"]).with_status(2).complains(&["t.toml:2:10", "did you mean `version`?"]);
    fs::write(folder.path().join("t.toml"), MAPPING.replace("block", "blok")).unwrap();
    run(folder.path(), &["analyze", "t.csv"]).with_status(2).complains(&["t.toml:5:1", "did you mean `block`?"]);
}

#[test]
fn a_single_observation_is_shown_and_gives_no_verdict() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), "a_ms,b_ms\n10,20\n").unwrap();
    let said = run(folder.path(), &["analyze", "t.csv"]).with_status(0);
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1 of 10 observations"), "{text}");
    assert!(text.contains("Of 1 better mean 0 are confirmed, 1 is inconclusive."), "{text}");
}

#[test]
fn text_of_a_table_does_not_reach_the_terminal_as_control_characters() {
    let folder = tempdir().unwrap();
    // It would set the title of the window and reverse the order of the letters.
    let hostile = "\u{1b}]0;title\u{7}\u{202e}new";
    fs::write(folder.path().join("t.csv"), long().replace("new", hostile)).unwrap();
    let table = ["analyze", "t.csv", "--factor", "version", "--value", "load_ms", "--by", "page", "--block", "run"];
    let message = run(folder.path(), &table).with_status(2).err;
    assert!(message.contains("t.csv:") && !message.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{message}");
    fs::write(folder.path().join("t.csv"), long()).unwrap();
    let message = run(folder.path(), &[&table[..], &["--baseline", "\u{1b}]0;title\u{7}"]].concat()).with_status(2).err;
    assert!(message.contains(r"`\u001b]0;title\u0007`"), "{message}");
}

/// The analysis of a table.
fn analysis(measured: &Measured) -> Analysis {
    let metrics: Vec<&Metric> = measured.metrics.iter().collect();
    let (study, plan) = (&measured.manifest.study, &measured.manifest.plan);
    wirelab_stats::analyse_table(study, plan, &measured.records, &metrics, measured.table.design)
}

/// Every form of the report of a table.
fn reports(measured: &Measured) -> Vec<String> {
    let metrics: Vec<&Metric> = measured.metrics.iter().collect();
    let pooled = |_| Err(wirelab_report::NoRequests::Table);
    let input = Input {
        manifest: &measured.manifest,
        table: Some(&measured.table),
        trials: &measured.records,
        links: &[],
        stopped: None,
        integrity: None,
        analysis: &analysis(measured),
        metrics: &metrics,
        pooled: &pooled,
        by_request: &|_| Vec::new(),
        typical_load: &|_| None,
        typical_film: &|_| None,
    };
    let forms = [wirelab_report::markdown, wirelab_report::html, wirelab_report::json, wirelab_report::cells_csv];
    let more = [wirelab_report::comparisons_csv, wirelab_report::contests_csv, wirelab_report::pairs_csv];
    let forms = forms.into_iter().map(|form| form(&input)).chain(more.into_iter().map(|form| form(&input)));
    forms.chain([wirelab_report::terminal(&input, 110, false, wirelab_report::Extent::Full)]).collect()
}

fn measured(text: &str, mapping: &str) -> Measured {
    read(text, "t.csv", &Mapping::parse(mapping, "t.toml").unwrap(), None).unwrap()
}

/// Plan and manifest have fields for facts that a table does not have. No report shows these fields.
#[test]
fn no_report_of_a_table_shows_what_a_table_does_not_have() {
    let as_read = measured(&long(), MAPPING);
    let mut filled = as_read.clone();
    let manifest = &mut filled.manifest;
    (manifest.created, manifest.lab) = ("2001-01-01".to_owned(), "netns".to_owned());
    manifest.observers.push("cpu".to_owned());
    let environment = &mut manifest.environment;
    (environment.cpu, environment.kernel, environment.cores) = ("Z80".to_owned(), "CP/M".to_owned(), 7);
    environment.wirelab = "wirelab 99".to_owned();
    for (number, cell) in manifest.plan.cells.iter_mut().enumerate() {
        let mut job = Job::plain(Protocol::H3);
        (job.client, job.load.threads) = (format!("client {number}"), Some(64));
        job.work = Work::Requests(Requests::document(Size(1000 * (number as u64 + 1))));
        cell.job = job;
    }
    for (one, other) in reports(&as_read).into_iter().zip(reports(&filled)) {
        assert_eq!(one, other);
    }
}

#[test]
fn a_twin_in_the_table_is_the_noise_floor() {
    let twins: String = long()
        .lines()
        .skip(1)
        .filter(|line| line.starts_with("old"))
        .map(|line| format!("{}\n", line.replace("old", "old again")))
        .collect();
    let text = long() + &twins;
    let with = measured(&text, &MAPPING.replace("factor", "twin = \"old again\"\nfactor"));
    let analysed = analysis(&with);
    assert!(analysed.comparisons.iter().filter(|compared| !compared.aa).all(|compared| compared.noise_floor.is_some()));
    let terminal = reports(&with).pop().unwrap();
    assert!(!terminal.contains("No noise floor"), "{terminal}");
    let terminal = reports(&measured(&long(), MAPPING)).pop().unwrap();
    assert!(terminal.contains("No noise floor"), "{terminal}");
}

/// A configuration with fixed cases, equal in every run.
fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(fixed(24))]

    #[test]
    fn long_and_wide_tables_of_the_same_numbers_give_the_same_verdicts(
        rows in prop::collection::vec((1u32..1000, 1u32..1000, any::<bool>()), 3..24),
        in_blocks in any::<bool>(),
    ) {
        let (mut wide, mut long) = ("page,run,h1_s,h2_s\n".to_owned(), "protocol,page,run,load_s\n".to_owned());
        for (run, (one, other, page)) in rows.iter().enumerate() {
            let page = if *page { "a" } else { "b" };
            wide.push_str(&format!("{page},{run},{one},{other}\n"));
            long.push_str(&format!("h1,{page},{run},{one}\nh2,{page},{run},{other}\n"));
        }
        let run = if in_blocks { "block = \"run\"" } else { "ignore = [\"run\"]" };
        let head = format!("[compare]\nfactor = \"protocol\"\nbaseline = \"h1\"\n[columns]\nby = [\"page\"]\n{run}\n[metrics.load]\n");
        let of_wide = measured(&wide, &format!("{head}wide = {{ h1 = \"h1_s\", h2 = \"h2_s\" }}\n"));
        let of_long = measured(&long, &format!("{head}value = \"load_s\"\n"));
        let labels = |measured: &Measured| measured.manifest.plan.cells.iter().map(wirelab_model::plan::Cell::label).collect::<Vec<_>>();
        prop_assert_eq!(labels(&of_wide), labels(&of_long));
        prop_assert_eq!(analysis(&of_wide), analysis(&of_long));
    }
}
