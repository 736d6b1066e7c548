//! What own servers and own clients share: a program of the user behind the endpoint contract.

use std::io;
use std::process::{Child, Command};

use wirelab_contract::CONTRACT_VERSION;
use wirelab_contract::endpoint::{Description, Role};
use wirelab_contract::protocol::Protocol;

use crate::refusal::Refusal;

/// The description of a program of this name, without a role.
pub(crate) fn describe(name: &str) -> Description {
    Description {
        contract: CONTRACT_VERSION,
        name: name.to_owned(),
        library: "a program of the user".to_owned(),
        version: "unknown".to_owned(),
        language: "unknown".to_owned(),
        server: None,
        client: None,
        sidecar: None,
        control_plane: None,
    }
}

/// A role with these protocols and nothing else: only the user knows.
pub(crate) fn role(protocols: Vec<Protocol>) -> Role {
    Role { protocols, features: Vec::new(), exposition: false, own_requests: false, until_steady: false }
}

/// Starts a program with these words; `set` completes its command.
///
/// # Errors
/// If it cannot be started; the message names the remedy.
pub(crate) fn start(words: &[String], set: impl FnOnce(&mut Command) -> &mut Command) -> Result<Child, Refusal> {
    let [program, arguments @ ..] = words else {
        return Err(Refusal::failed("the command has no word"));
    };
    set(Command::new(program).args(arguments)).spawn().map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "; is it installed, and is its path relative to the folder of wirelab's start?",
            io::ErrorKind::PermissionDenied => "; is it executable?",
            _ => "",
        };
        Refusal::failed(format!("cannot start `{program}`: {error}{remedy}"))
    })
}
