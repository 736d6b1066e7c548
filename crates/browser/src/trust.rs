//! Makes a browser trust a certificate authority. Both browsers keep authorities in NSS databases.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirelab_lab::{ExitStatus, Guard, LocalProcess};
use wirelab_model::outcome::Blame;

use crate::running::ending;
use crate::session::Trouble;

/// NSS's tool for its databases.
const CERTUTIL: &str = "certutil";

/// Time-out of the tool, which takes a tenth of a second.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often a wait checks `stop`.
const LOOK: Duration = Duration::from_millis(100);

/// Creates a database in `folder` that trusts the authority (PEM) for servers.
pub fn install(authority: &Path, folder: &Path, guard: &Arc<Guard>, stop: &AtomicBool) -> Result<(), Trouble> {
    let authority = std::path::absolute(authority).map_err(|error| failed(&error.to_string()))?;
    std::fs::create_dir_all(folder).map_err(|error| failed(&error.to_string()))?;
    let database = format!("sql:{}", folder.display());
    let mut create = Command::new(CERTUTIL);
    create.args(["-N", "-d", &database, "--empty-password"]);
    run(create, guard, stop)?;
    let mut add = Command::new(CERTUTIL);
    add.args(["-A", "-d", &database, "-n", "wirelab", "-t", "CT,,", "-i"]).arg(authority);
    run(add, guard, stop)
}

fn run(program: Command, guard: &Arc<Guard>, stop: &AtomicBool) -> Result<(), Trouble> {
    let mut process = LocalProcess::program(CERTUTIL, program, guard).map_err(|error| {
        failed(&format!("{error}. It is in the package libnss3-tools: sudo apt-get install libnss3-tools"))
    })?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match process.ends_by(Instant::now() + LOOK) {
            Some(exit) if exit.status == ExitStatus::Code(0) => return Ok(()),
            Some(exit) => return Err(failed(&ending(&exit))),
            None if stop.load(Ordering::Relaxed) => return Err(Trouble::Stopped),
            None if Instant::now() > deadline => return Err(failed("it takes too long")),
            None => {}
        }
    }
}

fn failed(why: &str) -> Trouble {
    let reason = format!("cannot make the browser trust --ca, by {CERTUTIL}: {why}");
    Trouble::Failed { blame: Blame::Runner, reason }
}
