//! Endpoint folders as newcomers write them.
//!
//! Discovery reads the environment, which this test changes, so it runs alone.

use std::path::Path;

use wirelab_lab::endpoints::{builtin, discover, find, templates};
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;

fn add(root: &Path, name: &str, manifest: &str) {
    std::fs::create_dir_all(root.join(name)).unwrap();
    std::fs::write(root.join(name).join("endpoint.toml"), manifest).unwrap();
}

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![test!(endpoints_are_found_in_every_place_and_broken_ones_are_reported)]
}

fn endpoints_are_found_in_every_place_and_broken_ones_are_reported() {
    let (listed, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = home.path().join("wirelab/endpoints");
    add(listed.path(), "go-http", "name = \"go-http\"\ncommand = [\"run.sh\", \"-v\"]\n");
    std::fs::write(listed.path().join("go-http/run.sh"), "").unwrap();
    add(listed.path(), "_template", "name = \"_template\"\ncommand = [\"python3\"]\n");
    add(listed.path(), "broken", "name = \"broken\"\ncomand = []\n");
    add(listed.path(), "liar", "name = \"other\"\ncommand = [\"true\"]\n");
    add(listed.path(), "empty", "name = \"empty\"\ncommand = []\n");
    std::fs::create_dir(listed.path().join("no-endpoint")).unwrap();
    add(&data, "go-http", "name = \"go-http\"\ncommand = [\"true\"]\n");
    add(&data, "mine", "name = \"mine\"\ncommand = [\"true\"]\n");
    // SAFETY: tests of this program run one at a time, this one first, and no other thread reads the environment at the
    // same time.
    unsafe {
        std::env::set_var("WIRELAB_ENDPOINTS", listed.path());
        std::env::set_var("XDG_DATA_HOME", home.path());
    }
    let program = Path::new("/usr/bin/wirelab");

    let all = discover(program, None);
    let names: Vec<_> = all.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["builtin", "engine", "broken", "empty", "go-http", "liar", "go-http", "mine"]);
    assert_eq!(all[0].endpoint.as_ref().unwrap(), &builtin(program));
    assert_eq!(builtin(program).command, ["/usr/bin/wirelab", "endpoint"]);
    assert_eq!(all[1].endpoint.as_ref().unwrap().command, ["/usr/bin/wirelab", "endpoint", "--engine"]);
    let run = all[4].endpoint.as_ref().unwrap();
    let folder = listed.path().canonicalize().unwrap().join("go-http");
    assert_eq!(
        run.command,
        [folder.join("run.sh").to_str().unwrap(), "-v"],
        "a program in the folder is taken from there"
    );
    assert_eq!(run.folder.as_deref(), Some(&*folder));
    assert_eq!(all[7].endpoint.as_ref().unwrap().command, ["true"]);
    for (number, words) in [
        (2, ["broken/endpoint.toml", "unknown field `comand`"]),
        (3, ["empty/endpoint.toml", "`command` is empty"]),
        (5, ["liar/endpoint.toml", "`name` is `other`, but the folder is `liar`"]),
        (6, ["is hidden", "go-http"]),
    ] {
        let error = all[number].endpoint.as_ref().unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }

    assert_eq!(templates(program, None).iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["_template"]);
    assert!(find(program, "_template", None).is_ok() && find(program, "go-http", None).unwrap().command.len() == 2);
    let error = find(program, "builtn", None).unwrap_err().to_string();
    assert!(error.starts_with("no endpoint has the name `builtn`, did you mean `builtin`"), "{error}");
}
