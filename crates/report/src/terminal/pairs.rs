//! The matrix of clients and servers in a terminal.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell};

use super::{Page, trimmed, visible_width};
use crate::failures::failures;
use crate::pairs::{NOTE, View, views};

impl Page<'_> {
    /// Outcomes of the pairs, a table for each metric, failures, and interactions. Returns whether the study has pairs.
    pub(super) fn pairs(&self, out: &mut String) -> bool {
        let failures = failures(self.input);
        let views = views(self.input, &failures);
        let Some(first) = views.first().map(|view| view.table.metric.as_str()) else { return false };
        let of_first = || views.iter().filter(|view| view.table.metric == first);
        self.heading(out, "Which pairs work");
        for view in of_first() {
            self.item(out, "·", &view.tally());
        }
        for view in of_first() {
            for trouble in view.table.pairs.iter().filter_map(|pair| view.trouble(pair)) {
                self.item(out, "!", &trouble);
            }
        }
        for view in &views {
            self.heading(out, &view.title());
            self.matrix(out, view);
        }
        out.push('\n');
        self.item(out, "·", NOTE);
        self.heading(out, "Interaction: pairs that differ from the prediction of their two sides");
        self.item(out, "·", &views[0].needs());
        for view in views.iter().filter(|view| view.judges()) {
            self.item(out, "·", &view.rest());
            for sentence in view.odd().into_iter().filter_map(|pair| view.interaction(pair)) {
                self.item(out, " ", &sentence);
            }
        }
        out.push('\n');
        self.item(
            out,
            "·",
            "The HTML report and the CSV files compare each server with the baseline, client by client.",
        );
        true
    }

    /// The matrix in parts, each with as many servers as fit and at least one.
    fn matrix(&self, out: &mut String, view: &View) {
        let mut servers = &view.table.servers[..];
        while !servers.is_empty() {
            let fits =
                |count: &usize| self.grid(view, &servers[..*count]).lines().all(|l| visible_width(l) <= self.width);
            let count = (1..=servers.len()).rev().find(fits).unwrap_or(1);
            let text = self.grid(view, &servers[..count]);
            if text.lines().all(|line| visible_width(line) <= self.width) {
                out.push_str(&text);
            } else {
                for line in view.lines(&servers[..count]).into_iter().skip(1) {
                    self.item(out, "·", &format!("{} with {}: {}", line[0], servers[0], line[1]));
                }
            }
            servers = &servers[count..];
            if !servers.is_empty() {
                let _ = writeln!(out);
            }
        }
    }

    fn grid(&self, view: &View, servers: &[String]) -> String {
        let mut lines = view.lines(servers).into_iter();
        let mut table = self.plain_table();
        let header = lines.next().unwrap_or_default();
        table.set_header(header.into_iter().map(|cell| Cell::new(cell).add_attribute(Attribute::Dim)));
        for line in lines {
            table.add_row(line);
        }
        trimmed(&table)
    }
}
