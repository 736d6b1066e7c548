//! wirelab under `strace`.

use std::path::Path;
use std::process::{Command, Output};

use wirelab_testkit::{Skip, program, skip, wirelab};

/// Whether `strace` is installed; otherwise the test is skipped.
#[track_caller]
pub fn is_possible() -> bool {
    let is_there = Command::new("strace").arg("--version").output().is_ok();
    if !is_there {
        skip(Skip::MissingProgram { program: "strace".to_owned(), remedy: "apt-get install strace".to_owned() });
    }
    is_there
}

/// Runs wirelab with these arguments in a folder, traced with these options. `strace` ends as wirelab does.
pub fn run(folder: &Path, options: &[&str], args: &[&str]) -> Output {
    let untraced = wirelab(folder, args);
    let mut command = Command::new("strace");
    command.args(options).arg(program()).args(args).current_dir(folder);
    command.envs(untraced.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.output().unwrap()
}
