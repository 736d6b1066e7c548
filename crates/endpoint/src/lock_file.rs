//! Versions of libraries that do not report their own, from the lock file of the build.

/// The library with its version, or with all its versions: `quinn 0.11.12`.
///
/// `lock` is the text of the program's own `Cargo.lock`.
#[must_use]
pub fn version(lock: &str, library: &str) -> String {
    let entry = format!("name = \"{library}\"\nversion = \"");
    let versions: Vec<_> = lock.split(entry.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect();
    format!("{library} {}", if versions.is_empty() { "unknown".to_owned() } else { versions.join(" and ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_of_a_library_are_named_and_a_missing_one_is_unknown() {
        let lock =
            "name = \"a\"\nversion = \"1.2\"\n\nname = \"ab\"\nversion = \"3\"\n\nname = \"a\"\nversion = \"2.0\"\n";
        assert_eq!(version(lock, "a"), "a 1.2 and 2.0");
        assert_eq!(version(lock, "b"), "b unknown");
    }
}
