//! Foreign tables of measurements: both forms, inferred properties, and the messages for wrong tables.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wirelab_model::table::Design;
use wirelab_plan::StudyError;
use wirelab_plan::table::{Mapping, Measured, PUBLISHED, read};

const WIDE: &str = "page,run,h1_ms,h2_ms\na,1,10,12\na,2,11,\nb,1,20,19\nb,2,21,18\n";
const WIDE_MAPPING: &str = "[columns]\nby = [\"page\"]\nblock = \"run\"\n[compare]\nfactor = \"protocol\"\n\
                            [metrics.load]\nwide = { h1 = \"h1_ms\", h2 = \"h2_ms\" }\n";
const LONG: &str = "protocol,ms\nh1,10\nh2,12\nh1,11\n";

fn of(text: &str, mapping: &str) -> Result<Measured, StudyError> {
    let parsed = Mapping::parse(mapping, "t.toml").unwrap();
    read(text, "t.csv", &parsed, Some((mapping, "t.toml")))
}

/// The whole message for a refused table.
#[track_caller]
fn message(text: &str, mapping: &str) -> String {
    of(text, mapping).map(|measured| measured.table).expect_err("it is right").to_string()
}

#[track_caller]
fn complains(text: &str, mapping: &str, words: &[&str]) {
    let said = message(text, mapping);
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in:\n{said}");
    }
}

/// Cell label, block and base value of every observation of a metric.
fn observations(measured: &Measured, metric: &str) -> Vec<(String, u32, f64)> {
    let one = |record: &wirelab_model::journal::TrialRecord| {
        let label = measured.manifest.plan.cells[record.trial.cell].label();
        Some((label, record.trial.block, record.values.get(metric)?.number()?))
    };
    measured.records.iter().filter_map(one).collect()
}

fn said<'a>(measured: &'a Measured, what: &str) -> (&'a str, bool) {
    let taken = measured.table.taken.iter().find(|taken| taken.what == what).unwrap_or_else(|| panic!("no {what}"));
    (&taken.from, taken.guessed)
}

#[test]
fn a_wide_table_has_a_cell_for_each_group_and_level_and_a_gap_is_no_number() {
    let measured = of(WIDE, WIDE_MAPPING).unwrap();
    let labels: Vec<_> = measured.manifest.plan.cells.iter().map(wirelab_model::plan::Cell::label).collect();
    assert_eq!(labels, ["page=a protocol=h1", "page=a protocol=h2", "page=b protocol=h1", "page=b protocol=h2"]);
    let values = observations(&measured, "load");
    assert_eq!(values.len(), 7);
    assert_eq!(values[2], ("page=a protocol=h2".to_owned(), 0, 12e6));
    assert_eq!(values[6], ("page=b protocol=h2".to_owned(), 1, 18e6));
    let pairs: Vec<_> = measured.manifest.plan.comparisons.iter().map(|c| (c.cell, c.baseline, c.aa)).collect();
    assert_eq!(pairs, [(1, 0, false), (3, 2, false)]);
    assert_eq!((measured.table.design, measured.table.observations), (Design::Blocks, 7));
    let left_out = measured.table.left_out.join("\n");
    assert!(left_out.contains("1 field without a number: `h2_ms` in line 3"), "{left_out}");
    assert!(left_out.contains("1 observations without a counterpart"), "{left_out}");
}

#[test]
fn a_long_table_of_two_columns_needs_no_mapping_and_says_what_it_took() {
    let measured = of(LONG, "").unwrap();
    assert_eq!(measured.table.design, Design::Independent);
    assert_eq!(observations(&measured, "ms").len(), 3);
    assert_eq!(said(&measured, "factor"), ("the column `protocol`, the only one without numbers", true));
    assert_eq!(said(&measured, "values"), ("the column `ms`, the only one left with numbers", true));
    assert_eq!(said(&measured, "baseline"), ("`h1`, the first level", true));
    assert!(said(&measured, "blocks").0.starts_with("none"));
    // A name that consists of a unit alone does not set the unit.
    assert!(said(&measured, "metric ms").0.contains("plain numbers"));
}

#[test]
fn a_table_of_numbers_alone_has_a_level_for_each_column() {
    let measured = of("old_ms,new_ms\n1,2\n3,4\n", "").unwrap();
    let labels: Vec<_> = measured.manifest.plan.cells.iter().map(wirelab_model::plan::Cell::label).collect();
    assert_eq!(labels, ["variant=old_ms", "variant=new_ms"]);
    assert!(said(&measured, "metric value").0.contains("in ms by the column's name"));
    complains("run,ms\n1,10\n2,11\n", "", &["compared factor is unknown", "`run`"]);
}

#[test]
fn a_twin_is_the_baseline_once_more() {
    let text = "v,x\na,1\nb,2\na again,1\n";
    let measured = of(text, "[compare]\ntwin = \"a again\"\n").unwrap();
    let twin = &measured.manifest.plan.cells[2];
    assert_eq!((twin.label().as_str(), twin.twin_of), ("v=a (A/A)", Some(0)));
    let pairs: Vec<_> = measured.manifest.plan.comparisons.iter().map(|c| (c.cell, c.baseline, c.aa)).collect();
    assert_eq!(pairs, [(1, 0, false), (2, 0, true)]);
    complains(text, "[compare]\ntwin = \"a\"\n", &["t.toml:2:8", "its own twin"]);
}

#[test]
fn skipped_rows_do_not_make_a_column_one_of_words() {
    let text = "v,run,x\na,1,1\na,mean,1\nb,1,2\nb,mean,2\n";
    let measured = of(text, "[columns]\nblock = \"run\"\nskip = { run = \"mean\" }\n").unwrap();
    assert_eq!(observations(&measured, "x").len(), 2);
    assert_eq!(measured.table.left_out, ["2 rows in which `run` is mean."]);
}

#[test]
fn a_column_without_a_role_is_refused_with_its_possible_roles() {
    complains(
        "v,page,x\na,1,1\nb,1,2\n",
        "[metrics.x]\nvalue = \"x\"\n",
        &["`page`", "--by page", "--block page", "--ignore page"],
    );
}

#[test]
fn wrong_columns_levels_and_metrics_are_located_with_the_nearest_one() {
    complains(
        WIDE,
        &WIDE_MAPPING.replace("\"page\"", "\"pag\""),
        &["t.toml:2:7", "no column `pag`", "did you mean `page`?"],
    );
    complains(WIDE, &WIDE_MAPPING.replace("\"h2_ms\"", "\"h2_s\""), &["t.toml:7:", "did you mean `h2_ms`?"]);
    let with = |line: &str| WIDE_MAPPING.replace("factor", &format!("{line}\nfactor"));
    complains(
        WIDE,
        &with("baseline = \"h11\""),
        &["t.toml:5:12", "`h11` is not a level of `protocol`", "did you mean `h1`?"],
    );
    complains(WIDE, &with("metrics = [\"lod\"]"), &["t.toml:5:12", "no metric `lod`", "did you mean `load`?"]);
    complains(WIDE, &WIDE_MAPPING.replace("wide", "unit = \"mss\"\nwide"), &["t.toml:7:8", "did you mean `ms`?"]);
    let claim = "[[claims]]\nid = \"C\"\ntext = \"t\"\n[[claims.tests]]\nmetric = \"load\"\nexpect = \"< 1\"\n\
                 of = [{ protocol = \"h2\" }, { protocol = \"h3\" }]\n";
    complains(WIDE, &format!("{WIDE_MAPPING}{claim}"), &["t.toml:14:", "`h3` is not a level of `protocol`"]);
}

#[test]
fn without_a_mapping_file_a_message_names_the_table() {
    let said = read(LONG, "t.csv", &Mapping::parse("[compare]\nbaseline = \"h3\"", "").unwrap(), None)
        .unwrap_err()
        .to_string();
    assert!(said.starts_with("t.csv: the baseline `h3`"), "{said}");
}

#[test]
fn fields_that_are_no_numbers_are_located() {
    complains(
        "v,x\na,1\nb,oops\n",
        "[compare]\nfactor = \"v\"\n[metrics.x]\nvalue = \"x\"\n",
        &["t.csv:3:3", "`oops`", "leave the field empty"],
    );
    complains(
        "v;x_s\na;0,5\nb;1\n",
        "[compare]\nfactor = \"v\"\n[metrics.x]\nvalue = \"x_s\"\n",
        &["t.csv:2:3", "did you mean `0.5`?"],
    );
    complains("v,x\na,-1\nb,1\n", "", &["t.csv:2:3", "below 0"]);
    complains("v,x\na,inf\nb,1\n", "", &["t.csv:2:3", "not a finite number"]);
    complains("v,x\na,1\n,1\n", "", &["t.csv:3:1", "a level"]);
}

#[test]
fn a_block_that_has_a_cell_twice_is_refused_with_both_lines() {
    let text = WIDE.replace("b,1,20", "a,1,20");
    complains(&text, WIDE_MAPPING, &["t.csv:4:3", "`page=a protocol=h1` has `run` 1 twice", "line 2", "--block"]);
}

#[test]
fn one_level_or_no_common_cell_is_nothing_to_compare() {
    complains("v,x\na,1\na,2\n", "", &["only the level `a`"]);
    complains("v,p,x\na,1,1\nb,2,2\n", "[columns]\nby = [\"p\"]\n", &["no group has both `a`"]);
}

#[test]
fn every_published_table_fits_its_mapping() {
    for published in PUBLISHED {
        let mapping = Mapping::parse(published.mapping, published.mapping_path).unwrap();
        let source = Some((published.mapping, published.mapping_path));
        let measured = read(published.text, published.path, &mapping, source).unwrap_or_else(|error| panic!("{error}"));
        assert!(measured.table.observations > 100, "{}", published.name);
    }
}

/// A configuration with fixed cases, equal in every run.
fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

const PIECES: [&str; 12] = ["", ",", "\"", "\n", "\r\n", "NaN", "-1", "1e999", "ü", ";", "mean", "0"];

proptest! {
    #![proptest_config(fixed(200))]

    #[test]
    fn a_damaged_table_is_a_table_or_an_error_and_never_crashes(
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..8, prop::sample::select(&PIECES[..])), 1..5),
    ) {
        let mut text = WIDE.to_owned();
        for (place, removed, piece) in damage {
            let start = text.floor_char_boundary(place.index(text.len() + 1));
            let end = text.floor_char_boundary((start + removed).min(text.len())).max(start);
            text.replace_range(start..end, piece);
        }
        if let Err(error) = of(&text, WIDE_MAPPING) {
            prop_assert!(error.to_string().starts_with('t'), "{}", error);
        }
    }
}
