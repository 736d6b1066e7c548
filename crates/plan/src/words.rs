//! Rewords errors of `serde` for study authors, and suggests the word that was probably meant. serde passes on
//! errors as texts only, those of wirelab's own types included, so this file reads texts.

pub(crate) use wirelab_model::nearest::nearest;
use wirelab_model::settings::Settings;
use wirelab_model::units::{BitRate, Frequency, Share, Size, Span};

/// Common names of protocols, and wirelab's tokens for them.
const ALIASES: [(&str, &str); 12] = [
    ("http/1.1", "h1"),
    ("http/1", "h1"),
    ("http1.1", "h1"),
    ("http1", "h1"),
    ("https", "h1"),
    ("http", "h1c"),
    ("http/2", "h2"),
    ("http2", "h2"),
    ("h2+tls", "h2"),
    ("http/3", "h3"),
    ("http3", "h3"),
    ("tcp+tls", "tls"),
];

/// A `serde` error message reworded for study authors, and the word that was probably meant.
pub(crate) fn explain(raw: &str) -> (String, Option<String>) {
    if let Some((word, known)) = unknown(raw, "unknown field ") {
        return unknown_key(word, &known);
    }
    if let Some((word, known)) = unknown(raw, "unknown variant ") {
        let alias = ALIASES.iter().find(|(alias, token)| *alias == word.to_lowercase() && known.contains(token));
        let meant = alias.map(|(_, token)| *token).or_else(|| nearest(word, known.iter().copied()));
        return (format!("unknown value `{word}`, expected {}", one_of(&known)), meant.map(str::to_owned));
    }
    if let Some(key) = missing_key(raw) {
        return (format!("the key `{key}` is missing; it is required here"), None);
    }
    if let Some((text, rest)) = raw.strip_prefix('`').and_then(|rest| rest.split_once("` is not ")) {
        return (raw.to_owned(), nearest_quantity(text, rest));
    }
    if let Some(found) = raw.strip_prefix("invalid type: ").and_then(|rest| rest.strip_suffix(", expected a string")) {
        // In TOML a number needs no quotes, but a quantity has a unit, and a name may look like a number.
        let number = found.split('`').nth(1).filter(|_| found.starts_with("integer") || found.starts_with("floating"));
        let hint =
            number.map(|n| format!(": `\"{n}\"`, or if it is a quantity, with its unit: `\"{n} ms\"`, `\"{n} KiB\"`"));
        return (format!("found {found}, expected text in quotes{}", hint.unwrap_or_default()), None);
    }
    (plain_types(raw), None)
}

/// The key in ``missing field `x` ``.
pub(crate) fn missing_key(raw: &str) -> Option<&str> {
    raw.strip_prefix("missing field `")?.strip_suffix('`')
}

/// The unknown word and the known ones in ``unknown field `x`, expected one of `a`, `b` ``.
fn unknown<'a>(raw: &'a str, prefix: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (word, rest) = raw.strip_prefix(prefix)?.strip_prefix('`')?.split_once("`, ")?;
    Some((word, rest.split('`').skip(1).step_by(2).collect()))
}

fn unknown_key(word: &str, known: &[&str]) -> (String, Option<String>) {
    let settings = Settings::keys();
    let is_setting = |key: &str| settings.iter().any(|k| k == key);
    if is_setting(word) && !known.iter().any(|k| is_setting(k)) {
        let message = format!(
            "`{word}` is not a key of this table; it is a setting, fixed in `[workload]` or varied in `[factors]`"
        );
        return (message, None);
    }
    match nearest(word, known.iter().copied()) {
        // Omit a long list of keys if a near one is known.
        Some(meant) if known.len() > 12 => (format!("unknown key `{word}`"), Some(meant.to_owned())),
        meant => (format!("unknown key `{word}`, expected {}", one_of(known)), meant.map(str::to_owned)),
    }
}

/// `` `a` ``, or ``one of `a`, `b` ``
pub(crate) fn one_of<S: AsRef<str>>(known: &[S]) -> String {
    let quoted: Vec<_> = known.iter().map(|word| format!("`{}`", word.as_ref())).collect();
    match quoted.as_slice() {
        [] => "nothing".to_owned(),
        [word] => word.clone(),
        words => format!("one of {}", words.join(", ")),
    }
}

/// The quantity with the nearest unit of the expected kind.
fn nearest_quantity(text: &str, expected: &str) -> Option<String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))?;
    let (number, unit) = (&text[..end], text[end..].trim());
    let candidate = |units: &[&'static str], reads: fn(&str) -> bool| {
        let unit = nearest(unit, units.iter().copied())?;
        let quantity = if unit.starts_with('/') { format!("{number}{unit}") } else { format!("{number} {unit}") };
        reads(&quantity).then_some(quantity)
    };
    if expected.starts_with("a size") {
        candidate(&["B", "KiB", "MiB", "GiB", "KB", "MB", "GB"], |q| q.parse::<Size>().is_ok())
    } else if expected.starts_with("a length of time") {
        candidate(&["ms", "us", "ns", "s", "min", "h"], |q| q.parse::<Span>().is_ok())
            .or_else(|| unit.to_lowercase().starts_with("sec").then(|| format!("{number} s")))
    } else if expected.starts_with("a bit rate") {
        candidate(&["bit/s", "kbit/s", "Mbit/s", "Gbit/s"], |q| q.parse::<BitRate>().is_ok())
    } else if expected.starts_with("a rate") {
        candidate(&["/s", "/min"], |q| q.parse::<Frequency>().is_ok())
    } else {
        candidate(&["%"], |q| q.parse::<Share>().is_ok())
    }
}

/// Replaces names of Rust types.
fn plain_types(raw: &str) -> String {
    let mut text = raw.to_owned();
    for (name, words) in [
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number up to 4294967295"),
        ("expected u16", "expected a whole number up to 65535"),
        ("expected a boolean", "expected `true` or `false`"),
        ("expected a sequence", "expected a list in brackets"),
        ("expected a map", "expected a table"),
    ] {
        text = text.replace(name, words);
    }
    for name in [
        "Settings",
        "Compare",
        "Blocks",
        "Preset",
        "Published",
        "Claim",
        "Test",
        "Study",
        "WrittenRequest",
        "Expectation",
    ] {
        text = text.replace(&format!("expected struct {name}"), "expected a table");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_with_a_wrong_unit_are_given_the_nearest_right_one() {
        for (text, raw, meant) in [
            ("size", "`32 Kib` is not a size such as `32 KiB`", Some("32 KiB")),
            ("time", "`10 msec` is not a length of time such as `10 ms`", None),
            ("time", "`10 mss` is not a length of time such as `10 ms`", Some("10 ms")),
            ("time", "`10 seconds` is not a length of time such as `10 ms`", Some("10 s")),
            ("bits", "`20 Mbits` is not a bit rate such as `100 Mbit/s`", Some("20 Mbit/s")),
            ("number", "`10` is not a length of time such as `10 ms`", None),
        ] {
            assert_eq!(explain(raw).1.as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn a_protocol_is_found_by_the_name_that_people_use() {
        let raw = "unknown variant `HTTP/3`, expected one of `h1`, `h2`, `h3`";
        assert_eq!(explain(raw).1.as_deref(), Some("h3"));
    }
}
