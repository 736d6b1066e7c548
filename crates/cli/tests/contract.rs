//! The endpoints that come with wirelab keep the contract: the built-in one, and the template that newcomers copy.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wirelab_lab::endpoints;
use wirelab_model::endpoint::Endpoint;
use wirelab_suite::Verdict;

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_wirelab"))
}

fn assert_keeps_the_contract(endpoint: &Endpoint) {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let report = wirelab_suite::check(endpoint, &endpoints::builtin(&program()), scratch.path(), &mut |_| {});
    let failed: Vec<_> = report.cases.iter().filter(|case| matches!(case.verdict, Verdict::Failed(_))).collect();
    let words: Vec<_> = failed.iter().map(ToString::to_string).collect();
    assert!(words.is_empty(), "{} cases failed:\n{}", words.len(), words.join("\n"));
    assert!(report.passed() > 2 * report.not_applicable(), "too little was tried: {report:#?}");
}

#[test]
fn the_built_in_endpoint_keeps_the_contract() {
    assert_keeps_the_contract(&endpoints::builtin(&program()));
}

#[test]
fn the_template_keeps_the_contract() {
    let version = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: the template was NOT checked, because there is no python3 here; install it to check it");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../endpoints/_template");
    let folder = folder.canonicalize().expect("the template is part of the project");
    let template = Endpoint {
        name: "_template".to_owned(),
        command: ["python3", "-B", "endpoint.py"].map(str::to_owned).to_vec(),
        environment: Default::default(),
        folder: Some(folder),
    };
    assert_keeps_the_contract(&template);
}
