//! `deploy/dist.py` makes the files of a release: what is in them, and that they depend on their contents alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::tempdir;
use wirelab_testkit::{Said, Skip, program, root, said, skip};

/// The header of a static program for x86-64, and nothing else.
fn program_without_code() -> Vec<u8> {
    let mut header = vec![0_u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    for (place, value) in [(16, 2), (18, 62), (20, 1), (52, 64)] {
        header[place] = value;
    }
    header
}

/// Makes a release of this file, with manual pages and completions of the tested program, as a user whose files are
/// private.
fn dist(packed: &Path, out: &Path) -> Said {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec deploy/dist.py \"$@\"", "sh"]).arg(packed).arg(out);
    command.arg("--runs").arg(program()).env("SOURCE_DATE_EPOCH", "1000000000").env("TZ", "UTC");
    said(command.current_dir(root()).output().unwrap())
}

#[track_caller]
fn run(folder: &Path, words: &[&str]) -> String {
    said(Command::new(words[0]).args(&words[1..]).current_dir(folder).output().unwrap()).with_status(0).out
}

#[test]
fn a_release_has_everything_in_its_place_and_is_made_again_with_the_same_bytes() {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return skip(Skip::MissingProgram {
            program: "dpkg-deb".to_owned(),
            remedy: "apt-get install dpkg".to_owned(),
        });
    }
    let folder = tempdir().unwrap();
    let place = folder.path();
    fs::write(place.join("program"), program_without_code()).unwrap();
    for out in ["one", "two"] {
        dist(&place.join("program"), &place.join(out)).with_status(0);
    }
    let [one, two] = ["one", "two"].map(|out| fs::read_to_string(place.join(out).join("SHA256SUMS")).unwrap());
    assert_eq!(one, two, "time, place or user are in the files");
    run(&place.join("one"), &["sha256sum", "--check", "SHA256SUMS"]);

    let version = env!("CARGO_PKG_VERSION");
    let package = format!("one/wirelab_{version}_amd64.deb");
    let fields = run(place, &["dpkg-deb", "--field", &package, "Package", "Version", "Architecture"]);
    assert_eq!(fields, format!("Package: wirelab\nVersion: {version}\nArchitecture: amd64\n"));
    let listed = run(place, &["dpkg-deb", "--contents", &package]);
    let modes: BTreeMap<&str, &str> = listed
        .lines()
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            assert_eq!((words[1], words[3]), ("root/root", "2001-09-09"), "{line}");
            (words[5].trim_start_matches("./"), words[0])
        })
        .collect();
    for (path, mode) in &modes {
        let expected = match *path {
            "usr/bin/wirelab" => "-rwxr-xr-x",
            folder if folder.is_empty() || folder.ends_with('/') => "drwxr-xr-x",
            _ => "-rw-r--r--",
        };
        assert_eq!(*mode, expected, "{path}");
    }
    for path in [
        "usr/bin/wirelab",
        "usr/share/man/man1/wirelab.1.gz",
        "usr/share/man/man1/wirelab-load.1.gz",
        "usr/share/wirelab/schema/study.schema.json",
        "usr/share/wirelab/schema/report.schema.json",
        "usr/share/bash-completion/completions/wirelab",
        "usr/share/zsh/vendor-completions/_wirelab",
        "usr/share/fish/vendor_completions.d/wirelab.fish",
        "usr/share/doc/wirelab/copyright",
        "usr/share/doc/wirelab/changelog.gz",
    ] {
        assert!(modes.contains_key(path), "{path} is missing:\n{listed}");
    }

    run(place, &["dpkg-deb", "--extract", &package, "files"]);
    run(place, &["dpkg-deb", "--control", &package, "control"]);
    let checked = run(&place.join("files"), &["md5sum", "--check", "../control/md5sums"]);
    let files = modes.keys().filter(|path| !path.is_empty() && !path.ends_with('/')).count();
    assert_eq!(checked.matches(": OK").count(), files, "dpkg --verify reads these sums");
    assert_eq!(fs::read(place.join("files/usr/bin/wirelab")).unwrap(), program_without_code());
    let page = run(place, &["gzip", "-dc", "files/usr/share/man/man1/wirelab-load.1.gz"]);
    assert!(page.contains("\\-\\-find\\-rate") && page.contains(".TH"), "{page}");
    run(place, &["bash", "-n", "files/usr/share/bash-completion/completions/wirelab"]);

    let archive = run(place, &["tar", "tzf", &format!("one/wirelab-{version}-x86_64.tar.gz")]);
    for path in [
        "wirelab",
        "README.md",
        "LICENSE-MIT",
        "man/wirelab-load.1",
        "schema/study.schema.json",
        "completions/_wirelab",
    ] {
        assert!(archive.lines().any(|line| line == format!("wirelab-{version}-x86_64/{path}")), "{path}: {archive}");
    }
}

#[test]
fn a_program_that_would_not_run_elsewhere_is_refused() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("out");
    fs::write(folder.path().join("text"), "#!/bin/sh\n").unwrap();
    dist(&folder.path().join("text"), &out).with_status(2).complains(&["is no program for x86_64, aarch64"]);
    dist(&program(), &out).with_status(2).complains(&["needs shared libraries", "+crt-static"]);
    let of_this_machine = [program_without_code(), format!("{}/crates", root().display()).into_bytes()].concat();
    fs::write(folder.path().join("own"), of_this_machine).unwrap();
    dist(&folder.path().join("own"), &out).with_status(2).complains(&["names the folder", "--remap-path-prefix"]);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}
