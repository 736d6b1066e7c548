//! `wirelab logs`: what wirelab and the processes of a run logged, in the order of time.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value, json};
use wirelab_run::Run;

use crate::args::LogsArgs;
use crate::failure::{Failure, Result};
use crate::log::FILE;
use crate::output::{print, print_document};
use crate::place::run_folder;

/// Source of wirelab's own lines.
const WIRELAB: &str = "wirelab";

/// Length of the time at the beginning of a line.
const STAMP: usize = "2026-11-23T17:40:00.123456Z".len();

/// Keys of a line of wirelab's log that are no fields of the event.
const NO_FIELDS: [&str; 5] = ["timestamp", "level", "message", "target", "spans"];

/// A line of any log of the run.
struct Line {
    /// When it was written; empty if the log does not say.
    stamp: String,
    trial: Option<u32>,
    /// `wirelab`, or the name of the process in the trial.
    source: String,
    text: String,
    /// The object of a line that wirelab wrote.
    object: Option<Map<String, Value>>,
}

/// Prints the logs of a run, or of one of its trials.
pub fn logs(args: &LogsArgs) -> Result {
    let folder = run_folder(args.run.as_deref(), &args.out)?;
    let run = Run::open(&folder).map_err(Failure::input)?;
    let mut lines = own(&folder)?;
    for (trial, source, path) in files(&folder.join("logs"))? {
        lines.extend(of_process(trial, &source, &read(&path)?));
    }
    // The sort is stable, so lines without a time stay behind the line before them.
    lines.sort_by(|one, other| one.stamp.cmp(&other.stamp));
    if let Some(wanted) = args.trial {
        let known = run.trials().iter().map(|record| record.trial.number).chain(lines.iter().filter_map(|it| it.trial));
        check(wanted, known)?;
        lines.retain(|line| line.trial == Some(wanted));
    }
    let mut text = String::new();
    for line in lines {
        let _ = match args.json {
            true => writeln!(text, "{}", object(line)),
            false => writeln!(text, "{}", row(&line)),
        };
    }
    if args.json { print_document(&text) } else { print(&text) }
}

/// Rejects a trial that the run does not have.
fn check(wanted: u32, known: impl Iterator<Item = u32> + Clone) -> Result {
    if known.clone().any(|number| number == wanted) {
        return Ok(());
    }
    let nearest = known.min_by_key(|number| number.abs_diff(wanted));
    let hint = nearest.map_or_else(|| "it has no trial yet".to_owned(), |number| format!("did you mean {number}?"));
    Err(Failure::input(format!("the run has no trial {wanted}; {hint}")))
}

/// The lines of wirelab's own log; runs of older versions have none.
fn own(folder: &Path) -> Result<Vec<Line>> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut lines: Vec<Line> = Vec::new();
    for text in read(&path)?.lines() {
        let line = match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(object) => of_wirelab(object),
            // A kill cut it off.
            Err(_) => {
                let stamp = lines.last().map(|line| line.stamp.clone()).unwrap_or_default();
                Line { stamp, trial: None, source: WIRELAB.to_owned(), text: text.to_owned(), object: None }
            }
        };
        lines.push(line);
    }
    Ok(lines)
}

fn of_wirelab(object: Map<String, Value>) -> Line {
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
    Line { stamp: word("timestamp"), trial, source: WIRELAB.to_owned(), text, object: Some(object) }
}

/// The logs of processes: trial, source and path, servers first.
fn files(folder: &Path) -> Result<Vec<(u32, String, std::path::PathBuf)>> {
    let attempt = |error| Failure::failed(format!("cannot list {}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(attempt)? {
        let path = entry.map_err(attempt)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parts = name.strip_prefix("trial-").and_then(|name| name.strip_suffix(".log")?.split_once('-'));
        if let Some((number, source)) = parts
            && let Ok(number) = number.parse()
        {
            files.push((number, source.to_owned(), path));
        }
    }
    files.sort_by_key(|(number, source, _)| (*number, source.starts_with("client"), source.clone()));
    Ok(files)
}

/// The lines of a process. A line without a time has that of the line before it.
fn of_process(trial: u32, source: &str, text: &str) -> Vec<Line> {
    let mut last = String::new();
    let lines = text.lines().map(|line| {
        let text = match stamped(line) {
            Some((stamp, text)) => {
                stamp.clone_into(&mut last);
                text
            }
            None => line,
        };
        Line { stamp: last.clone(), trial: Some(trial), source: source.to_owned(), text: text.to_owned(), object: None }
    });
    lines.collect()
}

/// The time at the beginning of a line, and the rest of the line.
fn stamped(line: &str) -> Option<(&str, &str)> {
    let (stamp, text) = line.split_at_checked(STAMP)?;
    let is_time =
        stamp.ends_with('Z') && stamp.as_bytes()[10] == b'T' && stamp.starts_with(|c: char| c.is_ascii_digit());
    Some((stamp, text.strip_prefix(' ')?)).filter(|_| is_time)
}

fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn row(line: &Line) -> String {
    let trial = line.trial.map_or_else(String::new, |trial| format!("trial {trial}"));
    format!("{:<STAMP$}  {trial:<10}  {:<8}  {}", line.stamp, line.source, line.text).trim_end().to_owned()
}

fn object(line: Line) -> Value {
    let mut object = line.object.unwrap_or_else(|| {
        let mut object = Map::new();
        object.insert("timestamp".to_owned(), json!(line.stamp));
        object.insert("message".to_owned(), json!(line.text));
        object
    });
    object.insert("source".to_owned(), json!(line.source));
    object.insert("trial".to_owned(), json!(line.trial));
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_wirelab_names_trial_role_and_fields() {
        let line = r#"{"timestamp":"2026-11-23T17:40:00.123456Z","level":"INFO","message":"started","pid":7,
            "target":"wirelab_run","spans":[{"study":"quick","name":"run"},{"number":3,"name":"trial"},
            {"endpoint":"builtin","role":"server","name":"role"}]}"#;
        let line = of_wirelab(serde_json::from_str(line).unwrap());
        let expected = "2026-11-23T17:40:00.123456Z  trial 3     wirelab   INFO  server: started pid=7";
        assert_eq!(row(&line), expected);
        let object = object(line);
        assert_eq!((&object["trial"], &object["source"], &object["pid"]), (&json!(3), &json!("wirelab"), &json!(7)));
    }

    #[test]
    fn lines_without_a_time_stay_behind_the_line_before_them() {
        let lines = of_process(1, "client", "2026-11-23T17:40:00.123456Z panic\n  at main.rs\n");
        let texts: Vec<_> = lines.iter().map(|line| (&*line.stamp, &*line.text)).collect();
        assert_eq!(texts, [("2026-11-23T17:40:00.123456Z", "panic"), ("2026-11-23T17:40:00.123456Z", "  at main.rs")]);
    }
}
