//! The progress of a run on standard error: a bar in a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use wirelab_run::{Phase, Progress};

/// Between two lines where there is no terminal: logs of a night stay readable, and nobody takes the run for dead.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// Shows the progress of a run on standard error.
pub enum Shown {
    /// Nothing, on request.
    Nothing,
    /// Elapsed, remaining, current cell.
    Bar(ProgressBar),
    /// A line at the first trial, and then at most one in half a minute.
    Lines { last: Option<Instant> },
}

impl Shown {
    /// As standard error can show it.
    pub fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Nothing;
        }
        if !stderr().is_terminal() {
            return Self::Lines { last: None };
        }
        let bar = ProgressBar::no_length();
        let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar:.cyan/dim} {pos}/{len} {msg}");
        bar.set_style(style.expect("the template is right").progress_chars("━━─"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self::Bar(bar)
    }

    /// Shows where the run is.
    pub fn show(&mut self, progress: &Progress) {
        match self {
            Self::Nothing => {}
            Self::Bar(bar) => {
                bar.set_length(u64::from(progress.trials));
                bar.set_position(u64::from(progress.done));
                bar.set_message(place(progress));
            }
            Self::Lines { last } => {
                let is_due = last.is_none_or(|last| last.elapsed() >= BETWEEN_LINES);
                let is_left = progress.done < progress.trials;
                if is_due && is_left && progress.phase == Phase::Measuring {
                    eprintln!(
                        "{} {} of at most {} trials done, {}",
                        clock(progress.elapsed),
                        progress.done,
                        progress.trials,
                        place(progress)
                    );
                    *last = Some(Instant::now());
                }
            }
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// What is being done, as words.
fn place(progress: &Progress) -> String {
    match progress.phase {
        Phase::Preparing => "making certificates and documents".to_owned(),
        Phase::Probing => "checking that the endpoints keep the contract".to_owned(),
        Phase::Links => "measuring what the links do".to_owned(),
        Phase::Showing => "waiting for Prometheus to see the last numbers, a minute at most".to_owned(),
        Phase::Measuring => {
            let left = progress.remaining.map_or_else(String::new, |left| format!("at most {} left, ", clock(left)));
            format!("{left}block {}/{}: {}", progress.block + 1, progress.blocks, progress.cell)
        }
    }
}

/// A length of time as `1:05`.
pub fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}
