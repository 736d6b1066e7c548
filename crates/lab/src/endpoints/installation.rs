//! Installations of endpoints that are built from their folder: sources, location and state.
//!
//! Each version has its own folder in the user's cache, named by the digest of its sources:
//!
//! ```text
//! ~/.cache/wirelab
//!   endpoints/NAME/KEY
//!     files            output of the steps
//!     work             intermediate files, until all steps have succeeded
//!     log              output of the steps' commands
//!     attempt.json     number of successful steps and the last failure, until all steps have succeeded
//!     installed.json   record of success; without it the version is not installed
//!     checked.json     last result of the contract suite
//!   shared             compiler caches for all endpoints
//! ```

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wirelab_model::endpoint::{Install, Need};

use crate::LabError;
use crate::endpoints::{digest, of_user};

/// Placeholder in a manifest for the folder that the steps fill.
pub(super) const INSTALLED: &str = "{installed}";

/// Hexadecimal digits of the digest in a folder name: enough to keep all versions apart.
pub(super) const DIGITS: usize = 16;

/// Cache folder for compilers, shared by all endpoints.
const SHARED: &str = "shared";

/// Installation recipe and location of an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Installation {
    /// Endpoint name.
    pub name: String,
    /// Table `[install]` of its manifest.
    pub install: Install,
    pub(super) folder: PathBuf,
    key: String,
    cache: PathBuf,
}

/// Record of a completed installation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Duration of the steps in seconds of wall time: the sum of all attempts. Includes downloads that the user's
    /// package managers had not cached.
    pub seconds: f64,
    /// Disk usage in bytes, without shared caches of compilers and package managers.
    pub bytes: u64,
    /// Completion time, as RFC 3339 in UTC; absent in records of older versions of wirelab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// State of an attempt that did not complete.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// Number of successful steps.
    pub completed: usize,
    /// Duration of the steps so far, in seconds.
    pub seconds: f64,
    /// Failure of the next step; absent: it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Installation {
    pub(super) fn new(name: &str, folder: &Path, install: Install) -> Result<Self, LabError> {
        let folders: Vec<_> =
            [folder.to_owned()].into_iter().chain(install.with.iter().map(|with| folder.join(with))).collect();
        let key =
            digest::of_folders(&folders).map_err(|error| LabError::file("cannot read its sources").because(error))?;
        let cache = cache().ok_or_else(|| {
            let why = "it must be installed in the user's cache folder, but neither XDG_CACHE_HOME nor HOME is set";
            LabError::file(why).remedy("set one")
        })?;
        Ok(Self { name: name.to_owned(), install, folder: folder.to_owned(), key, cache })
    }

    /// Digest of the sources: SHA-256, hexadecimal, of the endpoint's folder and the further folders in its manifest.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Folder of this version.
    #[must_use]
    pub fn place(&self) -> PathBuf {
        self.versions().join(&self.key[..DIGITS])
    }

    /// Log of the steps.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.place().join("log")
    }

    /// Folder of all versions of the endpoint.
    fn versions(&self) -> PathBuf {
        versions(&self.cache, &self.name)
    }

    /// Folder that the steps fill.
    pub(super) fn files(&self) -> PathBuf {
        self.place().join("files")
    }

    /// Cache folder shared by all endpoints of this user.
    pub(super) fn shared(&self) -> PathBuf {
        self.cache.join(SHARED)
    }

    /// A text of the manifest with the placeholder replaced by the folder that the steps fill.
    pub(super) fn filled(&self, text: &str) -> String {
        text.replace(INSTALLED, &self.files().to_string_lossy())
    }

    /// Record of this version, if it is installed.
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        // An endpoint without steps has no record.
        if self.install.steps.is_empty() { None } else { self.read("installed.json") }
    }

    /// Why [`Installation::record`] is absent, as the end of a sentence.
    #[must_use]
    pub fn why_not(&self) -> String {
        let missing = self.missing();
        if !missing.is_empty() {
            return format!("it needs {}", remedies(&missing));
        }
        if self.install.steps.is_empty() {
            return "there is nothing to build".to_owned();
        }
        match self.read::<Attempt>("attempt.json") {
            Some(Attempt { failure: Some(failure), .. }) => failure,
            Some(Attempt { failure: None, .. }) => "its installation was interrupted".to_owned(),
            None => "it is not installed".to_owned(),
        }
    }

    /// Required programs that are missing.
    #[must_use]
    pub fn missing(&self) -> Vec<&Need> {
        self.install.needs.iter().filter(|need| !is_there(&need.program)).collect()
    }

    /// An error if the endpoint cannot be started.
    pub(super) fn usable(&self) -> Result<(), LabError> {
        let name = &self.name;
        if self.install.steps.is_empty() {
            let missing = self.missing();
            return if missing.is_empty() {
                Ok(())
            } else {
                Err(LabError::endpoint(format!("`{name}` needs {}", remedies(&missing))))
            };
        }
        match self.record() {
            Some(_) => Ok(()),
            None => Err(LabError::endpoint(format!("`{name}` is not installed"))
                .remedy(format!("install it with `wirelab endpoints install {name}`"))),
        }
    }

    /// Removes every version; returns the freed bytes.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(&self) -> Result<u64, LabError> {
        let folder = self.versions();
        let bytes = disk_usage(&folder);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.wrong("removing it", error)),
            _ => Ok(bytes),
        }
    }

    pub(super) fn wrong(&self, attempt: &str, error: io::Error) -> LabError {
        LabError::endpoint(format!("installing `{}`: {attempt}", self.name)).because(error)
    }

    pub(super) fn read<T: DeserializeOwned>(&self, file: &str) -> Option<T> {
        read(&self.place().join(file))
    }

    pub(super) fn write(&self, file: &str, value: &impl Serialize) -> Result<(), LabError> {
        let path = self.place().join(file);
        write(&path, value).map_err(|error| self.wrong(&format!("writing {}", path.display()), error))
    }
}

/// Contents of a cache file. An unreadable file counts as absent, so that its content is made again.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Writes a cache file atomically.
pub(super) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, serde_json::to_vec(value).expect("it can be written as JSON"))?;
    std::fs::rename(&draft, path)
}

/// Size of the shared compiler caches of this user, in bytes.
#[must_use]
pub fn shared_bytes() -> u64 {
    cache().map_or(0, |cache| disk_usage(&cache.join(SHARED)))
}

/// wirelab's folder in the user's cache.
pub(super) fn cache() -> Option<PathBuf> {
    Some(of_user("XDG_CACHE_HOME", ".cache")?.join("wirelab"))
}

/// Folder of all versions of an endpoint.
pub(super) fn versions(cache: &Path, name: &str) -> PathBuf {
    cache.join("endpoints").join(name)
}

/// Missing programs with their remedies, as the end of a sentence.
pub(super) fn remedies(missing: &[&Need]) -> String {
    let texts: Vec<_> = missing
        .iter()
        .map(|need| match (&need.remedy, &need.debian) {
            (Some(remedy), _) => format!("{}: {remedy}", need.program),
            (None, Some(package)) => format!("{}: `apt-get install {package}`", need.program),
            (None, None) => need.program.clone(),
        })
        .collect();
    texts.join("; ")
}

/// Whether a program of that name, or a file at that path, exists.
fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).exists();
    }
    // Debian installs servers in folders that are not on every user's PATH.
    let administrators = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(administrators).any(|folder| folder.join(program).is_file())
}

/// Disk usage of a folder and its contents, in bytes. Unreadable entries count as 0.
pub(super) fn disk_usage(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    /// Unit of `st_blocks`, in bytes (inode(7)).
    const BLOCK: u64 = 512;
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of_entry = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => facts.blocks() * BLOCK + disk_usage(&entry.path()),
        Ok(facts) => facts.blocks() * BLOCK,
        Err(_) => 0,
    };
    entries.flatten().map(of_entry).sum()
}
