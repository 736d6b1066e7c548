//! Workflow commands of GitHub Actions: an annotation per requirement.

use std::fmt::Write as _;

use wirelab_stats::analysis::{RequirementResult, RequirementVerdict};

use crate::Input;
use crate::requirements;

/// An error for each requirement that fails the run, a warning for each other inconclusive one, a notice for each one
/// that is met. The Markdown report belongs in the summary of the step.
#[must_use]
pub fn github(input: &Input) -> String {
    let mut out = String::new();
    for result in &input.analysis.requirements {
        let title = format!("{}: {}", input.manifest.study.name, requirements::statement(input, &result.that));
        let text = requirements::one_line(input, result);
        let _ = writeln!(out, "::{} title={}::{}", level(result), property(&title), data(&text));
    }
    out
}

fn level(result: &RequirementResult) -> &'static str {
    match result.verdict {
        _ if result.fails() => "error",
        RequirementVerdict::Met => "notice",
        RequirementVerdict::NotMet | RequirementVerdict::CannotTell { .. } => "warning",
    }
}

/// Escapes the text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A").replace(crate::numbers::NBSP, " ")
}

/// Escapes a property of a command, where commas and colons separate.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_end_a_command_or_begin_another() {
        assert_eq!(data("5 %\n::error::x"), "5 %25%0A::error::x");
        assert_eq!(property("a: b, c"), "a%3A b%2C c");
    }
}
