//! Endpoints in Rust are workspaces with their own lock files, and are built with `--locked`. They depend on crates of
//! this repository. A dependency that changes there must change in their lock files too, which only this test checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use toml::{Table, Value};

/// Enabled features of a package.
type Features = BTreeSet<String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> Table {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The manifest of the workspace with the crates that endpoints depend on.
static WORKSPACE: LazyLock<Table> = LazyLock::new(|| read(&root().join("Cargo.toml")));

/// A dependency in a manifest.
struct Dependency {
    /// The name of the package.
    package: String,
    /// The required version; `None` for packages of this repository.
    version: Option<String>,
    /// The folder of a package of this repository.
    folder: Option<PathBuf>,
    features: Features,
    is_optional: bool,
}

impl Dependency {
    /// `folder` is the manifest's folder; `inherited` is the entry of the workspace's manifest with this name.
    fn new(key: &str, value: &Value, folder: &Path, inherited: Option<&Value>) -> Self {
        let empty = Table::new();
        let table = value.as_table().unwrap_or(&empty);
        if table.get("workspace").is_some() {
            let inherited = inherited.unwrap_or_else(|| panic!("{key} is not in the workspace's manifest"));
            let mut whole = Self::new(key, inherited, &root(), None);
            whole.is_optional = table.get("optional").is_some();
            whole.features.extend(texts(table.get("features")));
            return whole;
        }
        let text = |name: &str| table.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut features: Features = texts(table.get("features")).collect();
        if table.get("default-features").and_then(Value::as_bool) != Some(false) {
            features.insert("default".to_owned());
        }
        Self {
            package: text("package").unwrap_or_else(|| key.to_owned()),
            version: text("version").or_else(|| value.as_str().map(str::to_owned)),
            folder: text("path").map(|path| folder.join(path).canonicalize().unwrap()),
            features,
            is_optional: table.get("optional").and_then(Value::as_bool) == Some(true),
        }
    }
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = String> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned()))
}

/// The dependencies of the package in `folder` with `features`, by their names in the manifest.
fn dependencies(folder: &Path, features: &Features, with_tests: bool) -> BTreeMap<String, Dependency> {
    let manifest = read(&folder.join("Cargo.toml"));
    let inherited = WORKSPACE["workspace"]["dependencies"].as_table().unwrap();
    let mut sections = vec!["dependencies", "build-dependencies"];
    if with_tests {
        sections.push("dev-dependencies");
    }
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten().map(|(_, target)| target);
    let tables: Vec<_> = targets.filter_map(Value::as_table).chain([&manifest]).collect();
    let mut all = BTreeMap::new();
    for section in
        tables.iter().flat_map(|table| sections.iter().filter_map(move |section| table.get(*section)?.as_table()))
    {
        all.extend(
            section.iter().map(|(key, value)| (key.clone(), Dependency::new(key, value, folder, inherited.get(key)))),
        );
    }
    let mut active: BTreeSet<String> =
        all.iter().filter(|(_, dependency)| !dependency.is_optional).map(|(key, _)| key.clone()).collect();
    let table = manifest.get("features").and_then(Value::as_table);
    let (mut left, mut seen): (Vec<_>, BTreeSet<_>) = (features.iter().cloned().collect(), BTreeSet::new());
    while let Some(feature) = left.pop() {
        if !seen.insert(feature.clone()) {
            continue;
        }
        if let Some(dependency) = feature.strip_prefix("dep:") {
            active.insert(dependency.to_owned());
        } else if let Some((dependency, of_it)) = feature.split_once('/') {
            let key = dependency.trim_end_matches('?');
            if key == dependency {
                active.insert(key.to_owned());
            }
            all.entry(key.to_owned()).and_modify(|dependency| _ = dependency.features.insert(of_it.to_owned()));
        } else {
            match table.and_then(|table| table.get(&feature)) {
                Some(more) => left.extend(texts(Some(more))),
                // An optional dependency is a feature of the same name.
                None => _ = active.insert(feature),
            }
        }
    }
    all.retain(|key, _| active.contains(key));
    all
}

/// The packages of this repository that the package in `folder` is built from, itself included, with their folders and
/// dependencies.
fn packages(folder: &Path) -> BTreeMap<PathBuf, BTreeMap<String, Dependency>> {
    let mut wanted = BTreeMap::from([(folder.to_owned(), Features::from(["default".to_owned()]))]);
    loop {
        let before: usize = wanted.values().map(|features| features.len() + 1).sum();
        let found: BTreeMap<_, _> = wanted
            .iter()
            .map(|(each, features)| (each.clone(), dependencies(each, features, each == folder)))
            .collect();
        for dependency in found.values().flat_map(BTreeMap::values) {
            if let Some(folder) = &dependency.folder {
                wanted.entry(folder.clone()).or_default().extend(dependency.features.iter().cloned());
            }
        }
        if wanted.values().map(|features| features.len() + 1).sum::<usize>() == before {
            return found;
        }
    }
}

/// Whether a version satisfies a requirement of Cargo: `1.2`, `0.23`, `=2.5.1-beta`.
fn fits(requirement: &str, version: &str) -> bool {
    if let Some(exact) = requirement.strip_prefix('=') {
        // The part after a plus sign does not affect the order of versions.
        return version.split('+').next() == exact.split('+').next();
    }
    let numbers = |text: &str| -> Vec<u64> {
        let text = text.split(['-', '+']).next().unwrap_or_default();
        text.split('.').map(|part| part.trim().parse().unwrap_or_else(|_| panic!("{text} is no version"))).collect()
    };
    let (least, is) = (numbers(requirement.trim_start_matches('^')), numbers(version));
    let fixed = least.iter().position(|number| *number > 0).map_or(least.len(), |position| position + 1);
    is.len() >= least.len() && is[..fixed] == least[..fixed] && is[..least.len()] >= least[..]
}

/// The differences between a lock file and the manifests of its packages.
fn differences(folder: &Path, lock: &Table) -> Vec<String> {
    let locked = lock["package"].as_array().unwrap();
    let text = |package: &Value, key: &str| package[key].as_str().unwrap().to_owned();
    let mut differences = Vec::new();
    for (each, wanted) in packages(folder) {
        let name = read(&each.join("Cargo.toml"))["package"]["name"].as_str().unwrap().to_owned();
        let own = |package: &&Value| text(package, "name") == name && package.get("source").is_none();
        let Some(package) = locked.iter().find(own) else {
            differences.push(format!("{name} is not in it"));
            continue;
        };
        // Each entry is `NAME`, or `NAME VERSION` if several versions exist.
        let has: BTreeMap<_, _> = texts(package.get("dependencies"))
            .map(|entry| match entry.split_once(' ') {
                Some((name, version)) => (name.to_owned(), version.to_owned()),
                None => {
                    let version =
                        locked.iter().find(|package| text(package, "name") == entry).map(|of| text(of, "version"));
                    (entry, version.unwrap_or_default())
                }
            })
            .collect();
        for Dependency { package, version, .. } in wanted.values() {
            match has.get(package) {
                None => differences.push(format!("{name} depends on {package}, which it does not have")),
                Some(is) => {
                    if let Some(version) = version.as_deref().filter(|version| !fits(version, is)) {
                        differences.push(format!("{name} depends on {package} {version}, but the lock file has {is}"));
                    }
                }
            }
        }
        for left in has.keys().filter(|name| !wanted.values().any(|dependency| dependency.package == **name)) {
            differences.push(format!("{name} does not depend on {left}, which it has"));
        }
    }
    differences
}

/// The endpoints with a lock file.
fn locked() -> Vec<(PathBuf, Table)> {
    let endpoints = fs::read_dir(root().join("endpoints")).unwrap().map(|entry| entry.unwrap().path());
    let locked = endpoints.filter(|folder| folder.join("Cargo.lock").exists());
    locked.map(|folder| (folder.clone(), read(&folder.join("Cargo.lock")))).collect()
}

#[test]
fn the_lock_files_of_endpoints_are_those_of_what_they_are_built_from() {
    let mut wrong = Vec::new();
    for (folder, lock) in locked() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        for difference in differences(&folder, &lock) {
            wrong.push(format!(
                "endpoints/{name}/Cargo.lock: {difference}; run `cargo update --workspace` in that folder"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_stale_lock_file_is_reported() {
    let (folder, lock) = locked().into_iter().find(|(folder, _)| packages(folder).len() > 2).unwrap();
    let contract = |lock: &mut Table, change: fn(&mut Vec<Value>)| {
        let packages = lock["package"].as_array_mut().unwrap();
        let contract =
            packages.iter_mut().find(|package| package["name"].as_str() == Some("wirelab-contract")).unwrap();
        change(contract["dependencies"].as_array_mut().unwrap());
    };
    let (mut more, mut less) = (lock.clone(), lock);
    contract(&mut more, |dependencies| dependencies.push("left-over".into()));
    contract(&mut less, |dependencies| dependencies.retain(|name| name.as_str() != Some("serde")));
    assert_eq!(differences(&folder, &more), ["wirelab-contract does not depend on left-over, which it has"]);
    assert_eq!(differences(&folder, &less), ["wirelab-contract depends on serde, which it does not have"]);
}

#[test]
fn versions_fit_requirements_as_cargo_has_it() {
    for (requirement, version, does) in [
        ("1", "1.4.2", true),
        ("1.4", "1.3.9", false),
        ("1", "2.0.0", false),
        ("0.23", "0.23.5", true),
        ("0.23", "0.24.0", false),
        ("0.0.8", "0.0.9", false),
        ("=2.5.1-beta", "2.5.1-beta", true),
        ("=2.5.1-beta", "2.5.1", false),
        ("=1.28.5", "1.28.5+1.28.3", true),
    ] {
        assert_eq!(fits(requirement, version), does, "{requirement} and {version}");
    }
}
