//! `wirelab agent`: wirelab's helper on another host. The host needs no shell and no tar, only this program.

mod find;
mod hold;
mod look;
mod memory;
mod observe;
mod path;
mod peers;
mod probe;
mod root;
mod start;
mod sweep;
mod wait;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::files;

pub use find::ROUTING_TIMEOUT;
pub use hold::{HOLDER, Held, SIGN_OF_LIFE};
pub use look::Facts;
pub use observe::NO_PEERS;
pub(crate) use observe::part;
pub use peers::Peers;
pub use probe::Kind;
pub use root::ROOT;
pub(crate) use start::{NOT_INSTALLED, Output};
pub use wait::NAMING_PORT;

/// The subcommand of wirelab that runs the agent.
pub const SUBCOMMAND: &str = "agent";

/// Runs a command of the agent; errors go to standard error. Paths are those of the other side; here they are below the
/// folder in [`ROOT`], or the same without it.
///
/// - `wait NAME`: runs as the first process of a container until it ends; answers each connection with this name
/// - `start ENDPOINT IDENTITY REMEDY ROLE --spec SPEC`: runs an endpoint with this identity as a child, then appends
///   its resource usage to standard output; REMEDY is what to do if the host lacks it
/// - `take`: unpacks the archive on standard input
/// - `give PATH...`: packs these files and folders, as far as they exist, to standard output
/// - `look`: prints facts about the host
/// - `find ADDRESS:PORT NAME...`: waits until connections to the address lead to exactly the hosts of these names
/// - `resolve NAME ADDRESS...`: waits until the name resolves to exactly these addresses
/// - `probe tcp|quic|udp ADDRESS:PORT TIMES`: waits until servers answer there this many times in a row
/// - `reflect ADDRESS`: answers datagrams that measure the path to this address; first prints where it listens, as
///   JSON, and ends with standard input
/// - `measure-path`: measures the path of the order on standard input; prints the reading as JSON
/// - `observe OBSERVER,... [PART SPEC]...`: runs observers on the endpoints with these roles and specs, controlled by
///   lines on standard input
/// - `observe-node ID PEERS OBSERVER,... [PART SPEC]...`: runs observers on a node, on the processes whose cgroups have
///   this identifier; for a server, PEERS are the addresses whose packets count, or `-`
/// - `sweep`: kills the processes with the same [`ROOT`]; in a pod, every process except the first
/// - `hold FOLDER`: removes the folder, and the processes with a [`ROOT`] in it, as soon as standard input ends
#[must_use]
pub fn main(words: &[String]) -> ExitCode {
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["wait", name] => wait::wait(name),
        ["start", name, identity, remedy, role, "--spec", spec] => {
            return ended(start::start((name, identity, remedy), role, spec));
        }
        ["take"] => files::unpack(io::stdin().lock(), &root::root()),
        ["give", ref paths @ ..] => give(paths),
        ["look"] => say(&serde_json::to_string(&Facts::read()).expect("facts always serialise")),
        ["find", address, ref names @ ..] => find::behind(address, names),
        ["resolve", name, ref addresses @ ..] => find::by_name(name, addresses),
        ["probe", kind, address, times] => probe::run(kind, address, times, ROUTING_TIMEOUT),
        ["reflect", address] => path::reflect(address),
        ["measure-path"] => path::measure(),
        ["observe", observers, ref played @ ..] => observe::in_pod(observers, played),
        ["observe-node", pod, peers, observers, ref played @ ..] => observe::on_node(pod, peers, observers, played),
        ["sweep"] => sweep::sweep(),
        ["hold", folder] => hold::hold(folder),
        _ => Err(io::Error::other(format!(
            "the agent does not know `{}`; is its wirelab of another version?",
            words.join(" ")
        ))),
    };
    ended(done.map(|()| ExitCode::SUCCESS))
}

fn ended(done: io::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        // Without a reader of standard error, the message is lost.
        let _ = writeln!(io::stderr(), "{error}");
        ExitCode::FAILURE
    })
}

fn give(paths: &[&str]) -> io::Result<()> {
    let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
    io::stdout().lock().write_all(&files::pack_below(&root::root(), &paths)?)
}

fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}
