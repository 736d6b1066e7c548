//! The observers, compared with known work. This program also plays the observed processes and the witness. Tests run
//! one at a time.

mod accounts;
mod exchanges;
mod packets;
mod syscalls;

use std::os::fd::AsFd;
use std::process::ExitCode;

use wirelab_observe::witness;

fn main() -> ExitCode {
    // The tests start this program in other roles; a role comes before the arguments of the harness.
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(witness::SUBCOMMAND) => return witness::main(std::io::stdin().as_fd(), &mut std::io::stdout(), &|_| ()),
        Some("play-host") => return packets::host(),
        Some("play-account") => accounts::work(&arguments.next().expect("a kind of work")),
        Some("play-calls") => syscalls::work(),
        Some("play-child") => syscalls::child(),
        _ => {
            let files = [accounts::tests(), exchanges::tests(), packets::tests(), syscalls::tests()];
            return wirelab_testkit::physics::main(files.into_iter().flatten());
        }
    }
    ExitCode::SUCCESS
}
