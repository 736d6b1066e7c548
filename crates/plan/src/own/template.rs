//! Texts with placeholders: `{{NAME}}`.

use std::path::PathBuf;

/// A text, cut at its placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(Placeholder),
}

/// The source of a placeholder's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Placeholder {
    /// `{{NAME}}`: a value of the data.
    Data(String),
    /// `{{env.NAME}}`: an environment variable.
    Variable(String),
    /// `{{file.PATH}}`: the text of a file, without the line break at its end.
    File(PathBuf),
}

/// How values become part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// As they are.
    None,
    /// Percent-encoded, for a path or a form.
    Percent,
    /// With the escapes of JSON, where they are within a string.
    Json,
}

impl Template {
    /// Cuts a text. Braces around anything that is not a name are text.
    pub fn of(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let (before, from) = rest.split_at(start);
            if let Some(before) = before.strip_suffix('\\') {
                plain.extend([before, "{{"]);
                rest = &from[2..];
                continue;
            }
            plain.push_str(before);
            match from[2..].split_once("}}").and_then(|(name, after)| Some((Placeholder::of(name.trim())?, after))) {
                Some((placeholder, after)) => {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(Piece::Value(placeholder));
                    rest = after;
                }
                None => {
                    // One brace only: `{{{name}}` has a placeholder after a brace.
                    plain.push('{');
                    rest = &from[1..];
                }
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Self(pieces)
    }

    /// The placeholders in order.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Value(placeholder) => Some(placeholder),
        })
    }

    /// The text with a value for each placeholder.
    pub fn fill<E>(
        &self,
        escape: Escape,
        mut value: impl FnMut(&Placeholder) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut filled = String::new();
        let mut json = JsonPlace::default();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => {
                    json.pass(text);
                    filled.push_str(text);
                }
                Piece::Value(placeholder) => {
                    let value = value(placeholder)?;
                    match escape {
                        Escape::Percent => filled.extend(value.bytes().map(percent)),
                        Escape::Json if json.in_string => {
                            let quoted = serde_json::Value::from(value).to_string();
                            filled.push_str(&quoted[1..quoted.len() - 1]);
                        }
                        Escape::None | Escape::Json => filled.push_str(&value),
                    }
                }
            }
        }
        Ok(filled)
    }
}

impl Placeholder {
    fn of(name: &str) -> Option<Self> {
        let is_word = |name: &str| {
            name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '))
        };
        if let Some(path) = name.strip_prefix("file.").filter(|path| !path.is_empty() && !path.contains(['{', '"'])) {
            return Some(Self::File(path.into()));
        }
        match name.strip_prefix("env.") {
            Some(variable) if is_word(variable) => Some(Self::Variable(variable.to_owned())),
            Some(_) => None,
            None => is_word(name).then(|| Self::Data(name.to_owned())),
        }
    }
}

/// Whether the text so far ends within a string of JSON.
#[derive(Default)]
struct JsonPlace {
    in_string: bool,
    after_backslash: bool,
}

impl JsonPlace {
    fn pass(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                _ if self.after_backslash => self.after_backslash = false,
                '\\' if self.in_string => self.after_backslash = true,
                '"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }
}

/// A byte of a value within a path: unreserved characters as they are (RFC 3986, section 2.3).
fn percent(byte: u8) -> String {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str, escape: Escape) -> String {
        let value = |placeholder: &Placeholder| {
            Ok::<_, ()>(match placeholder {
                Placeholder::Data(name) if name == "id" => "7".to_owned(),
                Placeholder::Data(name) => format!("<{name}>\"&/"),
                Placeholder::Variable(name) => format!("${name}"),
                Placeholder::File(path) => format!("@{}", path.display()),
            })
        };
        Template::of(text).fill(escape, value).unwrap()
    }

    #[test]
    fn names_in_double_braces_are_replaced_and_everything_else_stays() {
        for (text, filled) in [
            ("", ""),
            ("plain {text} }} {{", "plain {text} }} {{"),
            ("{{id}}{{ id }}", "77"),
            ("Bearer {{env.TOKEN}}", "Bearer $TOKEN"),
            ("{{file.secrets/token.txt}}", "@secrets/token.txt"),
            (r"\{{id}} {{id}}", "{{id}} 7"),
            ("{{#each}}{{1}}{{}}", "{{#each}}{{1}}{{}}"),
            ("{{{id}}}", "{7}"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
        ] {
            assert_eq!(fill(text, Escape::None), filled, "{text}");
        }
    }

    #[test]
    fn values_are_escaped_for_their_place() {
        assert_eq!(fill("/users/{{name}}?id={{id}}", Escape::Percent), "/users/%3Cname%3E%22%26%2F?id=7");
        let body = r#"{"name": "\"{{name}}", "id": {{id}}}"#;
        assert_eq!(fill(body, Escape::Json), r#"{"name": "\"<name>\"&/", "id": 7}"#.replace(">\"", ">\\\""));
        assert!(serde_json::from_str::<serde_json::Value>(&fill(body, Escape::Json)).is_ok());
    }
}
