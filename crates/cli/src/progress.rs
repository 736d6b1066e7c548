//! Progress of a run on standard error: a bar in a terminal, otherwise a line every half minute.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use wirelab_model::visible::visible;
use wirelab_run::{Phase, Progress};

use crate::stderr;

/// Time between two lines: short enough to show that the run is alive, long enough for the log of a night.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

/// The display of a run's progress.
pub enum Display {
    /// `--quiet`.
    Nothing,
    /// Elapsed time, remaining time and current cell, in a terminal.
    Bar(ProgressBar),
    /// A line at the first trial, and then at most one in half a minute.
    Lines { last: Option<Instant> },
}

impl Display {
    /// Chooses the display by the kind of standard error.
    pub fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Nothing;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines { last: None };
        }
        let bar = ProgressBar::no_length();
        let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar:.cyan/dim} {pos}/{len} {msg}");
        bar.set_style(style.expect("the template is valid").progress_chars("━━─"));
        bar.enable_steady_tick(Duration::from_millis(200));
        stderr::keep_below(&bar);
        Self::Bar(bar)
    }

    /// Updates the bar, or writes a line if one is due.
    pub fn show(&mut self, progress: &Progress) {
        match self {
            Self::Nothing => {}
            Self::Bar(bar) => {
                bar.set_length(u64::from(progress.trials));
                bar.set_position(u64::from(progress.done));
                bar.set_message(visible(&activity(progress)).into_owned());
            }
            Self::Lines { last } => {
                let is_due = last.is_none_or(|last| last.elapsed() >= LINE_INTERVAL);
                let is_left = progress.done < progress.trials;
                if is_due && is_left && progress.phase == Phase::Measuring {
                    stderr::write_line(format_args!(
                        "{} {} of at most {} trials done, {}",
                        clock(progress.elapsed),
                        progress.done,
                        progress.trials,
                        activity(progress)
                    ));
                    *last = Some(Instant::now());
                }
            }
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// The current step of the run, for humans.
fn activity(progress: &Progress) -> String {
    match progress.phase {
        Phase::Preparing => "generating certificates and documents".to_owned(),
        Phase::Probing => "checking that the endpoints keep the contract".to_owned(),
        Phase::Planting => "a trial with a planted effect".to_owned(),
        Phase::Referring => "a trial against the null server".to_owned(),
        Phase::Links => "measuring the links".to_owned(),
        Phase::Showing => "waiting at most a minute for the last scrape of Prometheus".to_owned(),
        Phase::Measuring => {
            let left = progress.remaining.map_or_else(String::new, |left| format!("at most {} left, ", clock(left)));
            format!("{left}block {}/{}: {}", progress.block + 1, progress.blocks, progress.cell)
        }
    }
}

/// A duration as minutes and seconds: `1:05`.
fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}
