//! An endpoint that is built from its folder: what it is built from, where it is put, and whether it is there.
//!
//! Each version has a place of its own in the user's cache folder, named by the identity of what it is built from:
//!
//! ```text
//! ~/.cache/wirelab
//!   endpoints/NAME/KEY
//!     files            what the steps made
//!     work             what is in between, until they have all succeeded
//!     log              what the steps said
//!     attempt.json     how many have succeeded, and why the next one did not, until all have
//!     installed.json   that all have: until then it is not installed
//!     checked.json     what the contract suite said last
//!   shared             what compilers keep for all endpoints
//! ```

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wirelab_model::endpoint::{Install, Need};

use crate::LabError;
use crate::endpoints::{digest, of_user};

/// What stands in a manifest for the folder that the steps fill.
pub(super) const INSTALLED: &str = "{installed}";

/// How many hexadecimal digits of the identity name a place: enough for every version that there will ever be.
pub(super) const DIGITS: usize = 16;

/// The folder of the cache with what compilers keep for all endpoints.
const SHARED: &str = "shared";

/// How an endpoint is installed, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Installation {
    /// The endpoint's name.
    pub name: String,
    /// What its manifest says.
    pub install: Install,
    pub(super) folder: PathBuf,
    key: String,
    cache: PathBuf,
}

/// What is known of an endpoint that is installed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// How long its steps took, in seconds of wall time: all attempts together, and with what they downloaded, which is what the
    /// package managers of this user did not have yet.
    pub seconds: f64,
    /// What it occupies on the disk, in bytes, without what compilers and package managers keep for all.
    pub bytes: u64,
    /// When it was done, as RFC 3339 in UTC; absent: by a wirelab that did not write it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What is left of an attempt that did not come to its end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// How many steps have succeeded.
    pub completed: usize,
    /// How long the steps took so far, in seconds.
    pub seconds: f64,
    /// Why the next one did not; absent: it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Installation {
    pub(super) fn new(name: &str, folder: &Path, install: Install) -> Result<Self, String> {
        let folders: Vec<_> =
            [folder.to_owned()].into_iter().chain(install.with.iter().map(|with| folder.join(with))).collect();
        let key =
            digest::of_folders(&folders).map_err(|error| format!("cannot read what it is built from ({error})"))?;
        let cache = cache()
            .ok_or("it is to be installed in the user's cache folder, but neither XDG_CACHE_HOME nor HOME is set")?;
        Ok(Self { name: name.to_owned(), install, folder: folder.to_owned(), key, cache })
    }

    /// The identity of what it is built from: SHA-256 of its folder and of those that its manifest names, hexadecimal.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Where everything of this version is.
    #[must_use]
    pub fn place(&self) -> PathBuf {
        self.versions().join(&self.key[..DIGITS])
    }

    /// Where the steps write what they say.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.place().join("log")
    }

    /// Where all versions of the endpoint are.
    fn versions(&self) -> PathBuf {
        versions(&self.cache, &self.name)
    }

    /// The folder that the steps fill.
    pub(super) fn files(&self) -> PathBuf {
        self.place().join("files")
    }

    /// What the endpoints of this user share.
    pub(super) fn shared(&self) -> PathBuf {
        self.cache.join(SHARED)
    }

    /// A text of the manifest with the folder in it that the steps fill.
    pub(super) fn filled(&self, text: &str) -> String {
        text.replace(INSTALLED, &self.files().to_string_lossy())
    }

    /// What there is to know of this version, if it was installed.
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        // Without steps nothing was, and nothing measured.
        if self.install.steps.is_empty() { None } else { self.read("installed.json") }
    }

    /// Why there is no [`Installation::record`], as the rest of a sentence.
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
            Some(Attempt { failure: None, .. }) => "its installation did not come to its end".to_owned(),
            None => "it is not installed".to_owned(),
        }
    }

    /// The programs that are needed and not there.
    #[must_use]
    pub fn missing(&self) -> Vec<&Need> {
        self.install.needs.iter().filter(|need| !is_there(&need.program)).collect()
    }

    /// Why it cannot be started, if it cannot.
    pub(super) fn usable(&self) -> Result<(), LabError> {
        let name = &self.name;
        if self.install.steps.is_empty() {
            let missing = self.missing();
            return if missing.is_empty() {
                Ok(())
            } else {
                Err(LabError(format!("`{name}` needs {}", remedies(&missing))))
            };
        }
        match self.record() {
            Some(_) => Ok(()),
            None => {
                Err(LabError(format!("`{name}` is not installed; install it with `wirelab endpoints install {name}`")))
            }
        }
    }

    /// Removes every version of it; returns how many bytes that freed.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn remove(&self) -> Result<u64, LabError> {
        let folder = self.versions();
        let bytes = disk_usage(&folder);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.wrong("removing it", &error)),
            _ => Ok(bytes),
        }
    }

    pub(super) fn wrong(&self, attempt: &str, error: &io::Error) -> LabError {
        LabError(format!("installing `{}`: {attempt}: {error}", self.name))
    }

    pub(super) fn read<T: DeserializeOwned>(&self, file: &str) -> Option<T> {
        read(&self.place().join(file))
    }

    pub(super) fn write(&self, file: &str, value: &impl Serialize) -> Result<(), LabError> {
        let path = self.place().join(file);
        write(&path, value).map_err(|error| self.wrong(&format!("writing {}", path.display()), &error))
    }
}

/// What a file of the cache holds. What cannot be read is as good as absent: then what it says is done again.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Writes a file of the cache, in one piece or not at all.
pub(super) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, serde_json::to_vec(value).expect("it can be written as JSON"))?;
    std::fs::rename(&draft, path)
}

/// What compilers keep for all endpoints of this user, in bytes.
#[must_use]
pub fn shared_bytes() -> u64 {
    cache().map_or(0, |cache| disk_usage(&cache.join(SHARED)))
}

/// wirelab's folder in the user's cache.
pub(super) fn cache() -> Option<PathBuf> {
    Some(of_user("XDG_CACHE_HOME", ".cache")?.join("wirelab"))
}

/// Where all versions of an endpoint are.
pub(super) fn versions(cache: &Path, name: &str) -> PathBuf {
    cache.join("endpoints").join(name)
}

/// What is missing, with the remedy of each, as the rest of a sentence.
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

/// Whether there is a program of that name, or something at that path.
fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).exists();
    }
    // Debian has servers in folders that are not on every user's path.
    let administrators = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(administrators).any(|folder| folder.join(program).is_file())
}

/// What a folder and everything in it occupies, in bytes. What cannot be read counts for nothing.
pub(super) fn disk_usage(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    /// The unit of `st_blocks` (inode(7)).
    const BLOCK: u64 = 512;
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of_entry = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => facts.blocks() * BLOCK + disk_usage(&entry.path()),
        Ok(facts) => facts.blocks() * BLOCK,
        Err(_) => 0,
    };
    entries.flatten().map(of_entry).sum()
}
