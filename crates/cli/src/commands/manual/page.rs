//! Manual pages in roff. `clap_mangen` renders names, descriptions and options; its synopsis lacks the names of values,
//! and it has no section for examples.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;

use crate::args::is_everywhere;
use crate::failure::{Failure, Result};

/// The manual page of a command, which must be built (`Command::build`).
pub fn page(command: &Command) -> Result<String> {
    let man = Man::new(command.clone());
    let mut text = String::new();
    render(&mut text, |out| man.render_title(out))?;
    render(&mut text, |out| man.render_name_section(out))?;
    synopsis(&mut text, command);
    render(&mut text, |out| man.render_description_section(out))?;
    render(&mut text, |out| man.render_options_section(out))?;
    commands(&mut text, command);
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    after_help(&mut text, &after.map(ToString::to_string).unwrap_or_default());
    if command.get_version().is_some() {
        render(&mut text, |out| man.render_version_section(out))?;
    }
    Ok(text)
}

/// The subcommands that users need to know.
pub fn subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help")
}

fn render(text: &mut String, section: impl Fn(&mut dyn std::io::Write) -> std::io::Result<()>) -> Result {
    let mut bytes = Vec::new();
    section(&mut bytes).map_err(|error| Failure::failed(format!("cannot render a manual page: {error}")))?;
    text.push_str(&String::from_utf8_lossy(&bytes));
    Ok(())
}

/// Every option with the name of its value, then the positional arguments. Each is a line, which roff joins.
fn synopsis(text: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let _ = write!(text, ".SH SYNOPSIS\n\\fB{}\\fR\n", escaped(name));
    let choices: Vec<Vec<&Arg>> = command
        .get_groups()
        .filter(|group| group.is_required_set())
        .map(|group| command.get_arguments().filter(|arg| group.get_args().any(|id| id == arg.get_id())).collect())
        .collect();
    let is_choice = |arg: &Arg| choices.iter().flatten().any(|choice| choice.get_id() == arg.get_id());
    let is_root = !command.get_bin_name().unwrap_or_default().contains(' ');
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !is_everywhere(arg, is_root) && !is_choice(arg))
        .partition(|arg| arg.is_positional());
    for arg in options {
        let _ = writeln!(text, "{}", optional(arg));
    }
    for choice in &choices {
        let alternatives: Vec<_> = choice.iter().map(|arg| form(arg) + repetition(arg)).collect();
        let _ = writeln!(text, "{{{}}}", alternatives.join(" | "));
    }
    for arg in positional {
        let _ = writeln!(text, "{}", optional(arg));
    }
    if subcommands(command).next().is_some() {
        let is_required = command.is_subcommand_required_set();
        text.push_str(if is_required { "\\fICOMMAND\\fR\n" } else { "[\\fICOMMAND\\fR]\n" });
    }
}

/// An argument, in brackets unless it is required.
fn optional(arg: &Arg) -> String {
    let form = if arg.is_required_set() { form(arg) } else { format!("[{}]", form(arg)) };
    form + repetition(arg)
}

/// Flags in bold, the name of the value in italics.
fn form(arg: &Arg) -> String {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let long = arg.get_long().map(|name| format!("--{name}"));
    let flags: Vec<_> = short.into_iter().chain(long).map(|flag| format!("\\fB{}\\fR", escaped(&flag))).collect();
    let mut words = vec![flags.join("|")];
    if arg.get_action().takes_values() {
        let names = arg.get_value_names().unwrap_or_default().join(" ");
        words.push(format!("\\fI{}\\fR", escaped(&names)));
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn repetition(arg: &Arg) -> &'static str {
    let takes_many = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    if takes_many || matches!(arg.get_action(), ArgAction::Append) { "..." } else { "" }
}

/// The subcommands, each with the name of its page.
fn commands(text: &mut String, command: &Command) {
    for (number, subcommand) in subcommands(command).enumerate() {
        if number == 0 {
            text.push_str(".SH COMMANDS\n");
        }
        let name = subcommand.get_display_name().unwrap_or_else(|| subcommand.get_name());
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = write!(text, ".TP\n{}(1)\n{}\n", escaped(name), escaped(&about));
    }
}

/// The sections of the text after the options of `--help`: the examples, the exit statuses, and notes.
fn after_help(text: &mut String, after: &str) {
    let mut notes = String::new();
    for paragraph in after.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
            text.push_str(".SH EXAMPLES\n.nf\n");
            for line in examples.lines() {
                let _ = writeln!(text, "{}", escaped(line.strip_prefix("  ").unwrap_or(line)));
            }
            text.push_str(".fi\n");
        } else if let Some(statuses) = paragraph.strip_prefix("Exit status: ") {
            let _ = write!(text, ".SH EXIT STATUS\n{}\n", escaped(statuses));
        } else {
            let _ = write!(notes, ".PP\n{}\n", escaped(paragraph));
        }
    }
    if !notes.is_empty() {
        let _ = write!(text, ".SH NOTES\n{notes}");
    }
}

/// Text without the special characters of roff. A line must not begin with a control character.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
        if line.starts_with('.') { format!("\\&{line}") } else { line }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_roff_are_escaped() {
        assert_eq!(escaped(".toml 'a'\n--set a\\b"), "\\&.toml \\(aqa\\(aq\n\\-\\-set a\\eb");
    }

    #[test]
    fn a_synopsis_has_values_alternatives_and_repetitions() {
        let many = Arg::new("names").value_name("NAME").num_args(1..);
        let mut command = Command::new("build")
            .arg(Arg::new("jobs").long("jobs").short('j').value_name("N"))
            .arg(Arg::new("keep").long("keep").value_name("WHAT").action(ArgAction::Append).required(true))
            .arg(many)
            .arg(Arg::new("all").long("all").action(ArgAction::SetTrue))
            .group(clap::ArgGroup::new("which").args(["names", "all"]).required(true));
        command.build();
        let mut text = String::new();
        synopsis(&mut text, &command);
        let lines: Vec<_> = text.lines().skip(2).collect();
        let options = [r"[\fB\-j\fR|\fB\-\-jobs\fR \fIN\fR]", r"\fB\-\-keep\fR \fIWHAT\fR..."];
        assert_eq!(lines, [options[0], options[1], r"{\fINAME\fR... | \fB\-\-all\fR}"]);
    }

    #[test]
    fn examples_and_exit_statuses_have_sections_of_their_own() {
        let mut text = String::new();
        after_help(&mut text, "Examples:\n  wirelab run\n\nA note.\n\nExit status: 0 done.");
        let examples = ".SH EXAMPLES\n.nf\nwirelab run\n.fi\n";
        assert_eq!(text, format!("{examples}.SH EXIT STATUS\n0 done.\n.SH NOTES\n.PP\nA note.\n"));
    }
}
