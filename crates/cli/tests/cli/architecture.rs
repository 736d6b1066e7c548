//! The invariants of ARCHITECTURE.md, checked against the source tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Path and text of every file below `folder` with this ending.
fn files(folder: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

/// The code of a crate by file, without comments and without tests (`#[cfg(test)]`).
fn code(name: &str) -> Vec<(PathBuf, String)> {
    files(&root().join("crates").join(name).join("src"), ".rs")
        .into_iter()
        .filter(|(path, _)| !path.to_string_lossy().contains("tests"))
        .map(|(path, text)| {
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            (path, lines.join("\n"))
        })
        .collect()
}

#[track_caller]
fn assert_absent(crates: &[&str], words: &[&str], why: &str) {
    for name in crates {
        for (path, text) in code(name) {
            for word in words {
                assert!(!text.contains(word), "{} contains `{word}`: {why}", path.display());
            }
        }
    }
}

#[test]
fn crates_depend_on_each_other_as_the_table_says() {
    let table = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut allowed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with("| `crates/")) {
        let columns: Vec<_> = line.split('|').map(str::trim).collect();
        let name = columns[1].trim_matches('`').trim_start_matches("crates/").to_owned();
        let words = columns[3].split(", ").filter(|word| *word != "none").map(str::to_owned).collect();
        allowed.insert(name, words);
    }
    let is_product =
        |name: &&String| !["cli", "contract", "engine", "fuzz", "pages", "testkit"].contains(&name.as_str());
    let everything: BTreeSet<String> = allowed.keys().filter(is_product).cloned().collect();
    allowed.insert("cli".to_owned(), everything);
    for (path, text) in files(&root().join("crates"), "Cargo.toml") {
        let name = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let dependencies = text.split("[dev-dependencies]").next().unwrap_or_default();
        let ours: BTreeSet<String> = dependencies
            .lines()
            .filter_map(|line| line.strip_prefix("wirelab-")?.split(['.', ' ', '=']).next())
            .map(str::to_owned)
            .collect();
        let table = allowed.get(&name).unwrap_or_else(|| panic!("ARCHITECTURE.md does not list crates/{name}"));
        assert_eq!(&ours, table, "the dependencies of crates/{name}");
    }
}

#[test]
fn the_pure_crates_touch_nothing_outside() {
    let outside = [
        "std::fs",
        "std::net::Tcp",
        "std::net::Udp",
        "std::process",
        "std::env",
        "Instant::now",
        "SystemTime",
        "thread_rng",
        "rand::rng()",
        "from_os_rng",
        "std::thread",
        "tokio",
    ];
    assert_absent(&["contract", "model", "pages", "plan", "stats", "report"], &outside, "it has to stay pure");
}

#[test]
fn the_statistics_know_no_protocol() {
    let words = ["Protocol", "\"h1\"", "\"h2\"", "\"h3\"", "\"quic\"", "\"tcp\""];
    assert_absent(&["stats"], &words, "stats knows no protocol");
}

#[test]
fn nothing_but_the_command_line_prints_or_exits() {
    let silent =
        ["contract", "model", "pages", "plan", "stats", "report", "run", "observe", "serve", "suite", "browser"];
    let words = ["println!", "eprintln!", "print!(", "process::exit", "stdout()"];
    assert_absent(&silent, &words, "only cli prints or exits");
    let macros = ["println!", "eprintln!", "print!(", "process::exit"];
    assert_absent(
        &["agent", "endpoint", "engine", "hosts", "kubernetes", "lab"],
        &macros,
        "a closed output must end no process",
    );
}

/// Measured times come from clocks that cannot be set. The time of day is read for these purposes only.
#[test]
fn the_time_of_day_measures_nothing() {
    let purposes = BTreeMap::from([
        ("browser/src/film/mod.rs", "browsers report the times of pictures so"),
        ("browser/src/load.rs", "the date of a load in its archive"),
        ("cli/src/visits.rs", "limits that hold from one command to the next"),
        ("kubernetes/src/names.rs", "a unique name"),
        ("lab/src/guard.rs", "a unique name"),
        ("lab/src/log.rs", "dates in the log"),
        ("lab/src/netns/port.rs", "the kernel stamps packets so; a step of the clock counts as an age of 0"),
        ("observe/src/prometheus/board.rs", "dates of actions, as Prometheus has them"),
        ("observe/src/witness/process.rs", "the kernel stamps packets so"),
        ("run/src/pki.rs", "dates of certificates"),
        ("run/src/run.rs", "the name of a run"),
        ("run/src/store/journal.rs", "dates in the journal"),
    ]);
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    let product = crates.map(|name| name.into_string().unwrap()).filter(|name| name != "testkit");
    let reads = ["SystemTime::now()", "Timestamp::now()", "Zoned::now()", "CLOCK_REALTIME"];
    let found: BTreeSet<String> = product
        .flat_map(|name| code(&name))
        .filter(|(_, text)| reads.iter().any(|word| text.contains(word)))
        .map(|(path, _)| path.to_string_lossy().rsplit_once("crates/").unwrap().1.to_owned())
        .collect();
    assert_eq!(found, purposes.into_keys().map(str::to_owned).collect());
}

#[test]
fn no_code_names_an_endpoint_but_the_built_in_one() {
    let names: Vec<_> = fs::read_dir(root().join("endpoints"))
        .unwrap()
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let is_endpoint = entry.path().join("endpoint.toml").exists();
            is_endpoint.then(|| entry.file_name().to_string_lossy().into_owned())
        })
        .collect();
    assert!(!names.is_empty(), "there is at least the template");
    let crates = fs::read_dir(root().join("crates")).unwrap();
    for name in crates.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        for (path, text) in code(&name) {
            for endpoint in &names {
                assert!(!text.contains(&format!("\"{endpoint}\"")), "{} names the endpoint {endpoint}", path.display());
            }
        }
    }
}

#[test]
fn tests_say_through_typed_skips_what_they_do_not_test() {
    let words = ["NOT tested", "not tested", "SKIPPED"];
    for folder in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("tests")) {
        if !folder.exists() {
            continue;
        }
        for (path, text) in files(&folder, ".rs") {
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let is_hidden = ["println!(\"", "eprintln!(\""].iter().any(|print| line.contains(print))
                    && words.iter().any(|word| line.contains(word));
                assert!(
                    !is_hidden,
                    "{} prints that it tests nothing: wirelab_testkit::skip records it",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn a_crate_has_two_test_programs_at_most() {
    for folder in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("tests")) {
        let entries = fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        let is_program =
            |path: &PathBuf| path.extension().is_some_and(|is| is == "rs") || path.join("main.rs").exists();
        let programs: Vec<_> = entries.filter(is_program).collect();
        assert!(programs.len() <= 2, "each further program is linked anew: {programs:?}");
    }
}

#[test]
fn programs_called_physics_list_all_of_their_tests() {
    // Their harness is not that of the compiler, which would drop a function with this attribute.
    for folder in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("tests/physics"))
    {
        if !folder.exists() {
            continue;
        }
        for (path, text) in files(&folder, ".rs") {
            let dropped = text.lines().any(|line| line.trim() == "#[test]");
            assert!(!dropped, "{}: `tests()` lists tests, as `test!(name)`", path.display());
        }
    }
}

#[test]
fn no_file_is_longer_than_800_lines() {
    for folder in ["crates", "endpoints", "tests"] {
        for ending in [".rs", ".py", ".sh", ".html", ".css", ".go", ".java", ".js", ".cs", ".c", ".h"] {
            for (path, text) in files(&root().join(folder), ending) {
                let lines = text.lines().count();
                assert!(lines <= 800, "{} has {lines} lines; is it one idea?", path.display());
            }
        }
    }
}

/// The paths below `crate::` in a text; a list in braces gives one path for each of its items.
fn own_paths(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_alphanumeric() || "_:".contains(letter);
    let mut paths = Vec::new();
    for after in text.split("crate::").skip(1) {
        let path: String = after.chars().take_while(|letter| is_part(*letter)).collect();
        match after[path.len()..].strip_prefix('{').and_then(|list| list.split_once('}')) {
            Some((list, _)) => paths.extend(list.split(',').map(|item| format!("{path}{}", item.trim()))),
            None => paths.push(path),
        }
    }
    paths
}

#[test]
fn the_modules_of_run_have_no_circle() {
    let source = root().join("crates/run/src");
    let name = |path: &Path| {
        let path = path.strip_prefix(&source).unwrap().with_extension("");
        path.to_string_lossy().trim_end_matches("/mod").replace('/', "::")
    };
    let modules: BTreeMap<String, String> =
        code("run").into_iter().map(|(path, text)| (name(&path), text)).filter(|(name, _)| name != "lib").collect();
    let module_of = |path: &str| {
        let ends = [path.len()].into_iter().chain(path.rmatch_indices("::").map(|(end, _)| end));
        ends.map(|end| path[..end].to_owned()).find(|path| modules.contains_key(path))
    };
    let mut uses: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
    for (module, text) in &modules {
        let used = own_paths(text).iter().filter_map(|path| module_of(path)).filter(|used| used != module).collect();
        uses.insert(module, used);
    }
    assert!(uses.values().map(BTreeSet::len).sum::<usize>() > 50, "the paths are found");
    // Modules that use no remaining module are removed until nothing is left but circles.
    while let Some(free) = uses.iter().find(|(_, used)| used.is_empty()).map(|(module, _)| (*module).clone()) {
        uses.remove(&free);
        for used in uses.values_mut() {
            used.remove(&free);
        }
    }
    assert!(uses.is_empty(), "modules of `run` in circles, or above them: {uses:?}");
}
