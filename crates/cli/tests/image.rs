//! `deploy/archive.py`: what a Containerfile describes, without a container engine. That a cluster runs it, `tests/cluster.rs` shows.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::{Said, said};
use tempfile::{TempDir, tempdir};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with what wirelab's image is made of, its program being this text.
fn context(program: &str) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("wirelab"), program).unwrap();
    fs::set_permissions(folder.path().join("wirelab"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(root().join("deploy/nsswitch.conf"), folder.path().join("nsswitch.conf")).unwrap();
    folder
}

fn archive(containerfile: &Path, context: &Path) -> Said {
    let mut command = Command::new(root().join("deploy/archive.py"));
    command.args([containerfile, context]).arg("localhost/wirelab:dev").arg(context.join("image.tar"));
    said(command.output().unwrap())
}

/// The archive of wirelab's own image.
fn image(context: &Path) -> PathBuf {
    archive(&root().join("deploy/Containerfile"), context).with_status(0);
    context.join("image.tar")
}

#[track_caller]
fn tar(args: &[&str], archive: &Path) -> String {
    said(Command::new("tar").args(args).arg("--file").arg(archive).env("TZ", "UTC").output().unwrap())
        .with_status(0)
        .out
}

#[test]
fn the_same_contents_make_the_same_archive_and_others_another() {
    let first = context("a program");
    let later = context("a program");
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options().append(true).open(later.path().join("wirelab")).unwrap().set_modified(hour_ago).unwrap();
    let other = context("another program");
    let [first, later, other] = [&first, &later, &other].map(|folder| fs::read(image(folder.path())).unwrap());
    assert!(first == later, "time or place are in the archive");
    assert!(first != other);
}

#[test]
fn engines_find_what_the_containerfile_says_under_the_digests_of_the_blobs() {
    let folder = context("a program");
    let unpacked = tempdir().unwrap();
    tar(&["--extract", "--directory", unpacked.path().to_str().unwrap()], &image(folder.path()));
    let read = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(unpacked.path().join(path)).unwrap())
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let blob = |entry: &Value| format!("blobs/{}", entry["digest"].as_str().unwrap().replace(':', "/"));

    let entry = &read("index.json")["manifests"][0];
    assert_eq!(entry["annotations"]["io.containerd.image.name"], "localhost/wirelab:dev");
    let manifest = read(&blob(entry));
    let (config, layer) = (blob(&manifest["config"]), blob(&manifest["layers"][0]));
    let docker = json!([{ "Config": config, "Layers": [layer], "RepoTags": ["localhost/wirelab:dev"] }]);
    assert_eq!(read("manifest.json"), docker, "what Docker reads says the same");
    let config = read(&config);
    assert_eq!(config["config"], json!({ "User": "65532:65532", "Entrypoint": ["/wirelab"] }));
    assert_eq!(config["rootfs"]["diff_ids"], json!([manifest["layers"][0]["digest"]]));

    for path in fs::read_dir(unpacked.path().join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path()) {
        let sum = said(Command::new("sha256sum").arg(&path).output().unwrap()).with_status(0).out;
        assert!(sum.starts_with(path.file_name().unwrap().to_str().unwrap()), "{sum}");
    }
    let listed = tar(&["--list", "--verbose", "--numeric-owner"], &unpacked.path().join(layer));
    let files: Vec<Vec<_>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let brief: Vec<_> = files.iter().map(|words| (words[0], words[1], words[3], words[5])).collect();
    let dawn = "1970-01-01";
    assert_eq!(
        brief,
        [
            ("drwxr-xr-x", "0/0", dawn, "etc/"),
            ("-rw-r--r--", "0/0", dawn, "etc/nsswitch.conf"),
            ("-rwxr-xr-x", "0/0", dawn, "wirelab"),
        ]
    );
}

#[test]
fn what_it_cannot_do_is_refused_and_leaves_no_archive() {
    let folder = context("a program");
    for instruction in ["RUN true", "FROM debian", "COPY --chown=1 wirelab /wirelab", "ENTRYPOINT wirelab"] {
        let containerfile = folder.path().join("Containerfile");
        fs::write(&containerfile, format!("FROM scratch\n{instruction}\n")).unwrap();
        archive(&containerfile, folder.path()).with_status(2).complains(&["expected FROM scratch", instruction]);
    }
    fs::write(folder.path().join("Containerfile"), "FROM scratch\nCOPY absent /absent\n").unwrap();
    archive(&folder.path().join("Containerfile"), folder.path()).with_status(1).complains(&["absent"]);
    assert!(!folder.path().join("image.tar").exists());
}
