//! Suggestions for misspelt words.

/// The element of `known` nearest to `word`, if one is near enough to suggest.
///
/// The limit is one edit (Damerau-Levenshtein: insertion, deletion, replacement, swap of neighbours) per three
/// characters, regardless of case. The last group may have only two. A prefix of at least three characters matches too.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.trim().to_lowercase();
    let length = wanted.chars().count();
    // A longer word is no misspelt name, and comparing it would take long.
    if wanted.is_empty() || length > 64 {
        return None;
    }
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let edits = strsim::damerau_levenshtein(&wanted, &candidate);
        let near = edits <= ((length.max(candidate.chars().count()) + 1) / 3).max(1) && edits < length;
        if near { Some(edits) } else { (length >= 3 && candidate.starts_with(&wanted)).then_some(usize::MAX) }
    };
    known.into_iter().filter_map(|k| distance(k).map(|d| (d, k))).min_by_key(|(d, _)| *d).map(|(_, k)| k)
}

/// Returns `` , did you mean `x` `` if a known word is near enough, otherwise an empty string.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |meant| format!(", did you mean `{meant}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_unless_all_are_too_far() {
        let known = ["protocol", "payload", "workers"];
        assert_eq!(nearest("protocl", known), Some("protocol"));
        assert_eq!(nearest("Payload ", known), Some("payload"));
        assert_eq!(nearest("wrokers", known), Some("workers"));
        assert_eq!(nearest("proto", known), Some("protocol"));
        assert_eq!(nearest("pears", ["pairs", "null"]), Some("pairs"));
        assert_eq!(nearest("bananas", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), known), None);
    }

    #[test]
    fn a_suggestion_is_made_only_for_a_known_word() {
        assert_eq!(did_you_mean("memry", ["cpu", "memory"]), ", did you mean `memory`");
        assert_eq!(did_you_mean("bananas", ["cpu", "memory"]), "");
    }
}
