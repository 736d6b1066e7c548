//! Readers of foreign text and bytes never panic. `make fuzz` looks longer, and by coverage.

use std::fs;

use serde_json::Value;
use wirelab_fuzz::{Target, find};
use wirelab_run::store::folder::Folder;
use wirelab_testkit::fuzz::fuzz;
use wirelab_testkit::run;

fn all(targets: &[Target]) {
    for target in targets {
        fuzz(target.name, &target.inputs(), target.read);
    }
}

#[test]
fn plans() {
    all(wirelab_fuzz::plans::TARGETS);
}

#[test]
fn requests_of_users() {
    all(wirelab_fuzz::requests::TARGETS);
}

#[test]
fn pages() {
    all(wirelab_fuzz::pages::TARGETS);
}

#[test]
fn endpoints() {
    all(wirelab_fuzz::endpoints::TARGETS);
}

#[test]
fn results() {
    all(wirelab_fuzz::results::TARGETS);
}

#[test]
fn machines_of_clients() {
    all(wirelab_fuzz::machines::TARGETS);
}

#[test]
fn machines_of_servers() {
    all(wirelab_fuzz::servers::TARGETS);
}

#[test]
fn proxies() {
    all(wirelab_fuzz::proxies::TARGETS);
}

#[test]
fn packets() {
    all(wirelab_fuzz::packets::TARGETS);
}

#[test]
fn a_run_of_this_version() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet", "--set", "blocks.max=6"]).with_status(0);
    let of_run = Folder::at(&wirelab_testkit::only_run(folder.path()));
    let manifest = fs::read(of_run.manifest()).unwrap();
    let lines = fs::read_to_string(of_run.journal()).unwrap();
    // With its checksum, a changed line would never be read.
    let without_checksum = |line: &str| {
        let mut entry: Value = serde_json::from_str(line).unwrap();
        entry.as_object_mut().unwrap().remove("checksum");
        format!("{entry}\n").into_bytes()
    };
    let journal: Vec<_> = lines.lines().take(12).map(without_checksum).collect();
    fuzz("journal of a run", &journal, find("journal").unwrap().read);
    fuzz("manifest of a run", &[manifest], find("manifest").unwrap().read);
}
