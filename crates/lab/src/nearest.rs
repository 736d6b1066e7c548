//! The word that was meant.

/// `, did you mean X` where there is a word that is near enough to be meant.
#[must_use]
pub fn nearest(word: &str, known: &[&str]) -> String {
    let score = |candidate: &&&str| (strsim::jaro_winkler(word, candidate) * 1000.0) as u32;
    match known.iter().max_by_key(score) {
        Some(best) if score(&best) >= 700 => format!(", did you mean `{best}`"),
        _ => String::new(),
    }
}
