//! `wirelab`: the command line. The only crate that prints or exits.

mod args;
mod browsers;
mod carried;
mod commands;
mod complete;
mod descriptors;
mod discovery;
mod failure;
mod interrupt;
mod labs;
mod log;
mod output;
mod place;
mod progress;
mod requests;
mod stderr;
mod target;
mod via;
mod visits;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    complete::answer();
    let cli = Cli::parse();
    if cli.command.is_helper() {
        log::start_helper();
    } else if cli.command.is_internal() {
        log::start_inside();
    } else {
        let keeps_log = matches!(cli.command, Command::Run(_) | Command::Ab(_) | Command::Resume(_));
        if let Err(failure) = descriptors::check().and_then(|()| log::start(&cli.log, keeps_log)) {
            return failure.report();
        }
    }
    let result = match cli.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Ab(args) => commands::ab::ab(&args),
        Command::Resume(args) => commands::run::resume(&args),
        Command::Report(args) => commands::report::report(&args),
        Command::Compare(args) => commands::compare::compare(&args),
        Command::History(args) => commands::history::history(&args),
        Command::Serve(args) => commands::serve::serve(&args),
        Command::Tag(args) => commands::tag::tag(&args),
        Command::Archive(args) => commands::archive::archive(&args),
        Command::Logs(args) => commands::logs::logs(&args),
        Command::Analyze(args) => commands::analyze::analyze(&args),
        Command::Load(args) => commands::load::load(&args),
        Command::Probe(args) => commands::probe::probe(&args),
        Command::Page(args) => commands::page::page(&args),
        Command::Studies(args) => commands::studies::studies(&args),
        Command::Endpoints(args) => commands::endpoints::endpoints(&args),
        Command::Labs(args) => commands::labs::labs(&args),
        Command::Doctor(args) => commands::doctor::doctor(&args),
        Command::Completions(args) => commands::manual::completions(&args),
        Command::Man(args) => commands::manual::man(&args),
        Command::Reference(args) => commands::reference::reference(&args),
        Command::Endpoint(args) => return commands::endpoint::endpoint(&args),
        Command::Guard => return commands::endpoint::guard(),
        Command::Fabric => return commands::endpoint::fabric(),
        Command::Witness => return commands::endpoint::witness(),
        Command::Agent { words } => return commands::endpoint::agent(&words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
