//! The first page of the terminal report: the answer, an overview of all conditions, and what the rest contains.

use super::{Page, tone_colour, visible_width};
use crate::claims;
use crate::failures::failures;
use crate::headline::{Headline, OverviewRow, headline, overview};
use crate::pairs::views;
use crate::summary::count;
use crate::warnings;

/// The number of lines of a brief report, unless the answer alone is longer.
const LINES: usize = 40;

/// The number of levels with a sentence; the overview shows all.
const LEVELS: usize = 4;

/// The number of lines of the study's limits; the whole text is in the full report.
const LIMIT_LINES: usize = 4;

/// The number of kinds of warnings, each with the first of its kind.
const WARNINGS: usize = 3;
const WARNING_LINES: usize = 3;

impl Page<'_> {
    /// The headline, as in every report.
    pub(super) fn headline(&self, out: &mut String, levels: usize) {
        let Headline { lead, others, sure } = headline(self.input, &self.layout);
        self.heading(out, &self.input.manifest.study.title);
        for sentence in std::iter::once(&lead).chain(others.iter().take(levels)) {
            let symbol = self.paint(sentence.symbol, tone_colour(sentence.tone));
            self.item(out, &symbol, &sentence.text);
        }
        if others.len() > levels {
            self.item(out, " ", &format!("… and {} more.", others.len() - levels));
        }
        self.item(out, "·", &sure);
    }

    pub(super) fn brief(&self, out: &mut String) {
        self.headline(out, LEVELS);
        let mut tail = String::from("\n");
        self.tail(&mut tail);
        let room = LINES.saturating_sub(out.lines().count() + tail.lines().count());
        self.overview(out, room);
        out.push_str(&tail);
    }

    /// Pairs, claims, warnings, limits, and where the rest is.
    fn tail(&self, out: &mut String) {
        let failures = failures(self.input);
        for view in views(self.input, &failures).iter().take(1) {
            self.item(out, "·", &view.tally());
        }
        if let Some(tally) = claims::tally_of_all(self.input) {
            self.item(out, "·", &format!("Claims: {tally}."));
        }
        let groups = warnings::grouped(self.input);
        for group in groups.iter().take(WARNINGS) {
            self.cut(out, "!", &group.meanings[0], WARNING_LINES);
        }
        let more = groups.iter().map(|group| group.meanings.len()).sum::<usize>() - groups.len().min(WARNINGS);
        if more > 0 {
            self.item(out, " ", &format!("… and {} in the full report.", count(more, "more warning")));
        }
        if let Some(limits) = &self.input.manifest.study.limits {
            self.cut(out, "·", &format!("Limits: {limits}"), LIMIT_LINES);
        }
        self.item(
            out,
            "→",
            "--full shows every table, claim and warning here; --format html makes a page with charts.",
        );
    }

    /// At most so many lines of a text.
    fn cut(&self, out: &mut String, mark: &str, text: &str, most: usize) {
        let mut item = String::new();
        self.item(&mut item, mark, text);
        let lines: Vec<_> = item.lines().collect();
        let kept = if lines.len() > most { most - 1 } else { most };
        lines.iter().take(kept).for_each(|line| out.extend([*line, "\n"]));
        if lines.len() > most {
            self.item(out, " ", "…");
        }
    }

    /// Medians and verdicts in at most so many lines.
    fn overview(&self, out: &mut String, room: usize) {
        let groups = overview(self.input, &self.layout);
        let rows = || groups.iter().flat_map(|(_, rows)| rows);
        let widest = |text: fn(&OverviewRow) -> &str| rows().map(|row| text(row).chars().count()).max().unwrap_or(0);
        let (title, median, change) = (widest(|row| &row.title), widest(|row| &row.median), widest(|row| &row.change));
        let metric = crate::words::title(self.input, self.input.first_metric());
        let mut lines = String::new();
        self.heading(&mut lines, &crate::words::upper_first(&metric));
        let mut shown = 0;
        for (group, rows) in &groups {
            let mut text = String::new();
            self.item(&mut text, " ", group);
            for row in rows {
                let mark =
                    row.tone.map_or_else(|| row.symbol.to_owned(), |tone| self.paint(row.symbol, tone_colour(tone)));
                let line = format!(
                    "   {mark} {:<title$}  {:>median$}  {:<change$}  {}",
                    row.title, row.median, row.change, row.verdict
                );
                if visible_width(&line) <= self.width {
                    text.extend([line.trim_end(), "\n"]);
                } else {
                    let facts = [&row.median, &row.change, &row.verdict].map(String::as_str);
                    let facts: Vec<_> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
                    self.item(&mut text, &mark, &format!("{}: {}", row.title, facts.join(", ")));
                }
            }
            // A blank line before, the heading, and a line for the number of omitted conditions.
            if lines.lines().count() + text.lines().count() + 2 > room {
                break;
            }
            lines.push_str(&text);
            shown += 1;
        }
        if shown < groups.len() {
            self.item(
                &mut lines,
                " ",
                &format!("… and {} in the full report.", count(groups.len() - shown, "more condition")),
            );
        }
        if shown > 0 {
            out.push('\n');
            out.push_str(&lines);
        }
    }
}
