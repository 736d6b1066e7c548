//! Identity of endpoints and of their installation sources: digests of files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use wirelab_model::endpoint::Endpoint;

use crate::LabError;

/// Maximum number of files in an endpoint's folder.
const MOST_FILES: usize = 100_000;

/// SHA-256, hexadecimal, over the executable and every file of the endpoint's folder with its path: the identity of
/// the measured software. Hidden files and folders, `__pycache__` and `target` are omitted, because builds and runs
/// change them.
///
/// # Errors
/// If a file cannot be read, or the folder has more than 100,000 files.
pub fn digest(endpoint: &Endpoint) -> Result<String, LabError> {
    let wrong = |path: &Path, error: io::Error| {
        LabError::file(format!("cannot compute the digest of the endpoint `{}`: {}", endpoint.name, path.display()))
            .because(error)
    };
    let mut context = Context::new(&SHA256);
    if let Some(installation) = &endpoint.installation {
        context.update(installation.as_bytes());
    }
    if let Some(program) = endpoint.command.first().map(|name| located(name)) {
        add(&mut context, "", &program).map_err(|error| wrong(&program, error))?;
    }
    if let Some(folder) = &endpoint.folder {
        let mut files = BTreeMap::new();
        collect(folder, "", &mut files).map_err(|error| wrong(folder, error))?;
        for (name, path) in files {
            add(&mut context, &name, &path).map_err(|error| wrong(&path, error))?;
        }
    }
    Ok(finish(context))
}

/// Digest of an endpoint's installation source: every file of these folders, except for files that [`digest`] omits
/// and README.md, which no build uses.
pub(super) fn of_folders(folders: &[PathBuf]) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    for (number, folder) in folders.iter().enumerate() {
        let mut files = BTreeMap::new();
        collect(folder, &format!("{number}/"), &mut files)?;
        for (name, path) in files.into_iter().filter(|(name, _)| *name != format!("{number}/README.md")) {
            add(&mut context, &name, &path)?;
        }
    }
    Ok(finish(context))
}

fn finish(context: Context) -> String {
    hexadecimal(context.finish().as_ref())
}

pub(super) fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Path of a program as the kernel resolves it: a name without a slash is looked up in `PATH`.
fn located(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = || std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    if name.contains('/') { PathBuf::from(name) } else { found().unwrap_or_else(|| PathBuf::from(name)) }
}

fn add(context: &mut Context, name: &str, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    // Hash name and length first, so that different sets of files never produce the same bytes.
    context.update(&(name.len() as u64).to_be_bytes());
    context.update(name.as_bytes());
    context.update(&file.metadata()?.len().to_be_bytes());
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => context.update(&buffer[..count]),
        }
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "__pycache__" || name == "target" {
            continue;
        }
        let kind = entry.file_type()?;
        let name = format!("{prefix}{name}");
        if kind.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else if entry.path().is_file() {
            files.insert(name, entry.path());
        }
        if files.len() > MOST_FILES {
            return Err(io::Error::other(format!(
                "the folder has more than {MOST_FILES} files; move unneeded files elsewhere"
            )));
        }
    }
    Ok(())
}
