//! Which endpoints there are: the built-in one, and every folder with an `endpoint.toml` where wirelab looks for them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use ring::digest::{Context, SHA256};
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::{Description, Endpoint, Manifest};

use crate::guard::Guard;
use crate::lines::shortened;
use crate::open::nearest;
use crate::process::LocalProcess;
use crate::{Exit, ExitStatus, LabError, Process, Silence};

/// The name of the endpoint that is part of wirelab.
pub const BUILTIN: &str = "builtin";

/// The environment variable with further folders to look into, separated by colons.
pub const SEARCH_PATH: &str = "WIRELAB_ENDPOINTS";

/// The file that makes a folder an endpoint.
const MANIFEST: &str = "endpoint.toml";

/// How long `describe` may take, an interpreter's start included.
const DESCRIBING: Duration = Duration::from_secs(20);

/// The longest description, in bytes.
const LONGEST_DESCRIPTION: usize = 64 * 1024;

/// The most files that the folder of an endpoint may have.
const MOST_FILES: usize = 100_000;

/// An endpoint that was found, usable or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its name; that of its folder, where its `endpoint.toml` cannot be read.
    pub name: String,
    /// Its folder; absent: built in.
    pub folder: Option<PathBuf>,
    /// How to start it, or what is wrong with its folder.
    pub endpoint: Result<Endpoint, LabError>,
}

/// Every endpoint but the templates: the built-in one first, then those of `$WIRELAB_ENDPOINTS`, of `./endpoints`, and of the
/// user's data folder. Where two have the same name the first one counts, and the second is reported as hidden.
#[must_use]
pub fn discover(program: &Path) -> Vec<Found> {
    let mut all = everything(program);
    all.retain(|found| !is_template(found));
    all
}

/// The endpoints that are there to be copied: those in folders whose name begins with `_`.
#[must_use]
pub fn templates(program: &Path) -> Vec<Found> {
    let mut all = everything(program);
    all.retain(is_template);
    all
}

/// The endpoint of that name, template or not.
///
/// # Errors
/// If there is none, or its folder is broken.
pub fn find(program: &Path, name: &str) -> Result<Endpoint, LabError> {
    let all = everything(program);
    if let Some(found) = all.iter().find(|found| found.name == name) {
        return found.endpoint.clone();
    }
    Err(LabError(unknown(name, &all)))
}

/// The message for a name that no endpoint has, with the nearest one and all of them.
#[must_use]
pub fn unknown(name: &str, all: &[Found]) -> String {
    let names: Vec<_> = all.iter().map(|found| found.name.as_str()).collect();
    format!(
        "there is no endpoint `{name}`{}; there are {}. A folder with an {MANIFEST} in ./endpoints or in ${SEARCH_PATH} adds one",
        nearest(name, &names),
        names.join(", ")
    )
}

/// The endpoint that is part of wirelab. `program` is wirelab's own file.
#[must_use]
pub fn builtin(program: &Path) -> Endpoint {
    Endpoint {
        name: BUILTIN.to_owned(),
        command: vec![program.to_string_lossy().into_owned(), "endpoint".to_owned()],
        environment: IndexMap::new(),
        folder: None,
    }
}

fn is_template(found: &Found) -> bool {
    let name = found.folder.as_deref().and_then(Path::file_name);
    name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"_"))
}

fn everything(program: &Path) -> Vec<Found> {
    let mut all = vec![Found { name: BUILTIN.to_owned(), folder: None, endpoint: Ok(builtin(program)) }];
    let mut roots: Vec<PathBuf> = Vec::new();
    for root in search_path() {
        // The same folder may be named twice, for example by ./endpoints and by the variable.
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
                Err(LabError(format!("{place} is hidden: {other} has an endpoint `{}` too; rename one", found.name)));
        } else {
            first.insert(found.name.clone(), place);
        }
    }
    all
}

fn search_path() -> Vec<PathBuf> {
    let variable = std::env::var_os(SEARCH_PATH).unwrap_or_default();
    let mut roots: Vec<_> = std::env::split_paths(&variable).filter(|path| !path.as_os_str().is_empty()).collect();
    roots.push(PathBuf::from("endpoints"));
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    roots.extend(data.map(|data| data.join("wirelab/endpoints")));
    roots
}

/// The endpoints below a folder, by name. A folder that does not exist has none.
fn below(root: &Path) -> Vec<Found> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(MANIFEST).exists());
    folders.sort();
    folders
        .into_iter()
        .map(|folder| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Found { endpoint: read(&folder, &name), folder: Some(folder), name }
        })
        .collect()
}

fn read(folder: &Path, name: &str) -> Result<Endpoint, LabError> {
    let path = folder.join(MANIFEST);
    let wrong = |why: String| LabError(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let manifest: Manifest = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if manifest.name != name {
        return Err(wrong(format!("`name` is `{}`, but the folder is `{name}`; make them the same", manifest.name)));
    }
    let mut command = manifest.command;
    let Some(program) = command.first_mut() else {
        return Err(wrong("`command` is empty; name the program that plays client and server".to_owned()));
    };
    let inside = folder.join(&*program);
    if Path::new(program).is_relative() && inside.is_file() {
        *program = inside.to_string_lossy().into_owned();
    }
    Ok(Endpoint { name: manifest.name, command, environment: manifest.environment, folder: Some(folder.to_owned()) })
}

/// What an endpoint says of itself: the answer to `<endpoint> describe`, checked for contract version and name.
///
/// # Errors
/// If it cannot be started, does not answer in time, or answers something else.
pub fn describe(endpoint: &Endpoint) -> Result<Description, LabError> {
    let name = &endpoint.name;
    let wrong = |why: String| LabError(format!("the endpoint `{name}` does not describe itself: {why}"));
    let deadline = Instant::now() + DESCRIBING;
    let (answer, exit) = output(endpoint, &[OsStr::new("describe")], LONGEST_DESCRIPTION, deadline)?;
    if exit.status != ExitStatus::Code(0) {
        return Err(wrong(ended(&exit)));
    }
    let description: Description = serde_json::from_slice(&answer)
        .map_err(|error| wrong(format!("`describe` printed {}: {error}", shortened(&answer))))?;
    if description.contract != CONTRACT_VERSION {
        return Err(wrong(format!(
            "it speaks version {} of the contract, and this wirelab version {CONTRACT_VERSION}; update the older one",
            description.contract
        )));
    }
    if description.name != *name {
        return Err(wrong(format!("it calls itself `{}`; `describe` and {MANIFEST} must agree", description.name)));
    }
    Ok(description)
}

/// Runs an endpoint to its end, and returns its standard output.
pub(crate) fn output(
    endpoint: &Endpoint,
    arguments: &[&OsStr],
    limit: usize,
    deadline: Instant,
) -> Result<(Vec<u8>, Exit), LabError> {
    let mut process = LocalProcess::spawn(endpoint, arguments, None, Guard::shared(), None)?;
    let silence = match process.read_all(limit, deadline) {
        Ok(answer) => return Ok((answer, process.end(deadline))),
        Err(Silence::Nonsense(why)) => format!("it printed {why}"),
        Err(Silence::Deadline | Silence::Ended(_)) => "it did not end in time".to_owned(),
    };
    let words = process.end(Instant::now()).last_words;
    let command = arguments.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned());
    Err(LabError(format!("`{command}` of the endpoint `{}` failed: {silence}{}", endpoint.name, quoted(&words))))
}

/// How a process ended, as the end of a sentence.
pub(crate) fn ended(exit: &Exit) -> String {
    let how = match exit.status {
        ExitStatus::Code(code) => format!("it exited with status {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal} ended it"),
        ExitStatus::Killed => "it did not end in time".to_owned(),
    };
    format!("{how}{}", quoted(&exit.last_words))
}

fn quoted(last_words: &str) -> String {
    let line = last_words.lines().next_back().unwrap_or_default();
    if line.is_empty() { String::new() } else { format!("; its last words: {}", shortened(line.as_bytes())) }
}

/// SHA-256, hexadecimal, over the program file and every file of the endpoint's folder with its path: the identity of what
/// was measured. Hidden files and folders, `__pycache__` and `target` are left out, because building or running changes them.
///
/// # Errors
/// If a file cannot be read, or there are more than 100,000.
pub fn digest(endpoint: &Endpoint) -> Result<String, LabError> {
    let wrong = |path: &Path, error: io::Error| {
        LabError(format!("cannot compute the digest of the endpoint `{}`: {}: {error}", endpoint.name, path.display()))
    };
    let mut context = Context::new(&SHA256);
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
    Ok(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Where the kernel would find a program: a name without a slash is looked up in `PATH`.
fn located(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = || std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    if name.contains('/') { PathBuf::from(name) } else { found().unwrap_or_else(|| PathBuf::from(name)) }
}

fn add(context: &mut Context, name: &str, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    // Name and length first, so that no two different sets of files give the same bytes.
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
                "there are more than {MOST_FILES} files; move what it does not need"
            )));
        }
    }
    Ok(())
}
