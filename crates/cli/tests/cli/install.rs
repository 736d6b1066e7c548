//! `wirelab endpoints install` for endpoints that must be built.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use wirelab_testkit::{Said, eventually, processes, root, said, wirelab};

/// An endpoint whose build needs a file `permit` in the shared folder, and that reports what was built into it.
const MANIFEST: &str = r#"
name = "made"
command = ["{installed}/program"]

[install]
language = "sh"
library = "none 1.0"
set = "core"
needs = [{ program = "sh", debian = "dash" }]
with = ["../_parts"]
steps = [
    ["sh", "-c", "cat ../_parts/begin part > {work}/draft; echo ran >> $WIRELAB_SHARED/drafts"],
    ["sh", "-c", "test -e {shared}/permit || { echo there is no permit; exit 3; }; cp {work}/draft {installed}/program; chmod +x {installed}/program"],
]
"#;

const PROGRAM: &str = r#"echo '{"contract": 1, "name": "made", "library": "none", "version": "1.0", "language": "sh"}'
"#;

struct Place(TempDir);

impl Place {
    fn new(manifest: &str) -> Self {
        let place = Self(tempdir().unwrap());
        fs::create_dir_all(place.0.path().join("endpoints/_parts")).unwrap();
        place.write("endpoints/_parts/begin", "#!/bin/sh\n");
        fs::create_dir_all(place.0.path().join("endpoints/made")).unwrap();
        place.write("endpoints/made/part", PROGRAM);
        place.write("endpoints/made/endpoint.toml", manifest);
        fs::create_dir_all(place.0.path().join("cache/wirelab/shared")).unwrap();
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path().join(file), text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = wirelab(self.path(), &[&["endpoints"], args].concat());
        command.env("XDG_CACHE_HOME", self.path().join("cache")).env("XDG_DATA_HOME", self.path().join("data"));
        command.env_remove("WIRELAB_ENDPOINTS");
        command
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    fn permit(&self) {
        self.write("cache/wirelab/shared/permit", "");
    }

    /// The number of runs of the first step.
    fn drafts(&self) -> usize {
        fs::read_to_string(self.path().join("cache/wirelab/shared/drafts")).unwrap_or_default().lines().count()
    }

    /// The endpoint's entry in the list.
    fn listed(&self) -> Value {
        let list: Value = serde_json::from_str(&self.run(&["--json"]).with_status(0).out).unwrap();
        list.as_array().unwrap().iter().find(|row| row["name"] == "made").unwrap().clone()
    }
}

#[test]
fn a_step_that_failed_is_blamed_with_its_last_words_and_run_again_by_the_next_attempt() {
    let place = Place::new(MANIFEST);
    place
        .run(&["check", "made"])
        .with_status(2)
        .complains(&["`made` is not installed", "wirelab endpoints install made"]);
    let failed = place.run(&["install", "made"]).with_status(1);
    for words in ["step 2 of 2", "exit status: 3", "there is no permit", "the log: "] {
        assert!(failed.out.contains(words), "{}", failed.out);
    }
    place.permit();
    assert!(place.run(&["install", "--set", "core"]).with_status(0).out.contains("made  installed ("));
    assert_eq!(place.drafts(), 1, "the first step was done");
    let listed = place.listed();
    assert_eq!(listed["description"]["version"], "1.0");
    assert!(listed["install"]["record"]["bytes"].as_u64().unwrap() > 0, "{listed}");
}

#[test]
fn it_is_built_again_when_what_it_is_built_from_changes_and_only_then() {
    let place = Place::new(MANIFEST);
    place.permit();
    place.run(&["install", "made"]).with_status(0);
    assert!(place.run(&["install", "--all"]).with_status(0).out.contains("is installed already"));
    place.write("endpoints/made/README.md", "Read me.");
    assert_eq!(place.listed()["installed"], true);
    place.write("endpoints/_parts/begin", "#!/bin/sh\n\n");
    assert_eq!(place.listed()["installed"], false);
    place.run(&["install", "made"]).with_status(0);
    assert_eq!((place.drafts(), &place.listed()["installed"]), (2, &Value::Bool(true)));
    place.run(&["remove", "made"]).with_status(0);
    assert_eq!(place.listed()["installed"], false);
    assert!(!place.path().join("cache/wirelab/endpoints/made").exists());
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let needs = |program: &str| MANIFEST.replace("program = \"sh\", debian = \"dash\"", program);
    let place = Place::new(&needs("program = \"no-such-compiler\", debian = \"no-such-package\""));
    let out = place.run(&["install", "--all"]).with_status(1).out;
    assert!(out.contains("`made` needs no-such-compiler: `apt-get install no-such-package`"), "{out}");
    assert_eq!(place.drafts(), 0);
    assert_eq!(why_no_record(&place), "it needs no-such-compiler: `apt-get install no-such-package`");
    // Without steps, the endpoint itself needs the program.
    let (before, _) = MANIFEST.split_once("with =").unwrap();
    place.write("endpoints/made/endpoint.toml", before);
    assert!(place.run(&["install", "made"]).with_status(0).out.contains("made  has nothing to build"));
    assert_eq!(why_no_record(&place), "there is nothing to build");
    place.write("endpoints/made/endpoint.toml", &before.replace("program = \"sh\"", "program = \"/no/such/file\""));
    place.run(&["check", "made"]).with_status(2).complains(&["`made` needs /no/such/file"]);
}

#[test]
fn a_manifest_that_cannot_be_right_is_refused_with_what_is_wrong() {
    for (from, to, words) in [
        ("set = \"core\"", "set = \"cor\"", "unknown variant `cor`"),
        ("../_parts", "../_party", "cannot read its sources"),
        ("[install]", "[instal]", "unknown field `instal`"),
    ] {
        let place = Place::new(&MANIFEST.replace(from, to));
        place.run(&["check", "made"]).with_status(2).complains(&["made/endpoint.toml", words]);
    }
    let (without, _) = MANIFEST.split_once("[install]").unwrap();
    Place::new(without).run(&["check", "made"]).with_status(2).complains(&["`{installed}` needs a table [install]"]);
    let place = Place::new(MANIFEST);
    place.run(&["install", "mad"]).with_status(2).complains(&["no endpoint has the name `mad`", "did you mean `made`"]);
    place.run(&["install"]).with_status(2).complains(&["--all"]);
    place.run(&["install", "--all", "--except", "mad"]).with_status(2).complains(&["did you mean `made`"]);
    place.run(&["install", "made", "--except", "made"]).with_status(2).complains(&["--except"]);
    assert!(!place.run(&["install", "--all", "--except", "made"]).with_status(0).out.contains("made"));
}

fn why(value: &Value) -> String {
    value["not_measured"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

fn why_no_record(place: &Place) -> String {
    why(&place.listed()["install"]["record"])
}

#[test]
fn records_are_listed_and_missing_records_have_a_reason() {
    let place = Place::new(MANIFEST);
    let row = || {
        let page = place.run(&["list", "--markdown"]).with_status(0).out;
        page.lines().find(|line| line.starts_with("| `made` |")).unwrap().to_owned()
    };
    assert_eq!(why_no_record(&place), "it is not installed");
    assert_eq!(why(&place.listed()["contract_suite"]), "it is not installed");
    assert!(
        row().ends_with("| not measured: it is not installed | not measured | not measured: it is not installed |")
    );
    place.run(&["install", "made"]).with_status(1);
    let failed = why_no_record(&place);
    assert!(failed.ends_with("at step 2 of 2, `sh`: exit status: 3"), "{failed}");
    assert!(row().contains(&format!("| not measured: {failed} |")), "{}", row());

    place.permit();
    place.run(&["install", "made"]).with_status(0);
    let listed = place.listed();
    let record = &listed["install"]["record"];
    assert!(record["seconds"].as_f64().unwrap() > 0.0 && record["at"].as_str().unwrap().ends_with('Z'), "{record}");
    assert_eq!(why(&listed["contract_suite"]), "the suite has not been run on it as it is now");
    // The endpoint plays no role, and the suite reports this.
    place.run(&["check", "made"]).with_status(1);
    let suite = &place.listed()["contract_suite"];
    assert_eq!((&suite["passed"], &suite["failed"], &suite["version"]), (&0.into(), &1.into(), &"1.0".into()));
    let row = row();
    for words in ["| `made` | sh | none 1.0 |", " s (2", ") | 1 MB | 0 passed, 0 n.a., 1 failed, in "] {
        assert!(row.contains(words), "{words}: {row}");
    }
    let page = place.run(&["list", "--markdown"]).with_status(0).out;
    let core = page.lines().find(|line| line.starts_with("| core |")).unwrap();
    assert!(
        core.starts_with("| core | 1 | 1 | 0 | ") && core.ends_with(" s for 1 of the 1 that are built | 1 MB |"),
        "{core}"
    );
    assert!(
        page.contains("## What failed\n") && page.contains("\n| `made` | describe prints a valid description "),
        "{page}"
    );
    assert!(!page.contains(&*place.path().to_string_lossy()), "a page to be published: {page}");
}

#[test]
fn only_passed_endpoints_of_the_same_program_are_not_checked_again() {
    let place = Place::new(MANIFEST);
    place.permit();
    place.run(&["install", "made"]).with_status(0);
    // The load engine is always installed, and checking it takes half a minute.
    let all = ["check", "--all", "--except", "builtin,engine", "--resume"];
    place.run(&all).with_status(1).complains(&["1 cases of the contract suite failed"]);
    place.run(&all).with_status(1);
    let path = Path::new(place.listed()["install"]["place"].as_str().unwrap()).join("checked.json");
    let mut kept: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    kept["failed"] = 0.into();
    fs::write(&path, kept.to_string()).unwrap();
    assert!(place.run(&all).with_status(0).out.contains("as before: 0 passed, 0 n.a., 0 failed"));
    kept["program"] = "another".into();
    fs::write(&path, kept.to_string()).unwrap();
    place.run(&all).with_status(1);
    place.write("endpoints/made/part", "# It is another one now.\n");
    assert!(place.run(&all).with_status(0).out.contains("left out: `made` is not installed"));
}

#[test]
fn ctrl_c_and_sigkill_end_what_a_step_started() {
    let killed = "its installation was interrupted";
    for (signal, status, words) in [("INT", Some(130), "`sh`: cancelled on request"), ("KILL", None, killed)] {
        let mark = format!("99{}{}", std::process::id(), signal.len());
        let place = Place::new(&MANIFEST.replace("echo ran", &format!("sleep {mark} & wait; echo ran")));
        let mut command = place.command(&["install", "made"]);
        let mut installing = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let sleeping = format!("sleep\0{mark}");
        eventually("the start of the step", || !processes(&sleeping).is_empty());
        let killed = Command::new("kill").args([format!("-{signal}"), installing.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(installing.wait().unwrap().code(), status);
        eventually("the end of what it started", || processes(&sleeping).is_empty());
        assert_eq!(place.listed()["installed"], false);
        assert!(why_no_record(&place).contains(words), "{}", why_no_record(&place));
    }
}

#[test]
fn another_version_is_an_endpoint_of_its_own_and_must_say_which_it_is() {
    let steps = "version_steps = [[\"sh\", \"-c\", \"(cat ../_parts/begin; sed s/1.0/$0/ part) > {installed}/program; \
                 chmod +x {installed}/program\", \"{version}\"]]";
    let place = Place::new(&format!("{MANIFEST}{steps}\n"));
    place.run(&["check", "made@2.0"]).with_status(2).complains(&["`made@2.0` is not installed", "install made@2.0"]);
    assert!(place.run(&["install", "made@2.0"]).with_status(0).out.contains("made@2.0  installed ("));
    let list: Vec<Value> = serde_json::from_str(&place.run(&["--json"]).with_status(0).out).unwrap();
    let listed = list.iter().find(|row| row["name"] == "made@2.0").unwrap();
    assert_eq!((&listed["description"]["version"], &listed["installed"]), (&"2.0".into(), &true.into()));
    assert_eq!(place.listed()["installed"], false, "the version of the folder is another one");
    place.write("endpoints/made/part", &PROGRAM.replace("1.0", "3.0"));
    place.run(&["install", "made@2.0"]).with_status(0);
    place.run(&["check", "made@2.0"]).with_status(1).complains(&["1 cases of the contract suite failed"]);
    place.run(&["install", "made@-rf"]).with_status(2).complains(&["no valid version"]);
    let single = Place::new(MANIFEST);
    single.run(&["install", "made@2.0"]).with_status(2).complains(&["`made` has one version only"]);
}

/// The endpoints of a list with their installations, which the content of their sources names.
fn installations(list: &str) -> Vec<(String, String)> {
    let list: Vec<Value> = serde_json::from_str(list).unwrap();
    let of = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["install"]["place"].to_string());
    list.iter().map(of).collect()
}

#[test]
fn the_program_carries_the_endpoints_of_the_checkout_and_installs_them_from_any_folder() {
    let (place, cache) = (tempdir().unwrap(), tempdir().unwrap());
    let list = |carried: &str, endpoints: &Path| {
        let mut command = wirelab(place.path(), &["endpoints", "--json"]);
        command.env("XDG_CACHE_HOME", cache.path()).env("XDG_DATA_HOME", place.path());
        said(command.env("WIRELAB_CARRIED", carried).env("WIRELAB_ENDPOINTS", endpoints).output().unwrap())
            .with_status(0)
    };
    let mut checkout = installations(&list("off", &root().join("endpoints")).out);
    let carried = list("", Path::new("")).out;
    let folder = cache.path().join("wirelab/carried");
    assert!(carried.contains(folder.to_str().unwrap()), "{carried}");
    let mut carried = installations(&carried);
    checkout.sort();
    carried.sort();
    assert_eq!(carried, checkout);
    assert!(carried.len() > 30, "{carried:?}");
    // A folder of the user takes precedence, and other versions of its endpoint are not reported.
    let mixed = list("", &root().join("endpoints")).out;
    assert!(!mixed.contains(folder.to_str().unwrap()) && !mixed.contains("is hidden"), "{mixed}");
}

#[test]
fn a_cache_that_cannot_be_written_is_the_reason_why_carried_endpoints_are_missing() {
    let place = tempdir().unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    let mut command = wirelab(place.path(), &["endpoints", "install", "go-quic-go"]);
    command.env("WIRELAB_CARRIED", "").env("WIRELAB_ENDPOINTS", "").env("XDG_DATA_HOME", place.path());
    let said = said(command.env("XDG_CACHE_HOME", place.path().join("file")).output().unwrap()).with_status(2);
    said.complains(&["cannot unpack the sources of wirelab's endpoints", "file/wirelab/carried/", "Not a directory"]);
}
