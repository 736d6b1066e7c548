//! Endpoint discovery: the built-in endpoint, and every folder with an `endpoint.toml` on the search path.

mod carried;
mod checked;
mod describe;
mod digest;
mod installation;
mod steps;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use wirelab_model::endpoint::{Endpoint, Manifest};
use wirelab_model::nearest::did_you_mean;

use crate::LabError;

pub use carried::Carried;
pub use checked::Checked;
pub use describe::describe;
pub(crate) use describe::{ended, output};
pub use digest::digest;
pub use installation::{Installation, Record, shared_bytes};
pub use steps::StepProgress;
pub use versions::of_version;

/// Names of the endpoints that are part of wirelab.
pub use wirelab_model::plan::{BUILTIN, ENGINE};

/// Environment variable with further search folders, separated by colons.
pub const SEARCH_PATH: &str = "WIRELAB_ENDPOINTS";

/// File name that marks a folder as an endpoint.
const MANIFEST: &str = "endpoint.toml";

/// A discovered endpoint, usable or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Endpoint name; the folder's name, if its `endpoint.toml` is unreadable.
    pub name: String,
    /// Its folder; absent: built in.
    pub folder: Option<PathBuf>,
    /// Start command, or why the endpoint cannot be started: it is not installed, or its folder is invalid.
    pub endpoint: Result<Endpoint, LabError>,
    /// Installation; absent: the endpoint needs none.
    pub installation: Option<Installation>,
}

impl Found {
    /// Whether it is another version than that of its folder, which only its name `NAME@VERSION` selects.
    #[must_use]
    pub fn is_other_version(&self) -> bool {
        self.name.contains('@')
    }
}

/// All endpoints except templates: the two that are part of wirelab first, then those of `$WIRELAB_ENDPOINTS`, of
/// `./endpoints`, and of the user's data folder. If two have the same name, the second one is reported as hidden. Then
/// come the carried ones with names that no folder has.
#[must_use]
pub fn discover(program: &Path, carried: Option<Carried<'_>>) -> Vec<Found> {
    let mut all = everything(program, carried);
    all.retain(|found| !is_template(found));
    all
}

/// The endpoint templates: those in folders whose name begins with `_`.
#[must_use]
pub fn templates(program: &Path, carried: Option<Carried<'_>>) -> Vec<Found> {
    let mut all = everything(program, carried);
    all.retain(is_template);
    all
}

/// The endpoint or template of that name.
///
/// # Errors
/// If the name is unknown, or its folder is invalid.
pub fn find(program: &Path, name: &str, carried: Option<Carried<'_>>) -> Result<Endpoint, LabError> {
    let all = everything(program, carried);
    if let Some(found) = all.iter().find(|found| found.name == name) {
        return found.endpoint.clone();
    }
    match of_version(&all, name) {
        Some(found) => found?.endpoint,
        None => Err(LabError::endpoint(unknown(name, &all))),
    }
}

/// The message for a name that no endpoint has: with the nearest name and all names.
#[must_use]
pub fn unknown(name: &str, all: &[Found]) -> String {
    if let Some(Err(error)) = of_version(all, name).map(|found| found.and_then(|found| found.endpoint)) {
        return error.to_string();
    }
    let names: Vec<_> = all.iter().map(|found| found.name.as_str()).collect();
    let meant = did_you_mean(name, names.iter().copied());
    format!(
        "no endpoint has the name `{name}`{meant}; known endpoints: {}. A folder with an {MANIFEST} in ./endpoints or in \
         ${SEARCH_PATH} adds one",
        names.join(", ")
    )
}

/// The built-in endpoint. `program` is wirelab's executable.
#[must_use]
pub fn builtin(program: &Path) -> Endpoint {
    Endpoint {
        name: BUILTIN.to_owned(),
        command: vec![program.to_string_lossy().into_owned(), "endpoint".to_owned()],
        environment: IndexMap::new(),
        folder: None,
        installation: None,
    }
}

/// The endpoints that are part of wirelab: the built-in one and the load engine. `program` is wirelab's executable.
#[must_use]
pub fn own(program: &Path) -> [Endpoint; 2] {
    let builtin = builtin(program);
    let mut engine = Endpoint { name: ENGINE.to_owned(), ..builtin.clone() };
    engine.command.push("--engine".to_owned());
    [builtin, engine]
}

/// Whether an endpoint of this name is part of wirelab.
#[must_use]
pub fn is_own(name: &str) -> bool {
    [BUILTIN, ENGINE].contains(&name)
}

/// The date of an RFC 3339 time.
#[must_use]
pub fn day(moment: &str) -> &str {
    moment.split('T').next().unwrap_or(moment)
}

fn is_template(found: &Found) -> bool {
    let name = found.folder.as_deref().and_then(Path::file_name);
    name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"_"))
}

fn everything(program: &Path, carried: Option<Carried<'_>>) -> Vec<Found> {
    let found = |own: Endpoint| Found { name: own.name.clone(), folder: None, endpoint: Ok(own), installation: None };
    let mut all: Vec<_> = own(program).into_iter().map(found).collect();
    let mut roots: Vec<PathBuf> = Vec::new();
    for root in search_path() {
        // The same folder may occur twice, for example as ./endpoints and in the variable.
        let root = root.canonicalize().unwrap_or(root);
        if !roots.contains(&root) {
            all.extend(below(&root));
            roots.push(root);
        }
    }
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for found in &mut all {
        let place =
            found.folder.as_ref().map_or_else(|| "wirelab itself".to_owned(), |path| path.display().to_string());
        if let Some(other) = first.get(&found.name) {
            found.endpoint =
                Err(LabError::endpoint(format!("{place} is hidden: {other} has an endpoint `{}` too", found.name))
                    .remedy("rename one"));
        } else {
            first.insert(found.name.clone(), place);
        }
    }
    if let Some(carried) = carried {
        all.extend(carried.others(&first.into_keys().collect::<BTreeSet<_>>()));
    }
    let installed = versions::installed(&all);
    all.extend(installed);
    all
}

fn search_path() -> Vec<PathBuf> {
    let variable = std::env::var_os(SEARCH_PATH).unwrap_or_default();
    let mut roots: Vec<_> = std::env::split_paths(&variable).filter(|path| !path.as_os_str().is_empty()).collect();
    roots.push(PathBuf::from("endpoints"));
    roots.extend(of_user("XDG_DATA_HOME", ".local/share").map(|data| data.join("wirelab/endpoints")));
    roots
}

/// A folder of this user: that of the variable, or this one in the home folder (XDG Base Directory Specification).
#[must_use]
pub fn of_user(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(variable).or_else(|| set("HOME").map(|home| home.join(below_home)))
}

/// The endpoints in the folders below `root`, by name. None if `root` does not exist.
fn below(root: &Path) -> Vec<Found> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(MANIFEST).exists());
    folders.sort();
    folders
        .into_iter()
        .map(|folder| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match read(&folder, &name, None) {
                Ok((endpoint, installation)) => Found { name, folder: Some(folder), endpoint, installation },
                Err(error) => Found { name, folder: Some(folder), endpoint: Err(error), installation: None },
            }
        })
        .collect()
}

/// Reads the text of the manifest of an endpoint with this name, for the version of its steps or for another one.
/// `path` is for messages.
///
/// # Errors
/// If the manifest has a mistake, another name, or no steps for other versions.
pub fn parse(text: &str, path: &Path, name: &str, version: Option<&str>) -> Result<Manifest, LabError> {
    let wrong = |why: String| LabError::endpoint(path.display().to_string()).because(why);
    let mut manifest: Manifest = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if manifest.name != name {
        return Err(wrong(format!("`name` is `{}`, but the folder is `{name}`; make them the same", manifest.name)));
    }
    if let Some(version) = version {
        manifest.install = Some(versions::at(manifest.install, name, version)?);
        manifest.name = format!("{name}@{version}");
    }
    Ok(manifest)
}

/// Start command, or why the endpoint cannot be started, and its installation.
type Content = (Result<Endpoint, LabError>, Option<Installation>);

/// Reads the manifest of a folder, for the version of its steps or for another one.
fn read(folder: &Path, name: &str, version: Option<&str>) -> Result<Content, LabError> {
    let path = folder.join(MANIFEST);
    let wrong = |why: String| LabError::endpoint(path.display().to_string()).because(why);
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let Manifest { name, mut command, mut environment, install } = parse(&text, &path, name, version)?;
    let installation = install.map(|install| Installation::new(&name, folder, install)).transpose();
    let installation = installation.map_err(|error| LabError::endpoint(path.display().to_string()).because(error))?;
    match &installation {
        Some(installation) => {
            command.iter_mut().chain(environment.values_mut()).for_each(|text| *text = installation.filled(text));
        }
        None if command.iter().chain(environment.values()).any(|text| text.contains(installation::INSTALLED)) => {
            let installed = installation::INSTALLED;
            return Err(wrong(format!("`{installed}` needs a table [install] with the steps that fill that folder")));
        }
        None => {}
    }
    let Some(program) = command.first_mut() else {
        return Err(wrong("`command` is empty; name the program that plays client and server".to_owned()));
    };
    let inside = folder.join(&*program);
    if Path::new(program).is_relative() && inside.is_file() {
        *program = inside.to_string_lossy().into_owned();
    }
    let identity = installation.as_ref().map(|installation| installation.key().to_owned());
    let endpoint = Endpoint { name, command, environment, folder: Some(folder.to_owned()), installation: identity };
    let usable = installation.as_ref().map_or(Ok(()), Installation::usable);
    Ok((usable.map(|()| endpoint), installation))
}
