//! `wirelab archive`: a run as a small folder with the same report.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::{TempDir, tempdir};
use wirelab_testkit::{only_run, run, wirelab};

/// A finished run of the lab `fake`.
fn finished() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    let path = only_run(folder.path());
    (folder, path)
}

/// Every archive of this repository: `studies/*/results/*`.
fn kept() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut archives: Vec<_> =
        below(&root).flat_map(|study| below(&study.join("results")).collect::<Vec<_>>()).collect();
    archives.sort();
    archives
}

#[test]
fn an_archive_has_the_report_of_its_run_and_no_path_of_the_machine() {
    let (folder, path) = finished();
    run(folder.path(), &["archive", "--to", "kept"]).with_status(0);
    let files: Vec<_> =
        fs::read_dir(folder.path().join("kept")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for format in ["terminal", "markdown", "csv", "comparisons", "contests", "json"] {
        let report = |of: &str| run(folder.path(), &["report", of, "--format", format]).with_status(0).out;
        let (of_run, of_archive) = (report(path.to_str().unwrap()), report("kept"));
        assert!(of_run.len() > 200 && of_run == of_archive, "{format}:\n{of_run}\n---\n{of_archive}");
    }
    let report = run(folder.path(), &["report", "kept", "--format", "markdown"]).with_status(0).out;
    assert_eq!(report, fs::read_to_string(folder.path().join("kept/report.md")).unwrap());
    let manifest = fs::read_to_string(folder.path().join("kept/manifest.json")).unwrap();
    let program = wirelab(folder.path(), &[]).get_program().to_owned();
    let programs = Path::new(&program).parent().unwrap().to_str().unwrap();
    assert!(fs::read_to_string(path.join("manifest.json")).unwrap().contains(programs));
    assert!(!manifest.contains(programs), "{manifest}");
}

#[test]
fn an_archive_keeps_the_tags_of_its_run() {
    let (folder, path) = finished();
    run(folder.path(), &["tag", path.to_str().unwrap(), "v1.2", "baseline"]).with_status(0);
    run(folder.path(), &["archive", "--to", "kept"]).with_status(0);
    assert_eq!(run(folder.path(), &["tag", "kept"]).with_status(0).out, "kept: baseline v1.2\n");
}

#[test]
fn archives_are_of_whole_runs_and_are_not_resumed() {
    let (folder, path) = finished();
    run(folder.path(), &["archive", "--to", "kept"]).with_status(0);
    run(folder.path(), &["archive", "--to", "kept"]).with_status(1).complains(&["`kept` has files", "new folder"]);
    run(folder.path(), &["resume", "kept"]).with_status(1).complains(&["archive"]);
    let journal = path.join("journal.jsonl");
    let lines = fs::read_to_string(&journal).unwrap();
    let (before_end, _) = lines.trim_end().rsplit_once('\n').unwrap();
    fs::write(&journal, format!("{before_end}\n")).unwrap();
    run(folder.path(), &["archive", "--to", "cut"]).with_status(1).complains(&["not finished", "wirelab resume"]);
    fs::write(&journal, lines.replacen("\"block\"", "\"blocc\"", 1)).unwrap();
    run(folder.path(), &["archive", "--to", "damaged"]).with_status(1);
    assert!(!folder.path().join("cut").exists() && !folder.path().join("damaged").exists());
}

#[test]
fn the_report_beside_each_kept_archive_is_the_one_that_is_computed_from_it() {
    let archives = kept();
    assert!(!archives.is_empty(), "no archive in studies/*/results");
    for archive in archives {
        let report = run(&archive, &["report", ".", "--format", "markdown"]).with_status(0).out;
        let committed = fs::read_to_string(archive.join("report.md")).unwrap();
        assert!(report == committed, "{}: report.md is stale; run `make results`", archive.display());
    }
}

#[test]
fn each_kept_archive_is_in_the_gallery_with_a_picture() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let gallery = fs::read_to_string(docs.join("gallery.md")).unwrap();
    for archive in kept() {
        let part = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let study = part(archive.parent().unwrap().parent().unwrap());
        let name = format!("{study}-{}", part(&archive));
        assert!(gallery.contains(&format!("<!-- report: {name} -->")), "docs/gallery.md lacks {name}");
        let picture = docs.join("gallery").join(format!("{name}.png"));
        assert!(
            picture.is_file() && gallery.contains(&format!("gallery/{name}.png")),
            "run `make gallery`: {picture:?}"
        );
    }
}
