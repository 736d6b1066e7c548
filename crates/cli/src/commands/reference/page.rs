//! Markdown: headings, wrapped paragraphs, tables.

use std::fmt::Write;

/// Columns of a line of text; the prose linter allows 120.
const WIDTH: usize = 116;

/// A page of the reference.
pub struct Page(String);

impl Page {
    /// A page with its title and the sentence that says what it lists.
    pub fn new(title: &str, about: &str) -> Self {
        let mut page = Self(format!("# {title}\n"));
        page.text(about);
        page.text("`make reference` writes this page from the declarations in the code.");
        page
    }

    pub fn section(&mut self, title: &str) {
        let _ = write!(self.0, "\n## {title}\n");
    }

    /// A paragraph. Line breaks within `text` mean nothing.
    pub fn text(&mut self, text: &str) {
        self.0.push('\n');
        let mut column = 0;
        for word in words(text) {
            if column > 0 && column + 1 + word.chars().count() > WIDTH {
                self.0.push('\n');
                column = 0;
            } else if column > 0 {
                self.0.push(' ');
                column += 1;
            }
            self.0.push_str(&word);
            column += word.chars().count();
        }
        self.0.push('\n');
    }

    /// Lines of code.
    pub fn code<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.0.push('\n');
        for line in lines {
            let _ = writeln!(self.0, "    {line}");
        }
    }

    /// A table; nothing, if it has no rows.
    pub fn table<const N: usize>(&mut self, head: [&str; N], rows: &[[String; N]]) {
        if rows.is_empty() {
            return;
        }
        let _ = write!(self.0, "\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
        for row in rows {
            let cells: Vec<_> = row.iter().map(|cell| one_line(cell).replace('|', "\\|")).collect();
            let _ = writeln!(self.0, "| {} |", cells.join(" | "));
        }
    }

    /// The text of the page.
    pub fn finish(self) -> String {
        self.0
    }
}

/// The words of a paragraph; a code span is one word, as a line break in it reads badly.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if last.matches('`').count() % 2 == 1 => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Text without line breaks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A code span.
pub fn code(text: &str) -> String {
    format!("`{text}`")
}
