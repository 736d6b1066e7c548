//! Endpoints of another version than that of their folder: `NAME@VERSION`.

use wirelab_model::endpoint::Install;

use crate::LabError;
use crate::endpoints::{Found, installation, read};

/// The endpoint `NAME@VERSION`, installed or not. `None` if the name has no version, or no folder has the endpoint.
///
/// # Errors
/// If the version cannot be one, or the endpoint has no steps for other versions.
#[must_use]
pub fn of_version(all: &[Found], name: &str) -> Option<Result<Found, LabError>> {
    let (base, version) = name.split_once('@')?;
    let folder = all.iter().find(|found| found.name == base)?.folder.clone()?;
    let found = read(&folder, base, Some(version)).map(|(endpoint, installation)| Found {
        name: name.to_owned(),
        folder: Some(folder),
        endpoint,
        installation,
    });
    Some(found)
}

/// Other versions that this user has installed, by name.
pub(super) fn installed(all: &[Found]) -> Vec<Found> {
    let Some(place) = installation::cache().map(|cache| installation::versions(&cache, "")) else { return Vec::new() };
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names.iter().filter_map(|name| of_version(all, name)?.ok()).collect()
}

/// The recipe for another version.
pub(super) fn at(install: Option<Install>, name: &str, version: &str) -> Result<Install, LabError> {
    let is_version = version.starts_with(|first: char| first.is_ascii_alphanumeric())
        && version.chars().all(|letter| letter.is_ascii_alphanumeric() || ".+-_".contains(letter));
    if !is_version {
        return Err(LabError::endpoint(format!("`{name}@{version}` has no valid version"))
            .remedy(format!("write it as the library does, such as {name}@1.2.3")));
    }
    let Some(install) = install.filter(|install| !install.version_steps.is_empty()) else {
        return Err(LabError::endpoint(format!("`{name}` has one version only"))
            .remedy("`version_steps` in its endpoint.toml would install others"));
    };
    let steps = install.version_steps.iter();
    let steps = steps.map(|words| words.iter().map(|word| word.replace("{version}", version)).collect());
    let library = install.library.split(' ').next().unwrap_or_default();
    Ok(Install { steps: steps.collect(), library: format!("{library} {version}"), ..install.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(version_steps: &str) -> Install {
        toml::from_str(&format!(
            "language = 'Go'\nlibrary = 'lib 1.0, other 2.0'\nset = 'core'\nsteps = [['a']]\n{version_steps}"
        ))
        .unwrap()
    }

    #[test]
    fn another_version_has_its_own_steps_and_library() {
        let install = at(Some(recipe("version_steps = [['get', 'lib@v{version}']]")), "lib", "1.1-rc.1").unwrap();
        assert_eq!(install.steps, [["get", "lib@v1.1-rc.1"]]);
        assert_eq!(install.library, "lib 1.1-rc.1");
    }

    #[test]
    fn versions_that_cannot_be_installed_are_refused() {
        let why = |install, version| at(install, "lib", version).unwrap_err().to_string();
        let steps = || Some(recipe("version_steps = [['{version}']]"));
        for version in ["", "-x", "../1", "1 2", "1/2"] {
            assert!(why(steps(), version).contains("no valid version"), "{version}");
        }
        assert!(why(Some(recipe("")), "1.1").contains("one version only"));
        assert!(why(None, "1.1").contains("version_steps"));
    }
}
