//! How long a run takes: the measured windows, and the start and the end of trials as in earlier runs.

use std::fmt;

use wirelab_model::plan::{Cell, Job, Plan};
use wirelab_model::planted::Planting;
use wirelab_model::spec::{Extent, Schedule};
use wirelab_model::units::{Share, Span};

use crate::planted::planting;
use crate::reference::references;

/// Time for start, warm-up and end of a trial without earlier ones: that of the built-in endpoints on one machine.
pub const ASSUMED: Span = Span::from_millis(500);

/// A successful trial of an earlier run in the same lab.
#[derive(Debug, Clone)]
pub struct EarlierTrial {
    pub job: Job,
    /// Duration of the whole trial in nanoseconds.
    pub took_ns: u64,
    /// Length of its measured window in nanoseconds.
    pub window_ns: u64,
}

/// The expected duration of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// With the least number of blocks.
    pub least: Span,
    /// With the largest number of blocks, or with the blocks that begin within the budget.
    pub most: Span,
    /// The numbers of trials of both.
    pub trials: [u32; 2],
    /// Mean time for start, warm-up and end of a trial.
    pub start: Span,
    /// Number of earlier trials behind that time; 0: it is [`ASSUMED`].
    pub earlier: usize,
    /// Whether the windows of all cells are known: fixed by the study, or measured in earlier trials.
    pub has_windows: bool,
}

/// The expected duration of a plan. `planted` and `referred` are the shares of time for planted effects and null
/// references.
#[must_use]
pub fn expected(plan: &Plan, [planted, referred]: [Share; 2], earlier: &[EarlierTrial]) -> Expected {
    let starts: Vec<(u64, usize)> = plan.cells.iter().map(|cell| start(cell, earlier)).collect();
    let windows: Vec<Option<u64>> = plan.cells.iter().map(|cell| window(&cell.job, earlier)).collect();
    let block: u64 = starts.iter().map(|(ns, _)| ns).chain(windows.iter().flatten()).sum();
    let beside = |time: f64| time / (1.0 - time);
    let planted = match planting(plan, planted) {
        Planting::Effects { time, .. } => beside(time.0),
        Planting::Nothing(_) => 0.0,
    };
    // What the lab and the null server support is known at the start of the run only.
    let repeated = references(plan, referred, |_| None).repeated().len();
    let referred = beside(referred.0).min(repeated as f64 / plan.cells.len().max(1) as f64);
    let block = block as f64 * (1.0 + planted + referred);
    let of = |blocks: u32| Span((block * f64::from(blocks)).round() as u64);
    let least = of(plan.min_blocks);
    // A block that has begun is completed.
    let within = |budget: Span| (budget.nanos() as f64 / block.max(1.0)).ceil() as u32;
    let most_blocks =
        plan.budget.map_or(plan.max_blocks, |budget| within(budget).clamp(plan.min_blocks, plan.max_blocks));
    let most = of(most_blocks);
    let cells = plan.cells.len() as u32;
    Expected {
        least,
        most,
        trials: [plan.min_blocks, most_blocks].map(|blocks| blocks.saturating_mul(cells)),
        start: Span(starts.iter().map(|(ns, _)| ns).sum::<u64>() / starts.len().max(1) as u64),
        earlier: starts.iter().map(|(_, earlier)| *earlier).min().unwrap_or(0),
        has_windows: windows.iter().all(Option::is_some),
    }
}

/// Nanoseconds for start, warm-up and end of a trial, and the number of earlier trials behind them: of the same
/// endpoints and protocol, else of the same endpoints, else of any.
fn start(cell: &Cell, earlier: &[EarlierTrial]) -> (u64, usize) {
    let own = |job: &Job| (job.client.clone(), job.target.clone());
    let is_like: [&dyn Fn(&Job) -> bool; 3] = [
        &|job| own(job) == own(&cell.job) && job.protocol == cell.job.protocol,
        &|job| own(job) == own(&cell.job),
        &|_| true,
    ];
    let found = is_like.iter().find_map(|is_like| {
        let like = earlier.iter().filter(|trial| is_like(&trial.job));
        let costs: Vec<u64> = like.map(|trial| trial.took_ns.saturating_sub(trial.window_ns)).collect();
        Some((median(&costs)?, costs.len()))
    });
    found.unwrap_or_else(|| (ASSUMED.nanos() + warm_up_time(&cell.job), 0))
}

/// The time of a warm-up by time; warm-ups by requests are short, and part of [`ASSUMED`].
const fn warm_up_time(job: &Job) -> u64 {
    match job.load.warm_up {
        Some(Extent::DurationNs(nanos)) => nanos,
        Some(Extent::Requests(_)) | None => 0,
    }
}

/// The length of the window in nanoseconds; `None` if it ends with its last request, and no earlier trial shows when.
fn window(job: &Job, earlier: &[EarlierTrial]) -> Option<u64> {
    match (job.load.extent, job.load.schedule) {
        (Extent::DurationNs(nanos), _) => Some(nanos),
        (Extent::Requests(requests), Schedule::Open { rate_per_s, .. }) => {
            Some((requests as f64 / rate_per_s * 1e9) as u64)
        }
        (Extent::Requests(_), Schedule::Closed { .. }) => {
            let same = earlier.iter().filter(|trial| trial.job == *job);
            median(&same.map(|trial| trial.window_ns).collect::<Vec<_>>())
        }
    }
}

fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = |span: Span| {
            let seconds = span.secs().ceil() as u64;
            format!("{}:{:02}", seconds / 60, seconds % 60)
        };
        let range = |least: String, most: String| if least == most { least } else { format!("{least} to {most}") };
        let [fewest, most] = self.trials.map(|trials| trials.to_string());
        let at_least = if self.has_windows { "" } else { "at least " };
        write!(
            f,
            "Expected time: {at_least}{} (minutes:seconds) for {} trials. ",
            range(clock(self.least), clock(self.most)),
            range(fewest, most)
        )?;
        let start = self.start.secs();
        match self.earlier {
            0 => write!(f, "Start and end of a trial are assumed to take {start:.1} s: no earlier run here shows it.")?,
            1 => write!(f, "Start and end of a trial take {start:.1} s, as in an earlier one.")?,
            earlier => write!(f, "Start and end of a trial take {start:.1} s, as in {earlier} earlier ones.")?,
        }
        if !self.has_windows {
            f.write_str(" Some windows end with their last request, which takes as long as the server needs.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(workload: &str, blocks: &str) -> Plan {
        let text = format!(
            "name = \"s\"\ntitle = \"t\"\nquestion = \"q\"\n[workload]\n{workload}\n[factors]\nprotocol = [\"h1\", \"h2\"]\n\
             [compare]\nfactor = \"protocol\"\nbaseline = \"h1\"\n[blocks]\n{blocks}\n"
        );
        crate::plan(&crate::parse(&text, "s.toml").unwrap()).unwrap().0
    }

    fn earlier(plan: &Plan, cell: usize, took_ms: u64, window_ms: u64) -> EarlierTrial {
        let job = plan.cells[cell].job.clone();
        EarlierTrial { job, took_ns: took_ms * 1_000_000, window_ns: window_ms * 1_000_000 }
    }

    #[test]
    fn windows_and_assumed_starts_make_the_time_of_a_first_run() {
        // Three cells with the A/A twin, 1.5 s each.
        let plan = of("duration = \"1 s\"", "min = 10\nmax = 20");
        let found = expected(&plan, [Share(0.0); 2], &[]);
        assert_eq!((found.least, found.most, found.trials), (Span::from_secs(45), Span::from_secs(90), [30, 60]));
        let text = "Expected time: 0:45 to 1:30 (minutes:seconds) for 30 to 60 trials. Start and end of a trial are assumed \
                    to take 0.5 s: no earlier run here shows it.";
        assert_eq!(found.to_string(), text);
        assert_eq!(expected(&plan, [Share(0.1), Share(0.0)], &[]).least, Span::from_secs(50));
        // A quarter of the time is a third of the trials of the plan, but two references allow two trials in a block.
        assert_eq!(expected(&plan, [Share(0.0), Share(0.25)], &[]).least, Span::from_secs(60));
        assert_eq!(expected(&plan, [Share(0.0), Share(0.5)], &[]).least, Span::from_secs(75));
        let warmed = of("duration = \"1 s\"\nwarm_up = \"500 ms\"", "min = 10\nmax = 20");
        assert_eq!(expected(&warmed, [Share(0.0); 2], &[]).least, Span::from_secs(60));
        let short = of("duration = \"1 s\"", "min = 10\nmax = 20\nbudget = \"1 min\"");
        let found = expected(&short, [Share(0.0); 2], &[]);
        assert_eq!((found.most, found.trials), (Span::from_secs(63), [30, 42]));
    }

    #[test]
    fn starts_are_those_of_the_most_similar_earlier_trials() {
        let plan = of("duration = \"1 s\"", "min = 10\nmax = 10");
        // h1 takes 2 s, the twin as well, h2 4 s.
        let trials = [earlier(&plan, 0, 2900, 1000), earlier(&plan, 0, 3000, 1000), earlier(&plan, 1, 5000, 1000)];
        let found = expected(&plan, [Share(0.0); 2], &trials);
        assert_eq!((found.least, found.earlier), (Span::from_secs(10 * (3 + 5 + 3)), 1));
        // Without h2, its start is that of the same endpoints.
        let found = expected(&plan, [Share(0.0); 2], &trials[..2]);
        assert_eq!((found.least, found.earlier), (Span::from_secs(90), 2));
        assert!(found.to_string().ends_with("take 2.0 s, as in 2 earlier ones."), "{found}");
    }

    #[test]
    fn a_window_of_requests_is_that_of_an_earlier_trial_or_unknown() {
        let plan = of("requests = 100", "min = 10\nmax = 10");
        let found = expected(&plan, [Share(0.0); 2], &[]);
        assert!(!found.has_windows && found.to_string().contains("at least 0:15 (minutes:seconds) for 30 trials"));
        let trials = [earlier(&plan, 0, 1500, 1000), earlier(&plan, 1, 3500, 3000)];
        let found = expected(&plan, [Share(0.0); 2], &trials);
        assert_eq!((found.has_windows, found.least), (true, Span::from_secs(10 * (1 + 1 + 3) + 15)));
        let open = of("requests = 100\nrate = \"100/s\"", "min = 10\nmax = 10");
        assert_eq!(expected(&open, [Share(0.0); 2], &[]).least, Span::from_secs(45));
    }
}
