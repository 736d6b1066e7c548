//! System calls counted by strace(1), for kernels whose counters are not available, and to compare both.
//!
//! strace stops every thread twice in every call (ptrace(2)), which slows the trial down many times. A traced trial
//! gives these counts only.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use wirelab_model::metric::Values;
use wirelab_model::missing::Missing;

use crate::syscalls::calls::{CALLS, STRACE};
use crate::tree::{Pid, threads, tree};
use crate::window::{Reading, Sides, per_request, values};
use crate::{About, Observer, Targets, Window};

/// Time-out of attaching and of detaching. Hundreds of threads take about a second.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The observer.
#[derive(Debug, Default)]
pub struct Strace {
    tracers: Option<Sides<Result<Tracer, Missing>>>,
    counts: Option<Sides<Result<Counts, Missing>>>,
}

/// Number of returned calls by name.
type Counts = BTreeMap<String, u64>;

impl Observer for Strace {
    fn about(&self) -> &'static About {
        &STRACE
    }

    fn distorts(&self) -> Option<&'static str> {
        Some("stopped the processes at every system call")
    }

    fn begin(&mut self, targets: &Targets) {
        self.tracers = Some(Sides::read(targets, Tracer::attach));
    }

    fn end(&mut self, _: &Targets) {
        let Some(Sides { client, server }) = self.tracers.take() else { return };
        let counts = |tracer: Result<Tracer, Missing>| tracer?.detach();
        self.counts = Some(Sides { client: counts(client), server: counts(server) });
    }

    fn values(&mut self, window: &Window) -> Values {
        let total = |counts: &Counts| counts.values().sum::<u64>();
        let other =
            |counts: &Counts| total(counts) - CALLS.iter().filter_map(|(name, _)| counts.get(*name)).sum::<u64>();
        let mut readings = self.readings(total, window).into_iter().collect::<Vec<_>>();
        for (name, _) in CALLS {
            readings.extend(self.readings(|counts| counts.get(*name).copied().unwrap_or(0), window));
        }
        readings.extend(self.readings(other, window));
        let mut readings = readings.into_iter();
        let readings: [Reading; STRACE.metrics.len()] =
            std::array::from_fn(|_| readings.next().unwrap_or(Err(Missing::NoWindow)));
        values(STRACE.metrics, readings)
    }
}

impl Strace {
    /// A count per request, for the client and for the server.
    fn readings(&self, of: impl Fn(&Counts) -> u64, window: &Window) -> [Reading; 2] {
        let Some(Sides { client, server }) = &self.counts else { return [(); 2].map(|()| Err(Missing::NoWindow)) };
        [client, server]
            .map(|side| per_request(&side.as_ref().map(|counts| of(counts) as f64).map_err(Clone::clone), window))
    }
}

/// A running strace. Dropping it ends strace; the traced processes continue.
#[derive(Debug)]
struct Tracer(Child);

impl Drop for Tracer {
    fn drop(&mut self) {
        // strace may have ended already, and a drop cannot report errors.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Tracer {
    /// Attaches to every thread of the processes and their children, and waits until all are traced.
    fn attach(roots: &[Pid]) -> Result<Self, Missing> {
        let mut command = Command::new("strace");
        // With -qq, standard error has only the table and errors.
        command.args(["-f", "-c", "-qq"]);
        for pid in tree(roots)?.into_keys() {
            command.args(["-p", &pid.to_string()]);
        }
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut tracer = Self(spawned.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Missing::ProgramMissing { program: "strace".to_owned() },
            _ => Missing::failed("strace cannot be started", error),
        })?);
        let deadline = Instant::now() + TIMEOUT;
        while !tracer.traces_all(roots)? {
            if tracer.0.try_wait().map_err(waiting)?.is_some() {
                return Err(Missing::StraceEnded { output: tracer.output().trim_end().to_owned() });
            }
            if Instant::now() > deadline {
                return Err(timed_out("attaching strace to every thread"));
            }
            sleep(Duration::from_millis(1));
        }
        Ok(tracer)
    }

    /// Whether this strace traces every thread.
    fn traces_all(&self, roots: &[Pid]) -> Result<bool, Missing> {
        let own = format!("TracerPid:\t{}", self.0.id());
        Ok(threads(roots)?.into_iter().all(|(thread, process)| {
            let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).unwrap_or_default();
            status.lines().any(|line| line == own)
        }))
    }

    /// Detaches and reads the table.
    fn detach(mut self) -> Result<Counts, Missing> {
        let pid = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        let interrupted = pid.ok_or(rustix::io::Errno::SRCH).and_then(|pid| kill_process(pid, Signal::INT));
        interrupted.map_err(|error| Missing::failed("strace cannot be interrupted to make it detach", error))?;
        let deadline = Instant::now() + TIMEOUT;
        while self.0.try_wait().map_err(waiting)?.is_none() {
            if Instant::now() > deadline {
                return Err(timed_out("detaching strace"));
            }
            sleep(Duration::from_millis(1));
        }
        let output = self.output();
        parse(&output).ok_or_else(|| Missing::NoStraceTable { output: output.trim_end().to_owned() })
    }

    /// The standard error of the ended strace. A table is far smaller than a pipe's buffer, so strace never blocked on
    /// it.
    fn output(&mut self) -> String {
        let mut output = String::new();
        if let Some(stderr) = &mut self.0.stderr {
            // After an error, the part that was read is kept.
            let _ = stderr.read_to_string(&mut output);
        }
        output
    }
}

fn waiting(error: io::Error) -> Missing {
    Missing::failed("waiting for strace failed", error)
}

fn timed_out(attempt: &str) -> Missing {
    Missing::TimedOut { attempt: attempt.to_owned(), seconds: TIMEOUT.as_secs() }
}

/// Parses strace's table: `% time`, seconds, microseconds per call, calls, errors or nothing, name. Without any call
/// strace prints nothing.
fn parse(output: &str) -> Option<Counts> {
    if output.trim().is_empty() {
        return Some(Counts::new());
    }
    let mut rows = output.lines().skip_while(|line| !line.trim_start().starts_with("% time"));
    rows.next()?;
    let rows = rows.filter_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        Some(((*fields.last()?).to_owned(), fields.get(3)?.parse().ok()?))
    });
    Some(rows.filter(|(name, _)| name != "total").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_with_and_without_errors_and_without_its_total() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ----------------\n \
                     60.00    0.000030          10         3         1 recvfrom\n \
                     40.00    0.000020          10         2           sendto\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     100.00    0.000050          10         5         1 total\n";
        assert_eq!(parse(table), Some(Counts::from([("recvfrom".to_owned(), 3), ("sendto".to_owned(), 2)])));
        assert_eq!(parse("\n"), Some(Counts::new()));
        assert_eq!(parse("strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted\n"), None);
    }
}
