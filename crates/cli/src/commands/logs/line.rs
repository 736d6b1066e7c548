//! A line of a log.

use std::fmt::Write;

use serde_json::{Map, Value, json};

/// Source of wirelab's own lines.
pub(super) const WIRELAB: &str = "wirelab";

/// Length of the time at the beginning of a line.
const STAMP: usize = "2026-11-23T17:40:00.123456Z".len();

/// Keys of a line of wirelab's log that are no fields of the event.
const NO_FIELDS: [&str; 5] = ["timestamp", "level", "message", "target", "spans"];

/// A line of any log of the run.
pub(super) struct Line {
    /// When it was written; empty if the log does not say.
    pub(super) stamp: String,
    pub(super) trial: Option<u32>,
    /// `wirelab`, or the name of the process.
    pub(super) source: String,
    text: String,
    /// The object of a line that wirelab wrote.
    object: Option<Map<String, Value>>,
}

impl Line {
    /// A line of wirelab's own log. `last`: the time of the line before it.
    pub(super) fn of_wirelab(text: &str, last: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(object) => Self::of_object(object),
            // A kill cut it off.
            Err(_) => Self { object: None, ..Self::of_process(None, WIRELAB, text, last) },
        }
    }

    fn of_object(object: Map<String, Value>) -> Self {
        let word = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let span = |name: &str| object.get("spans")?.as_array()?.iter().find(|span| span["name"] == name);
        let trial = span("trial").and_then(|span| u32::try_from(span["number"].as_u64()?).ok());
        let mut text = format!("{:<5} ", word("level"));
        if let Some(role) = span("role") {
            let number = role.get("number").map_or_else(String::new, |number| format!(" {number}"));
            let _ = write!(text, "{}{number}: ", role["role"].as_str().unwrap_or_default());
        }
        text.push_str(&word("message"));
        for (key, value) in object.iter().filter(|(key, _)| !NO_FIELDS.contains(&key.as_str())) {
            let _ = match value {
                Value::String(words) => write!(text, " {key}={words}"),
                value => write!(text, " {key}={value}"),
            };
        }
        Self { stamp: word("timestamp"), trial, source: WIRELAB.to_owned(), text, object: Some(object) }
    }

    /// A line of another process. A line without a time has that of the line before it, `last`.
    pub(super) fn of_process(trial: Option<u32>, source: &str, line: &str, last: &str) -> Self {
        let (stamp, text) = stamped(line).unwrap_or((last, line));
        let (stamp, source, text) = (stamp.to_owned(), source.to_owned(), text.to_owned());
        Self { stamp, trial, source, text, object: None }
    }

    /// The line for people.
    pub(super) fn row(&self) -> String {
        let trial = self.trial.map_or_else(String::new, |trial| format!("trial {trial}"));
        format!("{:<STAMP$}  {trial:<10}  {:<8}  {}", self.stamp, self.source, self.text).trim_end().to_owned()
    }

    /// The line for programs.
    pub(super) fn object(self) -> Value {
        let mut object = self.object.unwrap_or_else(|| {
            let mut object = Map::new();
            object.insert("timestamp".to_owned(), json!(self.stamp));
            object.insert("message".to_owned(), json!(self.text));
            object
        });
        object.insert("source".to_owned(), json!(self.source));
        object.insert("trial".to_owned(), json!(self.trial));
        object.into()
    }
}

/// The time at the beginning of a line, and the rest of the line.
fn stamped(line: &str) -> Option<(&str, &str)> {
    let (stamp, text) = line.split_at_checked(STAMP)?;
    let is_time =
        stamp.ends_with('Z') && stamp.as_bytes()[10] == b'T' && stamp.starts_with(|c: char| c.is_ascii_digit());
    Some((stamp, text.strip_prefix(' ')?)).filter(|_| is_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_wirelab_names_trial_role_and_fields() {
        let line = r#"{"timestamp":"2026-11-23T17:40:00.123456Z","level":"INFO","message":"started","pid":7,
            "target":"wirelab_run","spans":[{"study":"quick","name":"run"},{"number":3,"name":"trial"},
            {"endpoint":"builtin","role":"server","name":"role"}]}"#;
        let line = Line::of_wirelab(line, "");
        let expected = "2026-11-23T17:40:00.123456Z  trial 3     wirelab   INFO  server: started pid=7";
        assert_eq!(line.row(), expected);
        let object = line.object();
        assert_eq!((&object["trial"], &object["source"], &object["pid"]), (&json!(3), &json!("wirelab"), &json!(7)));
    }

    #[test]
    fn lines_without_a_time_have_that_of_the_line_before_them() {
        let first = Line::of_process(Some(1), "client", "2026-11-23T17:40:00.123456Z panic", "");
        let second = Line::of_process(Some(1), "client", "  at main.rs", &first.stamp);
        assert_eq!((&*first.text, &*second.text), ("panic", "  at main.rs"));
        assert_eq!((&*first.stamp, &*second.stamp), ("2026-11-23T17:40:00.123456Z", "2026-11-23T17:40:00.123456Z"));
    }
}
