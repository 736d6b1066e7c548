//! Tables of values for placeholders: CSV, or JSON lines.

use serde_json::{Map, Value};

/// The largest number of rows: each becomes a request in the memory of every client thread.
pub(super) const MOST_ROWS: usize = 100_000;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Data {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Data {
    /// Reads a table: JSON lines if its first line begins with a brace, otherwise CSV with names in the first row.
    ///
    /// # Errors
    /// The line, from 1, and what is wrong there.
    pub fn read(text: &str) -> Result<Self, (u64, String)> {
        let text = text.trim_start_matches('\u{feff}');
        let data = if text.trim_start().starts_with('{') { json_lines(text)? } else { csv(text)? };
        match data.rows.len() {
            0 => Err((1, "no row of values".to_owned())),
            rows if rows > MOST_ROWS => Err((MOST_ROWS as u64, format!("{rows} rows, at most {MOST_ROWS}"))),
            _ => Ok(data),
        }
    }

    /// The names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of rows, at least 1.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The value of a column in a row.
    pub fn value(&self, row: usize, name: &str) -> Option<&str> {
        let column = self.names.iter().position(|known| known == name)?;
        self.rows[row].get(column).map(String::as_str)
    }
}

fn csv(text: &str) -> Result<Data, (u64, String)> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(text.as_bytes());
    let wrong = |error: csv::Error| (error.position().map_or(1, csv::Position::line), error.to_string());
    let names: Vec<String> = reader.headers().map_err(wrong)?.iter().map(str::to_owned).collect();
    if let Some((number, name)) = names.iter().enumerate().find(|(number, name)| names[..*number].contains(name)) {
        return Err((1, format!("column {} repeats the name `{name}`", number + 1)));
    }
    let rows = reader.records().map(|row| Ok(row.map_err(wrong)?.iter().map(str::to_owned).collect()));
    Ok(Data { names, rows: rows.collect::<Result<_, _>>()? })
}

fn json_lines(text: &str) -> Result<Data, (u64, String)> {
    let mut names: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let object: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| (line, format!("not a JSON object: {error}")))?;
        if rows.is_empty() {
            names = object.keys().cloned().collect();
        }
        if let Some(missing) = names.iter().find(|name| !object.contains_key(*name)) {
            return Err((line, format!("the object lacks `{missing}`, which the first one has")));
        }
        rows.push(names.iter().map(|name| plain(&object[name])).collect());
    }
    Ok(Data { names, rows })
}

/// A string without its quotes, anything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_and_json_lines_are_the_same_table() {
        let csv = Data::read("\u{feff}user, id\n\"a, b\",1\nc,2\n").unwrap();
        let json = Data::read("{\"user\":\"a, b\",\"id\":1}\n\n{\"id\":2,\"user\":\"c\"}\n").unwrap();
        assert_eq!(csv, json);
        assert_eq!((csv.rows(), csv.value(0, "user"), csv.value(1, "id")), (2, Some("a, b"), Some("2")));
        assert_eq!(csv.value(0, "name"), None);
    }

    #[test]
    fn a_damaged_table_is_refused_with_the_line() {
        for (text, line, words) in [
            ("", 1, "no row"),
            ("a,b\n", 1, "no row"),
            ("a,b\n1,2\n3\n", 3, "fields"),
            ("a,a\n1,2\n", 1, "repeats"),
            ("{\"a\":1}\n{\"b\":1}\n", 2, "lacks `a`"),
            ("{\"a\":1}\nnothing\n", 2, "not a JSON object"),
        ] {
            let (at, why) = Data::read(text).unwrap_err();
            assert!(at == line && why.contains(words), "{text}: {at} {why}");
        }
    }
}
