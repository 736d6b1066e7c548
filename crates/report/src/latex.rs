//! The medians and verdicts in the first metric as a table for LaTeX, with the rules of the package `booktabs`.

use std::fmt::Write as _;

use crate::Input;
use crate::headline::{headline, overview};
use crate::layout::Layout;
use crate::words::{title, upper_first};

/// A `table` environment, for `\input`. The preamble needs `\usepackage{booktabs}`.
#[must_use]
pub fn latex(input: &Input) -> String {
    let layout = Layout::new(input);
    let study = &input.manifest.study;
    let metric = upper_first(&title(input, input.first_metric()));
    let mut text = format!("% {}: needs \\usepackage{{booktabs}}\n", comment(&study.name));
    text += "\\begin{table}\n  \\centering\n";
    let _ = writeln!(text, "  \\caption{{{}. {}. {}}}", escaped(&study.title), escaped(&metric), note(input, &layout));
    let _ = writeln!(text, "  \\label{{tab:{}}}", study.name);
    text += "  \\begin{tabular}{lrll}\n    \\toprule\n";
    let _ = writeln!(text, "    {} & median & change & verdict \\\\", escaped(&study.compare.factor));
    for (group, rows) in overview(input, &layout) {
        let _ = writeln!(text, "    \\midrule\n    \\multicolumn{{4}}{{l}}{{\\emph{{{}}}}} \\\\", escaped(&group));
        for row in rows {
            let cells = [&row.title, &row.median, &row.change, &row.verdict].map(|cell| escaped(cell));
            // The braces keep a bracket after the end of a row from being its option.
            let _ = writeln!(text, "    {{}}{} \\\\", cells.join(" & "));
        }
    }
    text + "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n"
}

fn note(input: &Input, layout: &Layout) -> String {
    escaped(&headline(input, layout).sure)
}

/// A name within a comment, which ends with its line.
fn comment(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Text without commands. Any engine can set the result.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => safe.extend(['\\', letter]),
            '\\' => safe.push_str("\\textbackslash{}"),
            '~' => safe.push_str("\\textasciitilde{}"),
            '^' => safe.push_str("\\textasciicircum{}"),
            '<' => safe.push_str("\\textless{}"),
            '>' => safe.push_str("\\textgreater{}"),
            '−' => safe.push_str("$-$"),
            '±' => safe.push_str("$\\pm$"),
            '×' => safe.push_str("$\\times$"),
            'µ' => safe.push_str("\\textmu{}"),
            '\u{a0}' => safe.push('~'),
            '\n' | '\r' => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_a_command() {
        assert_eq!(escaped("50 % of a_b\\c {x} −5 µs"), "50 \\% of a\\_b\\textbackslash{}c \\{x\\} $-$5 \\textmu{}s");
        assert_eq!(comment("one\n\\input{two}"), "one \\input{two}");
    }
}
