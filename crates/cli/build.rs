//! Packs the sources of the endpoints into an archive that the program carries, and stamps the program with its commit.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

/// What the endpoints are built from, below the root of the repository. Endpoints in Rust use crates of the workspace,
/// which inherit from its manifest.
const SOURCES: [&str; 6] =
    ["endpoints", "crates/contract", "crates/endpoint", "crates/engine", "Cargo.toml", "Cargo.lock"];

/// Products of builds and runs in those folders, besides hidden folders.
const LEFT_OUT: [&str; 2] = ["target", "__pycache__"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    let archive = Path::new(&variable("OUT_DIR")).join("endpoints.tar.gz");
    pack(&root, &archive).unwrap_or_else(|error| panic!("packing the endpoints into {}: {error}", archive.display()));
    let commit = commit(&root);
    let shown = commit.as_deref().unwrap_or("commit unknown");
    println!("cargo::rustc-env=WIRELAB_VERSION={} ({shown})", variable("CARGO_PKG_VERSION"));
    if let Some(commit) = commit {
        println!("cargo::rustc-env=WIRELAB_COMMIT_OF_BUILD={commit}");
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("cargo sets {name} for build scripts: {error}"))
}

/// Writes the archive. Equal sources give equal bytes: entries are sorted and have no times and owners.
fn pack(root: &Path, archive: &Path) -> io::Result<()> {
    let mut builder = Builder::new(GzEncoder::new(File::create(archive)?, Compression::best()));
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
        add(&mut builder, root, Path::new(source))?;
    }
    builder.into_inner()?.finish()?.sync_all()
}

fn add(builder: &mut Builder<impl io::Write>, root: &Path, path: &Path) -> io::Result<()> {
    let place = root.join(path);
    let facts = fs::metadata(&place)?;
    if facts.is_dir() {
        let entries = fs::read_dir(&place)?.map(|entry| Ok(entry?.file_name()));
        let mut names = entries.collect::<io::Result<Vec<_>>>()?;
        names.retain(|name| {
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            !(LEFT_OUT.iter().any(|out| name == out) || (is_hidden && place.join(name).is_dir()))
        });
        names.sort();
        return names.iter().try_for_each(|name| add(builder, root, &path.join(name)));
    }
    let content = fs::read(&place)?;
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_size(content.len() as u64);
    header.set_mode(if facts.permissions().mode() & 0o100 != 0 { 0o755 } else { 0o644 });
    header.set_mtime(0);
    builder.append_data(&mut header, path, content.as_slice())
}

/// The commit of the sources, for `--version` and the manifests of runs: from `WIRELAB_COMMIT`, as a packager sets it,
/// or from git.
fn commit(root: &Path) -> Option<String> {
    println!("cargo::rerun-if-env-changed=WIRELAB_COMMIT");
    if let Ok(commit) = env::var("WIRELAB_COMMIT") {
        return Some(commit);
    }
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // A copy of the sources within another repository has no commit of its own.
    let is_own = git(&["ls-files", "--error-unmatch", "crates/cli/build.rs"]).is_some();
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).filter(|_| is_own)?;
    // The log of HEAD grows with every commit and checkout; with reflogs switched off, only checkouts are noticed.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", file]).map(PathBuf::from);
        path.filter(|path| path.exists())
            .iter()
            .for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
    }
    // Compiled code only. A change of it rebuilds the program anyway.
    let code = ["Cargo.toml", "Cargo.lock", "endpoints", "studies", "contract", ":(glob)crates/*/src/**"];
    let sources =
        fs::read_dir(root.join("crates")).into_iter().flatten().flatten().map(|entry| entry.path().join("src"));
    sources.for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
    Some(match git(&[&["status", "--porcelain", "--"], &code[..]].concat()) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}, modified"),
    })
}
