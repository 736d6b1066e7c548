//! The files that a spec names: sent to the host before the start, fetched from it afterwards, under the same paths.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use wirelab_model::relocate::below;
use wirelab_model::spec::{ClientSpec, ControlPlaneSpec, ServerSpec, SidecarSpec};

use wirelab_lab::{LabError, Role};

/// The files that a host already has.
#[derive(Debug, Clone, Default)]
pub struct Sent(HashSet<Stamp>);

/// Path, length and modification time.
type Stamp = (PathBuf, u64, Option<SystemTime>);

impl Sent {
    /// The files that the host lacks, or has in another version.
    pub(crate) fn missing(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        paths.iter().filter(|path| !self.0.contains(&stamp(path))).cloned().collect()
    }

    pub(crate) fn add(&mut self, paths: &[PathBuf]) {
        self.0.extend(paths.iter().map(|path| stamp(path)));
    }
}

fn stamp(path: &Path) -> Stamp {
    let about = fs::metadata(path).ok();
    let length = about.as_ref().map_or(0, fs::Metadata::len);
    (path.to_owned(), length, about.and_then(|about| about.modified().ok()))
}

/// The files of an endpoint on another host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// Files and whole folders to send.
    pub(crate) to: Vec<PathBuf>,
    /// Empty folders to create.
    pub(crate) folders: Vec<PathBuf>,
    /// Files and folders that the endpoint writes, to fetch.
    pub(crate) from: Vec<PathBuf>,
    /// The file with the list of servers, which changes while the endpoint runs.
    pub(crate) members: Option<PathBuf>,
}

impl Files {
    /// The spec and the files that it names.
    ///
    /// # Errors
    /// If the spec cannot be read.
    pub(crate) fn of(role: Role, spec: &Path) -> Result<Self, LabError> {
        let mut files = Self { to: vec![spec.to_owned()], ..Self::default() };
        let (qlog_dir, exposition) = match role {
            Role::Server => {
                let server: ServerSpec = read(spec)?;
                files.to.extend(server.document_root);
                if let Some(tls) = server.tls {
                    files.to.extend([tls.certificate, tls.key]);
                    files.from.extend(tls.key_log);
                }
                (server.qlog_dir, server.exposition)
            }
            Role::Client => {
                let client: ClientSpec = read(spec)?;
                files.from.push(client.results);
                if let Some(tls) = client.tls {
                    files.to.extend(tls.trust_anchor);
                    files.from.extend(tls.key_log);
                }
                (client.qlog_dir, client.exposition)
            }
            Role::Sidecar(_) => {
                let sidecar: SidecarSpec = read(spec)?;
                files.members = Some(sidecar.upstreams);
                (None, None)
            }
            Role::ControlPlane => {
                let control_plane: ControlPlaneSpec = read(spec)?;
                files.members = Some(control_plane.members);
                (None, None)
            }
        };
        files.to.extend(files.members.clone());
        files.from.extend(qlog_dir.clone());
        files.folders.extend(qlog_dir);
        files.folders.extend(exposition.and_then(|exposition| Some(exposition.socket.parent()?.to_owned())));
        Ok(files)
    }
}

fn read<T: DeserializeOwned>(spec: &Path) -> Result<T, LabError> {
    let wrong = |why: String| LabError::file(format!("cannot read the spec {}", spec.display())).because(why);
    let text = fs::read(spec).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))
}

/// Packs files and folders under their absolute paths.
pub(crate) fn pack(paths: &[PathBuf], folders: &[PathBuf]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for path in paths {
        append(&mut archive, path, path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    }
    for folder in folders {
        archive.append_dir(relative(folder), folder)?;
    }
    archive.into_inner()
}

/// Packs the existing ones of these files and folders, which are below `root` and lose it in the archive.
pub(crate) fn pack_below(root: &Path, paths: &[PathBuf]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for path in paths {
        match append(&mut archive, path, &below(root, path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
            }
            _ => {}
        }
    }
    archive.into_inner()
}

/// Appends a file or folder under its absolute path; `here` is where it is.
fn append(archive: &mut tar::Builder<Vec<u8>>, path: &Path, here: &Path) -> io::Result<()> {
    match fs::metadata(here)?.is_dir() {
        true => archive.append_dir_all(relative(path), here),
        false => archive.append_path_with_name(here, relative(path)),
    }
}

/// Unpacks an archive below `root`. Files keep their modes, because some are secret.
pub(crate) fn unpack(archive: impl Read, root: &Path) -> io::Result<()> {
    fs::create_dir_all(root)?;
    let mut archive = tar::Archive::new(archive);
    archive.set_preserve_permissions(true);
    archive.set_preserve_mtime(false);
    for entry in archive.entries()? {
        let mut entry = entry?;
        // An existing folder may belong to another user, and needs no change.
        let is_there = entry.header().entry_type().is_dir() && root.join(entry.path()?).is_dir();
        if !is_there && !entry.unpack_in(root)? {
            return Err(io::Error::other(format!("the path {} leads out of the folder", entry.path()?.display())));
        }
    }
    Ok(())
}

/// Unpacks the requested paths from a host's archive. Refuses any other path, so that a host cannot write elsewhere.
pub(crate) fn take(archive: &[u8], wanted: &[PathBuf]) -> io::Result<()> {
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        let path = Path::new("/").join(entry.path()?);
        let is_plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
        if !is_plain || !wanted.iter().any(|wanted| path.starts_with(wanted)) {
            return Err(io::Error::other(format!("the host sent {}, which was not asked for", path.display())));
        }
        if entry.header().entry_type().is_dir() {
            fs::create_dir_all(&path)?;
        } else if entry.header().entry_type().is_file() {
            io::copy(&mut entry, &mut File::create(&path)?)?;
        }
    }
    Ok(())
}

/// A path as archives store it.
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::slice;

    use super::*;

    #[test]
    fn files_arrive_under_the_same_path_with_their_modes() {
        let here = tempfile::tempdir().unwrap();
        let there = tempfile::tempdir().unwrap();
        let (key, documents) = (here.path().join("server.key"), here.path().join("documents"));
        fs::write(&key, "secret").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(&documents).unwrap();
        fs::write(documents.join("1.bin"), "x").unwrap();
        let empty = here.path().join("qlog");
        fs::create_dir(&empty).unwrap();
        let archive = pack(&[key.clone(), documents.clone()], slice::from_ref(&empty)).unwrap();
        // A second transfer changes nothing.
        for _ in 0..2 {
            unpack(&archive[..], there.path()).unwrap();
        }
        let arrived = |path: &Path| there.path().join(relative(path));
        assert_eq!(fs::read_to_string(arrived(&key)).unwrap(), "secret");
        assert_eq!(fs::metadata(arrived(&key)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(arrived(&documents.join("1.bin"))).unwrap(), "x");
        assert!(arrived(&empty).is_dir());
    }

    #[test]
    fn a_sidecar_and_a_control_plane_get_the_file_that_names_who_serves() {
        let folder = tempfile::tempdir().unwrap();
        let spec = folder.path().join("spec.json");
        let of = |role, text: &str| {
            fs::write(&spec, text).unwrap();
            Files::of(role, &spec).unwrap()
        };
        let sidecar = r#"{ "contract": 1, "protocol": "h2c", "upstream_protocol": "h2c", "address": "127.0.0.1", "port": 0, "upstreams": "/u" }"#;
        let files = of(Role::Sidecar(wirelab_lab::Beside::Clients), sidecar);
        assert_eq!((files.to, files.members), (vec![spec.clone(), "/u".into()], Some("/u".into())));
        let plane = r#"{ "contract": 1, "protocol": "grpcc", "address": "127.0.0.1", "port": 0, "server_name": "a", "members": "/m" }"#;
        let files = of(Role::ControlPlane, plane);
        assert_eq!((files.to, files.members), (vec![spec.clone(), "/m".into()], Some("/m".into())));
    }

    #[test]
    fn a_missing_file_is_named_unless_it_may_be_missing() {
        let missing = [PathBuf::from("/nowhere/at/all")];
        assert!(pack(&missing, &[]).unwrap_err().to_string().contains("/nowhere/at/all"));
        assert!(
            tar::Archive::new(&pack_below(Path::new("/"), &missing).unwrap()[..]).entries().unwrap().next().is_none()
        );
    }

    #[test]
    fn only_what_was_asked_for_is_taken_from_a_pod() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results.jsonl");
        fs::write(&results, "{}").unwrap();
        let archive = pack(slice::from_ref(&results), &[]).unwrap();
        fs::remove_file(&results).unwrap();
        take(&archive, slice::from_ref(&results)).unwrap();
        assert_eq!(fs::read_to_string(&results).unwrap(), "{}");
        let error = take(&archive, &[folder.path().join("qlog")]).unwrap_err();
        assert!(error.to_string().contains("not asked for"), "{error}");
    }
}
