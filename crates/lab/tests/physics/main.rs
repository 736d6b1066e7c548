//! Labs that start processes and create networks. This program also plays guard, network and wirelab. Tests run one at
//! a time.

mod discovery;
mod guard;
mod loopback;
mod netns;
mod path;

use std::path::Path;
use std::process::ExitCode;

use wirelab_lab::netns::fabric;

fn main() -> ExitCode {
    // The tests start this program in other roles; a role comes before the arguments of the harness.
    match std::env::args().nth(1).as_deref() {
        Some(wirelab_lab::guard::SUBCOMMAND) => return wirelab_lab::guard::main(&|_| ()),
        Some(fabric::SUBCOMMAND) => return fabric::main(&|_| ()),
        Some("play-wirelab") => return guard::play_wirelab(Path::new(&std::env::args().nth(2).expect("a folder"))),
        _ => {}
    }
    let files = [discovery::tests(), guard::tests(), loopback::tests(), netns::tests(), path::tests()];
    wirelab_testkit::physics::main(files.into_iter().flatten())
}
