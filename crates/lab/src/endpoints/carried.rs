//! Sources of endpoints that wirelab's program carries, for use outside a checkout.
//!
//! They are unpacked into the user's cache on first use, in a folder that the digest of their archive names:
//!
//! ```text
//! ~/.cache/wirelab/carried/DIGEST/endpoints/NAME
//! ```

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use ring::digest::{SHA256, digest};
use tar::Archive;

use crate::LabError;
use crate::endpoints::digest::hexadecimal;
use crate::endpoints::{Found, MANIFEST, below, installation};

/// The folder of the endpoints in the archive.
const ENDPOINTS: &str = "endpoints";

/// An archive (tar, compressed with gzip) of a checkout's folder `endpoints`, and of what its endpoints are built from.
#[derive(Debug, Clone, Copy)]
pub struct Carried<'a> {
    /// The bytes of the archive.
    pub archive: &'a [u8],
}

impl Carried<'_> {
    /// The endpoints and templates of the archive that have none of these names. The archive is unpacked only if at
    /// least one is left.
    pub(super) fn others(self, known: &BTreeSet<String>) -> Vec<Found> {
        let names = self.names().expect("wirelab's own archive is readable");
        if names.is_subset(known) {
            return Vec::new();
        }
        let mut others = self.folder().map_or_else(
            |error| names.into_iter().map(|name| unusable(name, &error)).collect(),
            |folder| below(&folder),
        );
        others.retain(|found| !known.contains(&found.name));
        others
    }

    /// Names of the folders with a manifest.
    fn names(self) -> io::Result<BTreeSet<String>> {
        let mut archive = self.read();
        let mut names = BTreeSet::new();
        for entry in archive.entries()? {
            let path = entry?.path()?.into_owned();
            let parts: Vec<_> = path.components().map(Component::as_os_str).collect();
            if let [folder, name, file] = parts[..]
                && (folder, file) == (ENDPOINTS.as_ref(), MANIFEST.as_ref())
            {
                names.insert(name.to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    fn read(self) -> Archive<impl io::Read> {
        Archive::new(GzDecoder::new(self.archive))
    }

    /// The unpacked folder of the endpoints.
    fn folder(self) -> Result<PathBuf, LabError> {
        let cache = installation::cache().ok_or_else(|| {
            LabError::file(
                "wirelab has no folder for the sources of its endpoints: neither XDG_CACHE_HOME nor HOME is set",
            )
            .remedy("set one")
        })?;
        let digest = hexadecimal(digest(&SHA256, self.archive).as_ref());
        let place = cache.join("carried").join(&digest[..installation::DIGITS]);
        if !place.exists() {
            self.unpack(&place).map_err(|error| {
                LabError::file(format!("cannot unpack the sources of wirelab's endpoints to {}", place.display()))
                    .because(error)
            })?;
        }
        Ok(place.join(ENDPOINTS))
    }

    /// Unpacks into a draft beside `place`, so that `place` is complete if it exists.
    fn unpack(self, place: &Path) -> io::Result<()> {
        let draft = place.with_extension(std::process::id().to_string());
        std::fs::create_dir_all(&draft)?;
        let mut archive = self.read();
        // Compilers compare times, and the archive has none.
        archive.set_preserve_mtime(false);
        let done = archive.unpack(&draft).and_then(|()| std::fs::rename(&draft, place));
        if done.is_err() {
            // Clean-up; leftovers are harmless.
            let _ = std::fs::remove_dir_all(&draft);
        }
        // Another wirelab may have been faster.
        if place.exists() { Ok(()) } else { done }
    }
}

fn unusable(name: String, error: &LabError) -> Found {
    Found { name, folder: None, endpoint: Err(error.clone()), installation: None }
}
