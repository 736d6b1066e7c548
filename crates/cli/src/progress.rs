//! The progress bar of a run: elapsed, remaining, current cell.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wirelab_run::{Phase, Progress};

/// Shows the progress of a run on standard error; nothing where that is not a terminal, or on request.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar; hidden where `quiet`.
    pub fn new(quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(
            None,
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() },
        );
        let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar:.cyan/dim} {pos}/{len} {msg}");
        bar.set_style(style.expect("the template is right").progress_chars("━━─"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Shows where the run is.
    pub fn show(&self, progress: &Progress) {
        self.0.set_length(u64::from(progress.trials));
        self.0.set_position(u64::from(progress.done));
        self.0.set_message(match progress.phase {
            Phase::Preparing => "making certificates and documents".to_owned(),
            Phase::Probing => "checking that the endpoints keep the contract".to_owned(),
            Phase::Links => "measuring what the links do".to_owned(),
            Phase::Showing => "waiting for Prometheus to see the last numbers, a minute at most".to_owned(),
            Phase::Measuring => {
                let left =
                    progress.remaining.map_or_else(String::new, |left| format!("at most {} left, ", clock(left)));
                format!("{left}block {}/{}: {}", progress.block + 1, progress.blocks, progress.cell)
            }
        });
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A length of time as `1:05`.
pub fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}
