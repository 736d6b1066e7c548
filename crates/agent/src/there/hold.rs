//! Holds a run's folder on a host that outlives the run. Without the machine that started the run, the processes and
//! files of the run are removed.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpid;
use serde::{Deserialize, Serialize};

use super::{Facts, say, sweep};

/// The file in the folder with the number of the holding process.
pub const HOLDER: &str = "holder";

/// How often the other side gives a sign of life, one byte.
pub const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// Time without a sign of life after which the run counts as lost. A connection that still works delivers several signs
/// within this time.
const SILENCE: Duration = Duration::from_secs(60);

/// The first line of a holding agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Facts about the host.
    pub facts: Facts,
    /// Name of the host, from the kernel.
    pub name: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Number of its processors that the agent may use.
    pub processors: u32,
    /// Bytes of the program that arrived.
    pub program: u64,
}

/// Holds the folder until standard input ends or is silent; then kills every process with a root in the folder, and
/// removes the folder.
pub(crate) fn hold(folder: &str) -> io::Result<()> {
    let folder = Path::new(folder);
    fs::write(folder.join(HOLDER), getpid().as_raw_nonzero().to_string())?;
    let held = Held {
        facts: Facts::read(),
        name: read("/proc/sys/kernel/hostname"),
        kernel: read("/proc/sys/kernel/osrelease"),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        program: fs::metadata(std::env::current_exe()?)?.len(),
    };
    let told = say(&serde_json::to_string(&held).expect("facts always serialise"));
    if told.is_ok() {
        wait_for_the_end();
    }
    let swept = sweep::below(folder);
    let removed = fs::remove_dir_all(folder);
    told.and(swept).and(removed)
}

/// Waits until standard input ends, or was silent for too long.
fn wait_for_the_end() {
    let mut stdin = io::stdin().lock();
    let mut last = Instant::now();
    while let Some(left) = SILENCE.checked_sub(last.elapsed()) {
        let wait = Timespec { tv_sec: left.as_secs() as i64 + 1, tv_nsec: 0 };
        match poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], Some(&wait)) {
            Ok(0) => {}
            Ok(_) => match stdin.read(&mut [0; 64]) {
                Ok(0) => return,
                Ok(_) => last = Instant::now(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            },
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
