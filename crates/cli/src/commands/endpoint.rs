//! `wirelab endpoint`, `wirelab guard`, `wirelab fabric`, `wirelab witness` and `wirelab agent`: the processes that wirelab starts
//! of itself.

use std::os::fd::AsFd;
use std::process::ExitCode;

use crate::args::{EndpointArgs, EndpointRole};
use crate::failure::Failure;
use crate::output::print_json;

/// Plays the built-in endpoint. Exit statuses are those of the contract: 0 done, 1 failed, 127 unsupported.
pub fn endpoint(args: &EndpointArgs) -> ExitCode {
    let (path, play): (_, fn(&str) -> i32) = match &args.role {
        EndpointRole::Describe => {
            return match print_json(&wirelab_endpoint::describe()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(),
            };
        }
        EndpointRole::Server { spec } => (spec, wirelab_endpoint::serve),
        EndpointRole::Client { spec } => (spec, wirelab_endpoint::request),
    };
    match std::fs::read_to_string(path) {
        Ok(text) => ExitCode::from(u8::try_from(play(&text)).unwrap_or(1)),
        Err(error) => Failure::failed(format!("cannot read the spec {}: {error}", path.display())).report(),
    }
}

/// Watches over the processes of a run.
pub fn guard() -> ExitCode {
    wirelab_lab::guard::main()
}

/// Holds the network of a run.
pub fn fabric() -> ExitCode {
    wirelab_lab::netns::fabric::main()
}

/// Works in a pod of a run.
pub fn agent(words: &[String]) -> ExitCode {
    wirelab_lab::kubernetes::agent::main(words)
}

/// Looks at the network of a run.
pub fn witness() -> ExitCode {
    wirelab_observe::witness::main(std::io::stdin().as_fd(), &mut std::io::stdout())
}
