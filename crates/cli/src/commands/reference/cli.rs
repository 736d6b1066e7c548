//! The commands, from the declarations that `--help` comes from.

use clap::{Arg, Command, CommandFactory};

use crate::args::{Cli, is_everywhere};
use crate::commands::reference::page::{Page, code};

/// The page of the commands.
pub fn commands() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = Page::new("Commands", "Every command with its arguments. `wirelab COMMAND --help` shows the same.");
    describe(&mut page, &root);
    page.finish()
}

fn describe(page: &mut Page, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    page.section(name);
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    page.text(&sentence(&about.unwrap_or_default()));
    let usage = command.clone().render_usage().to_string();
    page.code(usage.trim_start_matches("Usage:").lines().map(str::trim));
    // Options of every command are in the section of wirelab itself.
    let is_root = !name.contains(' ');
    let shown = || {
        let arguments = command.get_arguments();
        arguments.filter(move |argument| !argument.is_hide_set() && !is_everywhere(argument, is_root))
    };
    let rows = |arguments: Vec<&Arg>| arguments.into_iter().map(row).collect::<Vec<_>>();
    page.table(["argument", "meaning"], &rows(shown().filter(|argument| argument.is_positional()).collect()));
    page.table(["option", "meaning"], &rows(shown().filter(|argument| !argument.is_positional()).collect()));
    let after = command.get_after_long_help().or_else(|| command.get_after_help()).map(ToString::to_string);
    for paragraph in after.unwrap_or_default().split("\n\n") {
        match paragraph.strip_prefix("Examples:\n") {
            Some(examples) => {
                page.text("Examples:");
                page.code(examples.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)));
            }
            None if paragraph.trim().is_empty() => {}
            None => page.text(paragraph),
        }
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        describe(page, inner);
    }
}

fn row(argument: &Arg) -> [String; 2] {
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let long = argument.get_long().map(|name| format!("--{name}"));
    let takes = argument.get_action().takes_values();
    let names = argument.get_value_names().unwrap_or_default().join(" ");
    let name = match (&short, &long) {
        (None, None) => names,
        _ => {
            let flags = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
            if takes { format!("{flags} {names}") } else { flags }
        }
    };
    let about = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string);
    let mut meaning = sentence(&about.unwrap_or_default());
    let possible: Vec<_> = argument.get_possible_values();
    if takes && !possible.is_empty() && !argument.is_hide_possible_values_set() {
        let values: Vec<_> = possible.iter().map(|value| code(value.get_name())).collect();
        meaning.push_str(&format!(" Values: {}.", values.join(", ")));
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| code(&value.to_string_lossy())).collect();
    if takes && !defaults.is_empty() {
        meaning.push_str(&format!(" Default: {}.", defaults.join(", ")));
    }
    [code(&name), meaning]
}

/// Help texts have no full stop at their end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ':', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}
