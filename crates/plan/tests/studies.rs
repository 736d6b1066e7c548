//! The built-in studies are what their pages say.

use wirelab_model::plan::Plan;
use wirelab_model::spec::Extent;
use wirelab_model::warning::Warning;
use wirelab_plan::{Builtin, builtin, find, parse, plan, resolve};

fn planned(study: &Builtin, preset: Option<&str>) -> (Plan, Vec<Warning>) {
    let written = parse(study.text, study.name).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(written.name, study.name);
    plan(&resolve(written, preset, &[]).unwrap()).unwrap()
}

#[test]
fn every_study_and_every_preset_of_it_can_be_planned_without_a_warning() {
    for study in builtin() {
        let presets = parse(study.text, study.name).unwrap().presets;
        for preset in presets.keys().map(|name| Some(name.as_str())).chain([None]) {
            let (plan, warnings) = planned(study, preset);
            assert!(warnings.is_empty(), "{} {preset:?}: {warnings:?}", study.name);
            assert!(plan.min_blocks >= 10 || preset == Some("smoke"), "{} {preset:?}", study.name);
        }
        for preset in presets.keys() {
            assert!(
                study.readme.contains(&format!("`{preset}`")) || study.readme.contains(&format!("--preset {preset}"))
            );
        }
        for heading in ["**Question.**", "**Prediction.**", "**Limits", "**How to run.**", "**Published numbers.**"] {
            assert!(study.readme.contains(heading), "{}: no {heading}", study.name);
        }
    }
}

#[test]
fn quick_has_sixteen_trials_a_block() {
    let (plan, _) = planned(find("quick").unwrap(), None);
    assert_eq!((plan.cells.len(), plan.comparisons.len(), plan.min_blocks, plan.max_blocks), (16, 12, 10, 12));
}

#[test]
fn null_compares_cells_that_are_the_same() {
    let (plan, _) = planned(find("null").unwrap(), None);
    assert_eq!(plan.comparisons.len(), 6);
    for comparison in &plan.comparisons {
        assert_eq!(plan.cells[comparison.cell].job, plan.cells[comparison.baseline].job);
    }
}

#[test]
fn cloud_quic_has_nine_protocols_three_kinds_of_client_and_five_sizes() {
    let study = find("cloud-quic").unwrap();
    let (plan, _) = planned(study, None);
    assert_eq!((plan.cells.len(), plan.comparisons.len(), plan.min_blocks), (150, 135, 13));
    let (smoke, _) = planned(study, Some("smoke"));
    assert_eq!((smoke.cells.len(), smoke.max_blocks), (60, 3));
    let (faithful, _) = planned(study, Some("faithful"));
    let requests = faithful.cells.iter().map(|cell| match cell.job.extent {
        Extent::Requests(requests) => requests * u64::from(faithful.min_blocks),
        Extent::DurationNs(_) => 0,
    });
    assert!(requests.into_iter().all(|requests| requests == 10_000));
}

#[test]
fn every_cell_of_cloud_quic_sends_what_it_receives() {
    let (plan, _) = planned(find("cloud-quic").unwrap(), None);
    assert!(plan.cells.iter().all(|cell| cell.job.request_size == cell.job.response_size));
}

#[test]
fn every_selector_of_a_claim_or_a_published_number_means_a_cell_of_the_study() {
    for study in builtin() {
        let written = parse(study.text, study.name).unwrap();
        let (plan, _) = planned(study, None);
        let originals: Vec<_> = plan.cells.iter().filter(|cell| cell.twin_of.is_none()).collect();
        for test in written.claims.iter().flat_map(|claim| &claim.tests) {
            for of in &test.of {
                assert!(
                    originals.iter().any(|cell| of.matches(cell) && test.given.matches(cell)),
                    "{}: {of}",
                    study.name
                );
            }
        }
        for published in &written.published {
            let cells = originals.iter().filter(|cell| published.cell.matches(cell)).count();
            assert_eq!(cells, 1, "{}: {}", study.name, published.cell);
        }
    }
}
