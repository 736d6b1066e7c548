//! The whole pipeline on the fake lab, from the command line to every format of the report: a pure function of the
//! seed.

use std::fs;

use tempfile::tempdir;
use wirelab_testkit::{only_run, run, said, wirelab};

#[test]
fn a_run_ends_in_every_form_of_report() {
    let folder = tempdir().unwrap();
    let said = run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    assert!(said.out.contains("HTTP/2") && said.out.contains("report.html"), "{}", said.out);
    let path = only_run(folder.path());
    for file in ["manifest.json", "journal.jsonl", "report.html"] {
        assert!(path.join(file).metadata().unwrap().len() > 100, "{file}");
    }
    for format in ["terminal", "markdown", "html", "latex", "csv", "comparisons", "contests", "json"] {
        let report = run(folder.path(), &["report", "--format", format]).with_status(0);
        assert!(report.out.len() > 200, "{format}: {}", report.out);
        assert!(!report.out.contains("NaN"), "{format} shows NaN");
    }
}

#[test]
fn a_study_takes_what_is_installed_and_the_report_says_what_is_missing() {
    let folder = tempdir().unwrap();
    let study = r#"
        name = "mine"
        title = "t"
        question = "q"
        missing_endpoints = "skip"
        [factors.implementation]
        own = { protocol = "h1" }
        other = { protocol = "h2" }
        third = { protocol = "h1", server = "gone" }
        [compare]
        factor = "implementation"
        baseline = "own"
        [blocks]
        min = 1
        max = 1
    "#;
    fs::write(folder.path().join("mine.toml"), study).unwrap();
    let command = |args: &[&str]| {
        let mut command = wirelab(folder.path(), args);
        // Hides the endpoints of the user who runs the tests.
        command.env_remove("WIRELAB_ENDPOINTS").env("HOME", folder.path()).env_remove("XDG_DATA_HOME");
        said(command.output().unwrap()).with_status(0).out
    };
    let text = command(&["run", "mine.toml", "--lab", "fake", "--quiet"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("because the endpoint `gone` cannot be used: `implementation=third`"), "{text}");
    assert!(text.contains("3 trials of 3 cells in 1 complete block"), "{text}");
    let plan = command(&["run", "cluster-http3", "--plan"]);
    assert!(!plan.contains("  implementation=nginx-h1") && plan.contains("! Omitted"), "{plan}");
}

#[test]
fn cells_that_another_lab_cannot_realise_are_omitted() {
    let folder = tempdir().unwrap();
    let plan = run(folder.path(), &["run", "cluster-http3", "--lab", "kubernetes", "--plan"]).with_status(0).out;
    assert!(plan.contains("  implementation=h1 ") && plan.contains("round_trip=0 ms"), "{plan}");
    for left_out in ["implementation=h1-no-offloads", "round_trip=2 ms"] {
        let warned = format!("Omitted, because the lab `kubernetes` does not support it: `{left_out}`.");
        assert!(plan.contains(&warned) && plan.matches(left_out).count() == 1, "{plan}");
    }
    // Without the missing endpoints, no cell is left.
    let refused = run(folder.path(), &["run", "cluster-http3", "--lab", "loopback"]).with_status(2).err;
    assert!(refused.contains("cannot run the cell") && refused.contains("`loopback`"), "{refused}");
}

#[test]
fn a_study_of_all_pairs_takes_what_is_installed_and_its_run_names_it() {
    let folder = tempdir().unwrap();
    let command = |args: &[&str], status| {
        let mut command = wirelab(folder.path(), args);
        // Hides the endpoints of the user who runs the tests.
        command.env_remove("WIRELAB_ENDPOINTS").env("HOME", folder.path()).env_remove("XDG_DATA_HOME");
        said(command.output().unwrap()).with_status(status)
    };
    let all = ["run", "pairs", "--preset", "smoke", "--lab", "fake", "--quiet"];
    let alone = command(&all, 2).err;
    assert!(alone.contains("no further endpoint") && alone.contains("wirelab endpoints"), "{alone}");
    for (name, toml) in
        [("one", "name = 'one'\ncommand = ['true']"), ("two", "name = 'two'\ncommand = ['true']"), ("odd", "x")]
    {
        let endpoint = folder.path().join("endpoints").join(name);
        fs::create_dir_all(&endpoint).unwrap();
        fs::write(endpoint.join("endpoint.toml"), toml).unwrap();
    }
    let text = command(&all, 0).out.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["HTTP/3, 9 pairs: 9 work.", "the endpoint `odd` cannot be used: `client=odd`, `server=odd`"] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
    // The endpoints are removed, but the run has their descriptions.
    fs::remove_dir_all(folder.path().join("endpoints")).unwrap();
    command(&["resume", "--quiet"], 0);
    let table = command(&["report", "--format", "pairs"], 0).out;
    let works = table.lines().filter(|line| line.contains(",one,two,works,1,0,0,"));
    assert_eq!((works.count(), table.lines().count()), (3, 1 + 3 * 9));
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let numbers = || {
        let folder = tempdir().unwrap();
        run(folder.path(), &["run", "null", "--preset", "smoke", "--lab", "fake", "--quiet"]).with_status(0);
        run(folder.path(), &["report", "--format", "comparisons"]).with_status(0).out
    };
    assert_eq!(numbers(), numbers());
}

#[test]
fn resuming_a_finished_run_changes_nothing() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "null", "--preset", "smoke", "--lab", "fake", "--quiet"]).with_status(0);
    let journal = only_run(folder.path()).join("journal.jsonl");
    let before = fs::read_to_string(&journal).unwrap();
    run(folder.path(), &["resume", "--quiet"]).with_status(0);
    let trials = |text: &str| text.lines().filter(|line| line.contains("\"trial\"")).count();
    assert_eq!(trials(&before), trials(&fs::read_to_string(&journal).unwrap()));
}

#[test]
fn the_plan_is_shown_without_running_anything() {
    let folder = tempdir().unwrap();
    let said = run(folder.path(), &["run", "cloud-quic", "--preset", "faithful", "--plan"]).with_status(0);
    assert!(said.out.contains("protocol=udp") && said.out.contains("cells"), "{}", said.out);
    assert!(!folder.path().join("wirelab-runs").exists());
}
