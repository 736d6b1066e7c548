//! `wirelab endpoint`, `guard`, `fabric`, `witness` and `agent`: the roles in which wirelab starts its own executable.

use std::io::BufReader;
use std::os::fd::AsFd;
use std::process::ExitCode;

use wirelab_browser::Browser;
use wirelab_model::plan::command_name;
use wirelab_model::units::Span;
use wirelab_observe::Exporter;

use crate::args::{EndpointArgs, EndpointRole};
use crate::failure::{Failure, Result};
use crate::log::keep_at;
use crate::output::print_json;
use crate::place::program;

/// Runs a built-in endpoint. Exit statuses are those of the contract: 0 done, 1 failed, 127 unsupported.
pub fn endpoint(args: &EndpointArgs) -> ExitCode {
    if let Some(browser) = args.browser {
        return self::browser(browser.into(), &args.role);
    }
    if let Some(words) = &args.own_server {
        return own_server(words, args.start_timeout, &args.role);
    }
    if let Some(program) = &args.own_client {
        return own_client(program, &args.role);
    }
    let (path, run): (_, fn(&str) -> i32) = match (&args.role, args.engine) {
        (EndpointRole::Describe, engine) => {
            let description = if engine { wirelab_endpoint::engine::describe() } else { wirelab_endpoint::describe() };
            return match print_json(&description) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(),
            };
        }
        (EndpointRole::Server { spec }, false) => (spec, wirelab_endpoint::serve),
        (EndpointRole::Server { spec }, true) => (spec, wirelab_endpoint::engine::serve),
        (EndpointRole::Client { spec }, false) => (spec, wirelab_endpoint::request),
        (EndpointRole::Client { spec }, true) => (spec, wirelab_endpoint::engine::request),
    };
    // What a peer sends is parsed here.
    if let Err(error) = wirelab_lab::rights::withhold() {
        return Failure::failed(format!("cannot give up rights over the machine: {error}")).report();
    }
    match std::fs::read_to_string(path) {
        Ok(text) => ExitCode::from(u8::try_from(run(&text)).unwrap_or(1)),
        Err(error) => Failure::failed(format!("cannot read the spec {}: {error}", path.display())).report(),
    }
}

/// Runs a program of the user as the server of a trial.
fn own_server(words: &str, start_timeout: Span, role: &EndpointRole) -> ExitCode {
    let words: Vec<String> = match serde_json::from_str(words) {
        Ok(words) => words,
        Err(error) => return Failure::input(format!("`{words}` is no JSON list of words: {error}")).report(),
    };
    let result = match role {
        EndpointRole::Describe => print_json(&wirelab_endpoint::describe_own_server(&command_name(&words))),
        EndpointRole::Client { .. } => Err(Failure::failed("a program of the user is a server, not a client")),
        EndpointRole::Server { spec } => match std::fs::read_to_string(spec) {
            Ok(text) => {
                let socket = spec.with_extension("sock");
                let status = wirelab_endpoint::run_own_server(&words, start_timeout.to_std(), &text, socket);
                return ExitCode::from(u8::try_from(status).unwrap_or(1));
            }
            Err(error) => Err(Failure::failed(format!("cannot read the spec {}: {error}", spec.display()))),
        },
    };
    result.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

/// Runs a program of the user as the client of a trial.
fn own_client(program: &str, role: &EndpointRole) -> ExitCode {
    let own: wirelab_endpoint::OwnClient = match serde_json::from_str(program) {
        Ok(own) => own,
        Err(error) => return Failure::input(format!("`{program}` is no program: {error}")).report(),
    };
    let result = match role {
        EndpointRole::Describe => print_json(&own.describe(&command_name(&own.words))),
        EndpointRole::Server { .. } => Err(Failure::failed("this program of the user is a client, not a server")),
        EndpointRole::Client { spec } => match std::fs::read_to_string(spec) {
            Ok(text) => return ExitCode::from(u8::try_from(own.run(&text)).unwrap_or(1)),
            Err(error) => Err(Failure::failed(format!("cannot read the spec {}: {error}", spec.display()))),
        },
    };
    result.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

/// Runs a browser as an endpoint.
fn browser(browser: Browser, role: &EndpointRole) -> ExitCode {
    let described = || -> Result {
        match role {
            EndpointRole::Describe => print_json(
                &wirelab_browser::endpoint::describe(browser).map_err(|error| Failure::failed(error.to_string()))?,
            ),
            EndpointRole::Server { .. } => Err(Failure::failed(format!("{browser} cannot be a server"))),
            EndpointRole::Client { .. } => Ok(()),
        }
    };
    let spec = match (role, described()) {
        (_, Err(failure)) => return failure.report(),
        (EndpointRole::Client { spec }, Ok(())) => spec,
        (_, Ok(())) => return ExitCode::SUCCESS,
    };
    let input = std::fs::read_to_string(spec)
        .map_err(|error| Failure::failed(format!("cannot read the spec {}: {error}", spec.display())))
        .and_then(|text| Ok((text, program()?)));
    match input {
        Ok((text, program)) => {
            let (input, output) = (BufReader::new(std::io::stdin()), std::io::stdout());
            let status = wirelab_browser::endpoint::request(browser, &text, &program, input, output);
            ExitCode::from(u8::try_from(status).unwrap_or(1))
        }
        Err(failure) => failure.report(),
    }
}

/// Kills the processes of a run when wirelab dies.
pub fn guard() -> ExitCode {
    wirelab_lab::guard::main(&keep_at)
}

/// Creates and holds the network of a run in the lab `netns`.
pub fn fabric() -> ExitCode {
    wirelab_lab::netns::fabric::main(&keep_at)
}

/// Works in a pod of a run. `wait NAME --metrics ADDRESS SOCKETS` also serves the metrics of the pod's endpoints.
pub fn agent(words: &[String]) -> ExitCode {
    let [wait, name, flag, address, sockets] = words else { return wirelab_agent::there::main(words) };
    if (wait.as_str(), flag.as_str()) != ("wait", "--metrics") {
        return wirelab_agent::there::main(words);
    }
    let exporter = address
        .parse()
        .map_err(|error| Failure::input(format!("`{address}` is not of the form ADDRESS:PORT: {error}")))
        .and_then(|address| {
            Exporter::start(address, Some(sockets.into())).map_err(|error| Failure::failed(error.to_string()))
        });
    match exporter {
        Ok(_exporter) => wirelab_agent::there::main(&[wait.clone(), name.clone()]),
        Err(failure) => failure.report(),
    }
}

/// Observes the network of a run from within its namespaces.
pub fn witness() -> ExitCode {
    wirelab_observe::witness::main(std::io::stdin().as_fd(), &mut std::io::stdout(), &keep_at)
}
