//! `wirelab logs`: what wirelab and the processes of a run logged, in the order of time.

mod files;
mod line;

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use wirelab_run::Run;

use crate::args::LogsArgs;
use crate::commands::logs::files::Files;
use crate::commands::logs::line::Line;
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{offer, offer_document};
use crate::place::run_folder;

/// Pause between two looks at the files of a run in progress. Events of the file system (inotify) would save these
/// looks, but network file systems have none.
const POLL: Duration = Duration::from_millis(100);

/// Prints the logs of a run, or of one of its trials.
pub fn logs(args: &LogsArgs) -> Result {
    let folder = run_folder(args.run.as_deref(), &args.out)?;
    let run = Run::open(&folder).map_err(Failure::input)?;
    let mut output = Output { args, shows_any: false };
    let mut files = Files::new(&folder);
    let is_whole = match args.follow {
        true => follow(&run, &mut files, &mut output)?,
        false => output.show(files.next(true)?)?,
    };
    match args.trial {
        Some(wanted) if is_whole && !output.shows_any => {
            let run = Run::open(&folder).map_err(Failure::input)?;
            check(wanted, run.trials().iter().map(|record| record.trial.number).chain(files.trials()))
        }
        _ => Ok(()),
    }
}

/// Prints lines as they arrive. Returns true at the end of the run, and false earlier if the user stops wirelab or the
/// reader of the output has closed it.
fn follow(run: &Run, files: &mut Files, output: &mut Output<'_>) -> Result<bool> {
    let stop = stop_flag()?;
    while !stop.load(Ordering::SeqCst) {
        // The question comes before the reading, so that the last lines of the run are read.
        let is_over = !run.is_in_progress().map_err(Failure::failed)?;
        let is_open = output.show(files.next(is_over)?)?;
        if is_over || !is_open {
            return Ok(is_open);
        }
        thread::sleep(POLL);
    }
    Ok(false)
}

/// Rejects a trial that the run does not have.
fn check(wanted: u32, known: impl Iterator<Item = u32> + Clone) -> Result {
    if known.clone().any(|number| number == wanted) {
        return Ok(());
    }
    let nearest = known.min_by_key(|number| number.abs_diff(wanted));
    let hint = nearest.map_or_else(|| "it has no trial yet".to_owned(), |number| format!("did you mean {number}?"));
    Err(Failure::input(format!("the run has no trial {wanted}; {hint}")))
}

/// Standard output in the form that the arguments choose.
struct Output<'a> {
    args: &'a LogsArgs,
    /// Whether a line was printed.
    shows_any: bool,
}

impl Output<'_> {
    /// Prints the chosen lines. Returns false if the reader has closed the output.
    fn show(&mut self, lines: Vec<Line>) -> Result<bool> {
        let mut text = String::new();
        for line in lines.into_iter().filter(|line| self.args.trial.is_none_or(|wanted| line.trial == Some(wanted))) {
            let _ = match self.args.json {
                true => writeln!(text, "{}", line.object()),
                false => writeln!(text, "{}", line.row()),
            };
        }
        self.shows_any |= !text.is_empty();
        if self.args.json { offer_document(&text) } else { offer(&text) }
    }
}
