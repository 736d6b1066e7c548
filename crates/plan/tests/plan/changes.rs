//! Presets and `--set`.

use wirelab_model::spec::Extent;
use wirelab_model::study::Study;
use wirelab_model::units::Size;
use wirelab_plan::{parse, plan, resolve};

const STUDY: &str = r#"
name = "mine"
title = "t"
question = "q"
limits = "No link."
[workload]
requests = 50
[factors]
protocol = ["h1", "h2"]
[factors.kind]
few = { workers = 1 }
many = { workers = 10 }
[compare]
factor = "protocol"
baseline = "h1"
[presets.smoke]
workload = { duration = "100 ms" }
factors = { protocol = ["h1", "h3"] }
max_blocks = 3
[presets.long]
min_blocks = 50
[presets.afar]
lab = "netns"
limits = "One link."
workload = { placement = "home" }
"#;

fn study() -> Study {
    parse(STUDY, "mine.toml").unwrap()
}

fn resolved(preset: Option<&str>, sets: &[&str]) -> Study {
    try_resolve(preset, sets).unwrap()
}

fn try_resolve(preset: Option<&str>, sets: &[&str]) -> Result<Study, String> {
    let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
    resolve(study(), preset, &sets).map_err(|error| error.to_string())
}

fn labels(study: &Study) -> Vec<String> {
    let (plan, _) = plan(study).unwrap();
    plan.cells.iter().filter(|cell| cell.twin_of.is_none()).map(|cell| cell.label()).collect()
}

#[test]
fn without_preset_and_set_the_study_is_as_written() {
    let expected = Study { presets: Default::default(), ..study() };
    assert_eq!(resolved(None, &[]), expected);
    assert_eq!(resolved(Some("default"), &[]), expected);
}

#[test]
fn a_preset_replaces_what_it_names_and_a_duration_replaces_requests() {
    let study = resolved(Some("smoke"), &[]);
    assert_eq!((study.workload.requests, study.workload.duration.is_some()), (None, true));
    assert_eq!((study.blocks.min, study.blocks.max), (3, 3));
    assert_eq!(labels(&study)[2], "protocol=h3 kind=few");
    let study = resolved(Some("long"), &[]);
    assert_eq!((study.blocks.min, study.blocks.max), (50, 50));
}

#[test]
fn a_preset_may_name_its_lab_and_its_limits() {
    let study = resolved(Some("afar"), &[]);
    assert_eq!((study.lab.as_str(), study.limits.as_deref()), ("netns", Some("One link.")));
    let study = resolved(Some("long"), &[]);
    assert_eq!((study.lab.as_str(), study.limits.as_deref()), ("loopback", Some("No link.")));
}

#[test]
fn limits_name_the_lab_for_which_they_were_written() {
    let moved = resolved(None, &["lab=netns"]).limits;
    assert_eq!(moved.as_deref(), Some("Written for the lab `loopback`, but this run uses `netns`: No link."));
    assert_eq!(resolved(None, &["lab=loopback"]).limits.as_deref(), Some("No link."));
}

#[test]
fn a_set_replaces_levels_chooses_named_ones_and_fixes_settings() {
    let study = resolved(None, &["protocol=h1, h2c", "kind=many", "payload=32 KiB", "duration=1 s", "seed=7"]);
    assert_eq!(labels(&study), ["protocol=h1 kind=many", "protocol=h2c kind=many"]);
    let (plan, _) = plan(&study).unwrap();
    assert_eq!((plan.seed, plan.cells[0].job.work.body_sizes()), (7, [Size(0), Size(32_768)]));
    assert_eq!(plan.cells[0].job.load.extent, Extent::DurationNs(1_000_000_000));
}

#[test]
fn several_values_of_a_fixed_setting_make_a_factor() {
    let study = resolved(None, &["kind=few", "requests=5,10", "gso=true,false"]);
    assert_eq!(labels(&study).len(), 8);
    assert_eq!(labels(&study)[0], "protocol=h1 kind=few requests=5 gso=true");
}

#[test]
fn blocks_and_comparison_can_be_set() {
    let sets = ["blocks.max=5", "blocks.budget=2 min", "blocks.precision=1 %", "compare.margin=2 %", "lab=fake"];
    let study = resolved(None, &[&sets[..], &["compare.baseline=h2"]].concat());
    assert_eq!((study.blocks.min, study.blocks.max, study.lab.as_str()), (5, 5, "fake"));
    assert_eq!((study.blocks.precision.0, study.compare.margin.0), (0.01, 0.02));
    assert_eq!((study.compare.baseline.as_str(), study.blocks.budget.unwrap().secs()), ("h2", 120.0));
    assert_eq!(resolved(None, &["blocks.min=40"]).blocks.max, 40);
}

#[test]
fn an_invalid_set_or_preset_is_refused_with_the_remedy() {
    for (preset, set, words) in [
        (Some("smok"), "seed=1", &["no preset `smok`, only one of `default`, `smoke`, `long`, `afar`", "`smoke`?"][..]),
        (None, "protocl=h1", &["`--set protocl=h1`: no factor and no setting has the name `protocl`", "`protocol`?"]),
        (None, "seed", &["expected `KEY=VALUE`"]),
        (None, "protocol=h1,", &["a value of `protocol` is empty"]),
        (None, "protocol=h1,h1", &["`h1` is named twice"]),
        (None, "protocol=h1,http3", &["unknown value `http3`", "`h3`?"]),
        (None, "kind=mny", &["not a level of `kind`, which has one of `few`, `many`", "`many`?"]),
        (None, "workers=5", &["set by the factor `kind` (for example by its level `few`)", "--set kind="]),
        (None, "payload=5", &["expected text in quotes: `\"5\"`, or if it is a quantity"]),
        (None, "blocks.min=x", &["`x` is not a number of blocks"]),
        (None, "blocks.min=0", &["`min` is 0"]),
        (None, "protocol=h2,h3", &["removes the baseline `h1`", "--set compare.baseline=h2"]),
        (None, "compare.baseline=h3", &["the baseline `h3` is not a level of `protocol`"]),
    ] {
        let message = try_resolve(preset, &[set]).expect_err(set);
        for word in words {
            assert!(message.contains(word), "`{word}` is not in: {message}");
        }
    }
    let message = try_resolve(None, &["blocks.min=9", "blocks.max=5"]).unwrap_err();
    assert!(message.contains("at least 9 blocks"), "{message}");
}

#[test]
fn a_new_baseline_may_come_with_new_levels() {
    assert_eq!(resolved(None, &["protocol=h2,h3", "compare.baseline=h3"]).compare.baseline, "h3");
}
