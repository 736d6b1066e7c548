//! Tags of a run: the user's own words for it, in a file that no checksum covers.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::error::RunError;
use crate::store::folder::{Folder, read_regular, write_whole};

/// The greatest length of a tag in characters.
const MAX_LENGTH: usize = 40;

/// The greatest number of tags of a run.
const MAX_TAGS: usize = 20;

/// The tags of a run, sorted; none if it has no file of tags. Lines that a user wrote by hand are tags of any form.
///
/// # Errors
/// If the file cannot be read.
pub fn read(folder: &Path) -> Result<BTreeSet<String>, RunError> {
    let path = Folder::at(folder).tags();
    let text = match read_regular(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        read => read.map_err(RunError::io("cannot read the tags", &path))?,
    };
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Adds tags to a run; returns all its tags.
///
/// # Errors
/// If a word is no valid tag, the run would have too many, or the folder cannot be written.
pub fn add(folder: &Path, tags: &[String]) -> Result<BTreeSet<String>, RunError> {
    tags.iter().try_for_each(|tag| check(tag))?;
    let mut all = read(folder)?;
    all.extend(tags.iter().cloned());
    if all.len() > MAX_TAGS {
        let why = format!("the run would have {} tags, and a run has at most {MAX_TAGS}", all.len());
        return Err(RunError::Refused { why });
    }
    write(folder, all)
}

/// Removes tags from a run; returns its other tags.
///
/// # Errors
/// If the run does not have one of them, or the folder cannot be written.
pub fn remove(folder: &Path, tags: &[String]) -> Result<BTreeSet<String>, RunError> {
    let mut all = read(folder)?;
    for tag in tags {
        if !all.remove(tag) {
            let others: Vec<_> = all.iter().map(String::as_str).collect();
            let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
            return Err(RunError::Refused { why: format!("the run has no tag `{tag}`; it has: {others}") });
        }
    }
    write(folder, all)
}

fn check(tag: &str) -> Result<(), RunError> {
    let is_word = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_valid = tag.len() <= MAX_LENGTH
        && tag.starts_with(is_word)
        && tag.chars().all(|letter| is_word(letter) || ".-_".contains(letter));
    if is_valid {
        return Ok(());
    }
    let shown: String = tag.chars().take(2 * MAX_LENGTH).collect();
    Err(RunError::Refused {
        why: format!(
            "`{shown}` is no tag: a tag has 1 to {MAX_LENGTH} lower-case letters, digits, `.`, `-` and `_`, and begins \
             with a letter or a digit"
        ),
    })
}

fn write(folder: &Path, tags: BTreeSet<String>) -> Result<BTreeSet<String>, RunError> {
    let path = Folder::at(folder).tags();
    if tags.is_empty() {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RunError::io("cannot remove the tags", &path)(error));
            }
            _ => return Ok(tags),
        }
    }
    let text: String = tags.iter().map(|tag| format!("{tag}\n")).collect();
    write_whole(&path, text.as_bytes())?;
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn tags_are_added_and_removed_and_no_file_is_left_without_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap().is_empty());
        add(folder.path(), &words(&["v1.2", "baseline"])).unwrap();
        add(folder.path(), &words(&["baseline", "2026"])).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("tags.txt")).unwrap(), "2026\nbaseline\nv1.2\n");
        let missing = remove(folder.path(), &words(&["v1.2", "other"])).unwrap_err().to_string();
        assert!(missing.contains("no tag `other`; it has: 2026, baseline"), "{missing}");
        remove(folder.path(), &words(&["v1.2", "2026", "baseline"])).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_word_of_another_form_is_refused_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        for wrong in ["", "Base", "two words", "-x", "a/b", "größe", "a\nb", &"a".repeat(41)] {
            let refused = add(folder.path(), &words(&["right", wrong])).unwrap_err().to_string();
            assert!(refused.contains("is no tag: a tag has 1 to 40"), "{refused}");
        }
        let many: Vec<_> = (0..21).map(|number| format!("t{number}")).collect();
        assert!(add(folder.path(), &many).unwrap_err().to_string().contains("21 tags"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_line_written_by_hand_is_a_tag_that_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tags.txt"), "  Two Words \r\n\nold").unwrap();
        assert_eq!(Vec::from_iter(read(folder.path()).unwrap()), ["Two Words", "old"]);
        assert_eq!(Vec::from_iter(remove(folder.path(), &words(&["Two Words"])).unwrap()), ["old"]);
    }
}
