//! `wirelab agent`: what wirelab does inside a pod, where there is no shell, no tar, nothing but this program.

mod find;
mod look;
mod memory;
mod observe;
mod peers;
mod probe;
mod start;
mod sweep;
mod wait;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::files;

pub(crate) use find::PATIENCE;
pub(crate) use look::Facts;
pub(crate) use observe::{NOBODY, part};
pub(crate) use peers::Peers;
pub(crate) use probe::Kind;
pub(crate) use start::{NOT_INSTALLED, Output};

/// The word on wirelab's command line that makes it an agent.
pub const SUBCOMMAND: &str = "agent";

/// Does what the words say; complaints go to standard error.
///
/// - `wait NAME`: as the first process of the pod, until the pod is to end; says this name to whoever connects
/// - `start ENDPOINT IDENTITY ROLE --spec SPEC`: plays an endpoint as a child, if it is that one, and says on standard output what that cost
/// - `take`: unpacks the archive on standard input
/// - `give PATH...`: packs what there is of these files and folders
/// - `look`: prints what is to be known of the pod
/// - `find ADDRESS:PORT NAME...`: waits until connections to the address lead to the pods of these names, and to no others
/// - `resolve NAME ADDRESS...`: waits until the name resolves to these addresses, and to no others
/// - `probe tcp|quic|udp ADDRESS:PORT TIMES`: waits until servers answer there so many times in a row
/// - `observe OBSERVER,... [PART SPEC]...`: reads what observers read of those who play these parts by these specs, as standard input says
/// - `observe-node POD PEERS OBSERVER,... [PART SPEC]...`: the same on a node, of the processes of the pod with this UID, whose packets
///   are those with these peers, if it is a server's and there are any
/// - `sweep`: kills every process but the first one
#[must_use]
pub fn main(words: &[String]) -> ExitCode {
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["wait", name] => wait::wait(name),
        ["start", name, identity, role, "--spec", spec] => return ended(start::start(name, identity, role, spec)),
        ["take"] => files::unpack(io::stdin().lock(), Path::new("/")),
        ["give", ref paths @ ..] => give(paths),
        ["look"] => say(&serde_json::to_string(&Facts::read()).expect("facts always serialise")),
        ["find", address, ref names @ ..] => find::behind(address, names),
        ["resolve", name, ref addresses @ ..] => find::by_name(name, addresses),
        ["probe", kind, address, times] => probe::run(kind, address, times, PATIENCE),
        ["observe", observers, ref played @ ..] => observe::in_pod(observers, played),
        ["observe-node", pod, peers, observers, ref played @ ..] => observe::on_node(pod, peers, observers, played),
        ["sweep"] => sweep::sweep(),
        _ => Err(io::Error::other(format!(
            "the agent does not know `{}`; is the image of another version?",
            words.join(" ")
        ))),
    };
    ended(done.map(|()| ExitCode::SUCCESS))
}

fn ended(done: io::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        // If nobody reads it, nobody can be told.
        let _ = writeln!(io::stderr(), "{error}");
        ExitCode::FAILURE
    })
}

fn give(paths: &[&str]) -> io::Result<()> {
    let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
    io::stdout().lock().write_all(&files::pack(&paths, &[], true)?)
}

fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}
