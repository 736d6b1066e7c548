//! Endpoints of the repository keep the contract: the built-in one, the template, and the web servers.

use std::path::Path;
use std::process::{Command, Stdio};

use wirelab_lab::endpoints::{self, Found};
use wirelab_model::endpoint::{Endpoint, Set};
use wirelab_suite::Verdict;
use wirelab_testkit::{Skip, program, skip, skip_part};

fn assert_keeps_the_contract(endpoint: &Endpoint) {
    assert_keeps_the_contract_in(endpoint, "");
}

/// Tries the cases whose sentence contains these words.
fn assert_keeps_the_contract_in(endpoint: &Endpoint, words: &str) {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let builtin = endpoints::builtin(&program());
    let report = wirelab_suite::check_only(endpoint, &builtin, scratch.path(), words, &mut |_| {});
    let failed: Vec<_> = report.cases.iter().filter(|case| matches!(case.verdict, Verdict::Failed(_))).collect();
    let words: Vec<_> = failed.iter().map(ToString::to_string).collect();
    assert!(words.is_empty(), "{} cases failed:\n{}", words.len(), words.join("\n"));
    assert_eq!(report.not_tried(), 0, "{report:#?}");
    assert!(report.passed() > 2 * report.not_applicable(), "too little was tried: {report:#?}");
}

#[test]
fn the_load_engine_keeps_the_contract() {
    let [_, engine] = endpoints::own(&program());
    assert_keeps_the_contract(&engine);
}

#[test]
fn the_built_in_endpoint_keeps_the_contract_over_http2_and_http3() {
    let [builtin, _] = endpoints::own(&program());
    assert_keeps_the_contract_in(&builtin, "h2: ");
    assert_keeps_the_contract_in(&builtin, "h3: ");
}

#[test]
#[ignore = "minutes of processor time in all: make test-slow"]
fn the_built_in_endpoint_keeps_the_contract() {
    let [builtin, _] = endpoints::own(&program());
    assert_keeps_the_contract(&builtin);
}

#[test]
fn a_single_case_can_be_tried() {
    let (scratch, builtin) = (tempfile::tempdir().expect("a temporary folder"), endpoints::builtin(&program()));
    let report =
        wirelab_suite::check_only(&builtin, &builtin, scratch.path(), "server tcp: a port in use", &mut |_| {});
    assert_eq!((report.passed(), report.cases.len()), (2, 2), "the description and that one: {report:#?}");
}

#[test]
fn the_template_keeps_the_contract() {
    if is_there("python3", "--version") {
        assert_keeps_the_contract(&endpoint("_template"));
    }
}

/// Installs into the user's cache, so that a second run builds nothing again. Tries the cases of each endpoint's last
/// protocol; `make test-endpoints` tries all cases of all endpoints.
#[test]
fn the_endpoints_of_the_core_set_are_installed_and_keep_the_contract_in_one_protocol() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let in_project = |found: &Found| {
        found
            .folder
            .as_deref()
            .and_then(Path::parent)
            .is_some_and(|parent| parent == root.join("endpoints").canonicalize().unwrap())
    };
    std::env::set_current_dir(&root).unwrap();
    let mut todo = Vec::new();
    // Other versions of a library that this user has installed are not part of the set.
    let is_in_set = |found: &Found| in_project(found) && !found.is_other_version();
    for found in endpoints::discover(&program(), None).into_iter().filter(is_in_set) {
        let Some(installation) = found.installation.filter(|it| it.install.set == Set::Core) else { continue };
        let missing = installation.missing();
        if missing.is_empty() {
            todo.push(installation.name);
        } else {
            let (program, remedy) = (format!("{missing:?}"), format!("what the endpoint {} needs", installation.name));
            skip_part(Skip::MissingProgram { program, remedy });
        }
    }
    let mut install = Command::new(program());
    install.args(["endpoints", "install"]).args(&todo).env("WIRELAB_ENDPOINTS", "");
    assert!(todo.is_empty() || install.status().unwrap().success());
    for name in todo {
        let endpoint = endpoints::find(&program(), &name, None).unwrap();
        let description = endpoints::describe(&endpoint).unwrap();
        let protocols = description.server.expect("each endpoint of the set is a server").protocols;
        assert_keeps_the_contract_in(&endpoint, &format!("{}: ", protocols.last().unwrap()));
    }
}

/// An endpoint of the repository, by the name of its folder.
fn endpoint(name: &str) -> Endpoint {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../endpoints").join(name);
    Endpoint {
        name: name.to_owned(),
        command: ["python3", "-B", "endpoint.py"].map(str::to_owned).to_vec(),
        environment: Default::default(),
        folder: Some(folder.canonicalize().expect("the endpoint is part of the project")),
        installation: None,
    }
}

/// Whether a program is installed; if not, the test is skipped.
fn is_there(program: &str, argument: &str) -> bool {
    // Debian installs servers in a folder that is not on every user's path.
    let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("env");
    command.arg(format!("PATH={path}")).args([program, argument]).stdout(Stdio::null()).stderr(Stdio::null());
    let found = command.status().is_ok_and(|status| status.success());
    if !found {
        skip(Skip::MissingProgram { program: program.to_owned(), remedy: "tests/setup.sh".to_owned() });
    }
    found
}
