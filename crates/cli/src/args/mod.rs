//! Declarations of all commands and options. `--help`, the manual pages and the completions are derived from them.

mod ab;
mod analyze;
mod archive;
mod compare;
mod doctor;
mod endpoint;
mod endpoints;
mod fail_on;
mod labs;
mod load;
mod logs;
mod manual;
mod page;
mod probe;
mod report;
mod requests;
mod run;
mod serve;
mod studies;
mod tag;

use clap::{Arg, Args, Parser, Subcommand};

pub use ab::AbArgs;
pub use analyze::AnalyzeArgs;
pub use archive::ArchiveArgs;
pub use compare::{CompareArgs, CompareFormat, HistoryArgs, HistoryFormat};
pub use doctor::DoctorArgs;
pub use endpoint::{EndpointArgs, EndpointRole};
pub use endpoints::{Chosen, EndpointsArgs, EndpointsCommand, SetName};
pub use fail_on::FailOn;
pub use labs::{LabsArgs, LabsCommand, MeasureArgs};
pub use load::{ClientArg, LoadArgs, ReachArgs, Resolve, ResumptionArg, TlsArg};
pub use logs::{LogArgs, LogFormat, LogsArgs};
pub use manual::{CompletionsArgs, ManArgs, ReferenceArgs};
pub use page::{BrowserArg, PageArgs};
pub use probe::ProbeArgs;
pub use report::{Format, ReportArgs};
pub use requests::{MessagesArg, MixArgs, RequestArgs};
pub use run::{ResumeArgs, RunArgs};
pub use serve::ServeArgs;
pub use studies::{StudiesArgs, StudiesCommand};
pub use tag::TagArgs;

/// A laboratory for web communication protocols: measures HTTP/1.1, HTTP/2, HTTP/3 and their transports side by side,
/// with verdicts and intervals
#[derive(Debug, Parser)]
#[command(name = "wirelab", version = env!("WIRELAB_VERSION"), propagate_version = true, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Examples:
  wirelab run quick                             HTTP/1.1, HTTP/2 and HTTP/3, in about a minute
  wirelab run quick --set protocol=h1,h3        HTTP/1.1 and HTTP/3 only
  wirelab load --protocol h2 -c 10 -m 10 -d 10s https://localhost:8443/
  wirelab page https://example.org/             the three versions in real browsers
  wirelab ab --base server-main --head server-branch
                                                is the new build slower?
  wirelab doctor                                what this machine can and cannot measure
  wirelab logs --trial 3                        what wirelab and the processes of a trial logged
  wirelab run quick -v                          the log on standard error (docs/logs.md)

Exit status: 0 done, 1 failed, 2 wrong input, 3 a requirement is not met, 130 interrupted.")]
pub struct Cli {
    #[command(flatten)]
    pub log: LogArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a study: a built-in one by name, or a study file
    Run(RunArgs),
    /// Compare two builds of a server, interleaved in one run
    Ab(AbArgs),
    /// Resume an interrupted or killed run
    Resume(ResumeArgs),
    /// Show the report of a run in any format
    Report(ReportArgs),
    /// Compare two runs cell by cell, with the differences of their settings and machines
    Compare(CompareArgs),
    /// Show a metric over the runs of a folder, with change points
    History(HistoryArgs),
    /// Show the runs of a folder in a browser: reports, live progress, comparisons, histories
    Serve(ServeArgs),
    /// Give a run tags, take them away, or list the runs that have some
    Tag(TagArgs),
    /// Keep a finished run as a small folder, from which its report can be computed again
    Archive(ArchiveArgs),
    /// Show what wirelab and the processes of a run logged, in the order of time
    Logs(LogsArgs),
    /// Analyze your own CSV data with the statistics of a run
    Analyze(AnalyzeArgs),
    /// Send load to a server and print latencies
    Load(Box<LoadArgs>),
    /// Compare HTTP/1.1, HTTP/2 and HTTP/3 against a server you do not own, rate-limited
    Probe(ProbeArgs),
    /// Load pages in real browsers over HTTP/1.1, HTTP/2 and HTTP/3, rate-limited
    Page(PageArgs),
    /// List the built-in studies, print one, or check a study file
    Studies(StudiesArgs),
    /// List endpoints, install them, or check that they keep the contract
    Endpoints(EndpointsArgs),
    /// List labs and observers, measure links, or clean up in a cluster
    Labs(LabsArgs),
    /// Show what this machine can and cannot measure, with a remedy for each gap
    Doctor(DoctorArgs),
    /// Print the completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page of wirelab or of one command, or write all of them
    Man(ManArgs),
    /// Run a built-in endpoint (internal)
    Endpoint(EndpointArgs),
    /// Write the reference pages of the manual (internal)
    #[command(hide = true)]
    Reference(ReferenceArgs),
    /// Watch over the processes of a run (internal)
    #[command(hide = true)]
    Guard,
    /// Hold the network of a run (internal)
    #[command(hide = true)]
    Fabric,
    /// Observe the network of a run from within (internal)
    #[command(hide = true)]
    Witness,
    /// Work in a pod of a run (internal)
    #[command(hide = true)]
    Agent {
        /// The action and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

impl Command {
    /// Whether it is a process that wirelab starts once per run, beside the endpoints.
    pub const fn is_helper(&self) -> bool {
        matches!(self, Self::Guard | Self::Fabric | Self::Witness)
    }

    /// Whether wirelab itself starts a process with this command.
    pub const fn is_internal(&self) -> bool {
        matches!(self, Self::Endpoint(_) | Self::Guard | Self::Fabric | Self::Witness | Self::Agent { .. })
    }
}

/// Whether it is an option of every command: help, version, and those of the log, which the text of `wirelab` itself
/// describes.
pub fn is_everywhere(argument: &Arg, is_root: bool) -> bool {
    match argument.get_id().as_str() {
        "help" | "version" => true,
        "verbose" | "log_format" => !is_root,
        _ => false,
    }
}

/// Display of progress and results.
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Suppress progress output
    #[arg(long, short)]
    pub quiet: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Calls `check` with every command that users see, and with its examples.
    fn each_command(command: &clap::Command, check: &mut impl FnMut(&clap::Command, &str)) {
        let name = command.get_bin_name().unwrap_or_default();
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let paragraph = after.split("\n\n").next().unwrap_or_default();
        let examples = paragraph.strip_prefix("Examples:\n");
        check(command, examples.unwrap_or_else(|| panic!("`{name}` has no examples")));
        for subcommand in command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
            each_command(subcommand, check);
        }
    }

    fn root() -> clap::Command {
        let mut root = Cli::command();
        root.build();
        root
    }

    /// The words of the command in a line of examples; absent: the line continues a comment.
    fn words(line: &str) -> Option<Vec<String>> {
        let line = line.strip_prefix("  ").filter(|line| line.starts_with("wirelab"))?;
        let (mut words, mut is_quoted) = (vec![String::new()], false);
        for (at, letter) in line.char_indices() {
            // A comment follows after two spaces or more, and a shell may redirect the output.
            if !is_quoted && ["  ", " | ", " > "].iter().any(|end| line[at..].starts_with(end)) {
                break;
            }
            match letter {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                letter => words.last_mut().unwrap().push(letter),
            }
        }
        Some(words)
    }

    #[test]
    fn every_example_of_every_command_is_understood() {
        each_command(&root(), &mut |command, examples| {
            let name = command.get_bin_name().unwrap_or("wirelab");
            let examples: Vec<_> = examples.lines().filter_map(words).collect();
            assert!(!examples.is_empty(), "`{name}` has no examples");
            for example in examples {
                if let Err(error) = Cli::try_parse_from(&example) {
                    panic!("{example:?} of `{name}`: {error}");
                }
            }
        });
    }

    #[test]
    fn notes_have_no_line_breaks_of_their_own() {
        fn check(command: &clap::Command) {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for note in after.split("\n\n").filter(|note| !note.starts_with("Examples:")) {
                assert!(!note.contains('\n'), "{note}");
            }
            command.get_subcommands().for_each(check);
        }
        check(&root());
    }

    #[test]
    fn examples_fit_the_width_of_help() {
        each_command(&root(), &mut |_, examples| {
            for line in examples.lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
        });
    }
}
