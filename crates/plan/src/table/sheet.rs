//! Splits the text of a table into rows of fields with their positions.

use std::ops::Range;

use csv::{ReaderBuilder, Trim};

use crate::error::StudyError;
use crate::limits::MAX_NAME;

/// A table as text: a heading, and rows with the same number of fields.
pub(super) struct Sheet<'a> {
    text: &'a str,
    file: &'a str,
    delimiter: char,
    header: Row,
    rows: Vec<Row>,
}

pub(super) struct Row {
    /// Byte offset of the row.
    start: usize,
    fields: Vec<String>,
}

impl Row {
    /// A field, trimmed.
    pub(super) fn field(&self, column: usize) -> &str {
        &self.fields[column]
    }
}

impl<'a> Sheet<'a> {
    /// Reads a table. The separator is the comma, semicolon or tab that occurs most often in the heading.
    pub(super) fn read(text: &'a str, file: &'a str) -> Result<Self, StudyError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let heading = text.lines().next().unwrap_or_default();
        let count = |delimiter: char| heading.matches(delimiter).count();
        // `max_by_key` returns the last maximum: the comma.
        let delimiter = [';', '\t', ','].into_iter().max_by_key(|delimiter| count(*delimiter)).unwrap_or(',');
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .delimiter(delimiter as u8)
            .from_reader(text.as_bytes());
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| StudyError::new(format!("{file} is not a table: {error}")))?;
            let from = record.position().map_or(0, |position| position.byte() as usize).min(text.len());
            // The reported position may be that of the preceding line feed.
            let start = from + text[from..].find(|letter| !matches!(letter, '\r' | '\n')).unwrap_or_default();
            rows.push(Row { start, fields: record.iter().map(str::to_owned).collect() });
        }
        if rows.is_empty() {
            let message =
                format!("{file} is empty; a table has a heading with the names of its columns, and rows below it");
            return Err(StudyError::new(message));
        }
        let header = rows.remove(0);
        let sheet = Self { text, file, delimiter, header, rows };
        sheet.check()?;
        Ok(sheet)
    }

    fn check(&self) -> Result<(), StudyError> {
        let names = &self.header.fields;
        for (column, name) in names.iter().enumerate() {
            let wrong = |message: String| self.error(&self.header, column, message);
            if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
                return Err(wrong(format!("the name of a column has 1 to {MAX_NAME} characters, all on one line")));
            }
            if names[..column].contains(name) {
                return Err(wrong(format!("two columns have the name `{name}`")));
            }
        }
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            let message = "the first row has only numbers; put a heading with the names of the columns above it";
            return Err(self.error(&self.header, 0, message));
        }
        for row in &self.rows {
            if row.fields.len() != names.len() {
                let message = format!("this row has {} fields, and the heading {}", row.fields.len(), names.len());
                return Err(self.error(row, row.fields.len().min(names.len()).saturating_sub(1), message));
            }
        }
        if self.rows.is_empty() {
            return Err(self.error(&self.header, 0, "the table has no row below its heading"));
        }
        Ok(())
    }

    pub(super) const fn file(&self) -> &str {
        self.file
    }

    pub(super) const fn delimiter(&self) -> char {
        self.delimiter
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> &[String] {
        &self.header.fields
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// An error at a field.
    pub(super) fn error(&self, row: &Row, column: usize, message: impl Into<String>) -> StudyError {
        StudyError::new(message).at_span(self.text, self.file, self.span(row, column))
    }

    /// Line number of a row, from 1.
    pub(super) fn line(&self, row: &Row) -> usize {
        self.text[..row.start].bytes().filter(|byte| *byte == b'\n').count() + 1
    }

    /// Byte range of a field. Recomputed, because the reader does not keep it and only errors need it.
    fn span(&self, row: &Row, column: usize) -> Range<usize> {
        let (mut from, mut seen, mut quoted) = (row.start, 0, false);
        for (offset, letter) in self.text[row.start..].char_indices() {
            let here = row.start + offset;
            match letter {
                '"' => quoted = !quoted,
                '\r' | '\n' if !quoted => return from..here,
                letter if letter == self.delimiter && !quoted => {
                    if seen == column {
                        return from..here;
                    }
                    seen += 1;
                    from = here + 1;
                }
                _ => {}
            }
        }
        from..self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        Sheet::read(text, "t.csv").err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_field_is_located_after_quotes_and_line_feeds() {
        let text = "a,b,c\r\n1,\"x, \"\"y\"\"\n z\",3\r\n\r\n4, 5 ,6";
        let sheet = Sheet::read(text, "t.csv").unwrap();
        assert_eq!(sheet.rows()[0].field(1), "x, \"y\"\n z");
        assert_eq!(&text[sheet.span(&sheet.rows()[0], 2)], "3");
        assert_eq!((&text[sheet.span(&sheet.rows()[1], 1)], sheet.rows()[1].field(1)), (" 5 ", "5"));
        assert_eq!((sheet.line(&sheet.rows()[0]), sheet.line(&sheet.rows()[1])), (2, 5));
    }

    #[test]
    fn semicolons_tabs_and_a_byte_order_mark_are_understood() {
        for text in ["\u{feff}a;b\n1;2\n", "a\tb\n1\t2\n", "a,b\n1,2"] {
            let sheet = Sheet::read(text, "t.csv").unwrap();
            assert_eq!((sheet.names().len(), sheet.rows()[0].field(1)), (2, "2"), "{text:?}");
        }
    }

    #[test]
    fn a_broken_table_is_refused_at_its_place() {
        assert!(message("").contains("t.csv is empty"));
        assert!(message("a,b\n1,2\n3\n").starts_with("t.csv:3:1: this row has 1 fields, and the heading 2"));
        assert!(message("a,a\n1,2\n").starts_with("t.csv:1:3: two columns have the name `a`"));
        assert!(message("a,,c\n1,2,3\n").starts_with("t.csv:1:3: the name of a column"));
        assert!(message("1,2\n3,4\n").contains("a heading"));
        assert!(message("a,b\n").contains("no row"));
    }
}
