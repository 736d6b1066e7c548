//! The checks of an endpoint before a run: it describes itself, refuses unknown settings, and has a digest.

use indexmap::IndexMap;
use wirelab_lab::endpoints::{describe, digest};
use wirelab_lab::{Role, refuses_unknown_protocol};
use wirelab_model::endpoint::Endpoint;

fn scripted(script: &str) -> Endpoint {
    Endpoint {
        name: "script".to_owned(),
        command: ["/bin/sh", "-c", script, "endpoint"].map(str::to_owned).to_vec(),
        environment: IndexMap::new(),
        folder: None,
        installation: None,
    }
}

#[test]
fn a_description_is_checked_for_form_version_and_name() {
    let saying = |json: &str| scripted(&format!("[ $1 = describe ] && echo '{json}'"));
    let good = r#"{"contract":1,"name":"script","library":"sh","version":"1","language":"sh"}"#;
    assert_eq!(describe(&saying(good)).unwrap().library, "sh");
    for (script, words) in [
        (saying(&good.replace("\"contract\":1", "\"contract\":9")), "it has contract version 9"),
        (saying(&good.replace("\"script\"", "\"other\"")), "its `name` is `other`"),
        (saying("hello"), "`describe` printed `hello"),
        (scripted("echo oops >&2; exit 4"), "it exited with status 4; its last words: `oops`"),
        (scripted("cat /dev/zero"), "more than 65536 bytes"),
        (scripted("kill -SEGV $$"), "signal 11 ended it"),
    ] {
        let error = describe(&script).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn an_endpoint_must_refuse_what_it_does_not_know_with_127() {
    let scratch = tempfile::tempdir().unwrap();
    // The script refuses only protocols other than `tcp`, so this also proves that the spec has an unknown protocol.
    let good = scripted(
        r#"grep -q '"protocol":"tcp"' "$3" && exit 0; echo '{"event":"unsupported","message":"no"}'; exit 127"#,
    );
    for role in [Role::Server, Role::Client] {
        refuses_unknown_protocol(&good, role, scratch.path(), 1).unwrap();
        let error = refuses_unknown_protocol(&scripted("exit 0"), role, scratch.path(), 1).unwrap_err().to_string();
        assert!(error.contains("must exit with status 127, but it exited with status 0"), "{error}");
    }
    let specs = || std::fs::read_to_string(scratch.path().join("unknown-server.json")).unwrap();
    let first = specs();
    refuses_unknown_protocol(&good, Role::Server, scratch.path(), 2).unwrap();
    assert_ne!(first, specs(), "another seed, another protocol");
}

#[test]
fn a_digest_changes_with_the_program_and_with_any_file_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    write("program", "one");
    write("lib/part.py", "two");
    let endpoint = Endpoint {
        name: "files".to_owned(),
        command: vec![folder.path().join("program").to_str().unwrap().to_owned()],
        environment: IndexMap::new(),
        folder: Some(folder.path().to_owned()),
        installation: None,
    };
    let first = digest(&endpoint).unwrap();
    assert_eq!(first.len(), 64);
    write("lib/__pycache__/part.pyc", "made by running it");
    write(".git/HEAD", "main");
    assert_eq!(digest(&endpoint).unwrap(), first);
    write("lib/part.py", "three");
    let second = digest(&endpoint).unwrap();
    write("lib/renamed.py", "three");
    std::fs::remove_file(folder.path().join("lib/part.py")).unwrap();
    assert!(second != first && digest(&endpoint).unwrap() != second);
    std::fs::remove_file(folder.path().join("program")).unwrap();
    assert!(digest(&endpoint).unwrap_err().to_string().contains("program: No such file"));
    // The digest includes programs found through PATH.
    assert_ne!(
        digest(&scripted("")).unwrap(),
        digest(&Endpoint { command: vec!["cat".to_owned()], ..scripted("") }).unwrap()
    );
}
