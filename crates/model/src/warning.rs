//! Warnings: rules of measurement that a trial or a run violated, each with its meaning and a remedy.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// A violated rule. The report shows [`Warning::meaning`] and [`Warning::remedy`] of each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "warning", rename_all = "snake_case")]
pub enum Warning {
    /// The client used nearly all of its available processor time.
    ClientBound {
        /// The cell's label.
        cell: String,
        /// CPU time divided by the length of the window and the client's threads.
        share: f64,
    },
    /// The lab's link has an MTU that no real network has.
    LoopbackMtu {
        /// Its MTU in bytes.
        mtu: u32,
    },
    /// Compared cells differ in a setting that is not a factor.
    Parity {
        /// Name of the setting.
        what: String,
        /// Value by cell label.
        values: Vec<(String, String)>,
    },
    /// The two halves of an A/A pair differ significantly.
    AaDiffers {
        /// The cell's label.
        cell: String,
        /// Ratio of the two halves.
        ratio: f64,
    },
    /// Values drift over the trials.
    Drift {
        /// The cell's label.
        cell: String,
        /// The metric.
        metric: String,
        /// Change from first to last trial, as a share of the median.
        change: f64,
    },
    /// Response times change while the measured window lasts.
    NotStationary {
        /// The cell's label.
        cell: String,
        /// The slowest fifth of the window, 0 for the first.
        slowest: u32,
        /// The fastest fifth.
        fastest: u32,
        /// Median response time in the slowest fifth divided by that in the fastest.
        ratio: f64,
    },
    /// Some trials of a cell failed.
    TrialsFailed {
        /// The cell's label.
        cell: String,
        /// Number of failed trials.
        failed: u32,
        /// Total number of trials.
        of: u32,
        /// The most frequent reason, with its blame.
        reason: String,
    },
    /// Some requests of a cell failed.
    RequestsFailed {
        /// The cell's label.
        cell: String,
        /// Share of failed requests.
        share: f64,
        /// The most frequent kind of failure.
        kind: String,
    },
    /// Fewer blocks than a verdict needs.
    TooFewBlocks {
        /// Complete blocks.
        blocks: u32,
        /// Number of blocks that a verdict needs.
        needed: u32,
    },
    /// Cells are omitted because the lab cannot provide their placement or network.
    NoPlace {
        /// The lab.
        lab: String,
        /// The cells by level (`factor=level`), or all of them if no single level is the reason.
        cells: Vec<String>,
        /// The reason, with the remedy if known.
        why: String,
    },
    /// Levels are omitted because their endpoint is unusable.
    EndpointMissing {
        /// The endpoint's name.
        endpoint: String,
        /// The levels, each as `factor=level`.
        levels: Vec<String>,
        /// The reason, with the remedy if known.
        why: String,
    },
    /// Some entries of a page's archive get no answer.
    ArchiveInPart {
        /// The page, as in study files.
        page: String,
        /// The number of entries by kind, each as a phrase.
        what: Vec<String>,
    },
    /// The sample-size rule raised the number of blocks.
    BlocksRaised {
        /// The study's minimum number of blocks.
        from: u32,
        /// The raised minimum number of blocks.
        to: u32,
        /// Comparisons under Holm's correction.
        comparisons: u32,
    },
    /// Datagrams or segments were dropped inside the machine during trials of a cell.
    Drops {
        /// The cell's label.
        cell: String,
        /// The kernel's name of the counter.
        counter: String,
        /// Number of drops.
        count: u64,
    },
    /// The host of this virtual machine took processor time from trials.
    Stolen {
        /// Number of trials with more than a negligible share.
        trials: u32,
        /// Number of trials that measured it.
        of: u32,
        /// The largest share of all processors' time.
        largest: f64,
    },
    /// 0-RTT or resumption was requested and not always used.
    ResumptionMissed {
        /// The cell's label.
        cell: String,
        /// `resumed` or `early_accepted`.
        wanted: String,
        /// Share of connections that used it.
        share: f64,
    },
    /// Other work used the machine at the start of the run.
    BusyMachine {
        /// Load average over one minute.
        load: f64,
        /// Processors.
        cores: u32,
    },
    /// The run was resumed under different conditions (`wirelab resume --force`).
    ConditionsChanged {
        /// The changes, each as a phrase with both values.
        what: Vec<String>,
    },
    /// The process that emulates the link used nearly a whole processor.
    EmulatorBusy {
        /// The cell's label.
        cell: String,
        /// Its processor time as a share of the trial's length.
        share: f64,
    },
    /// Prometheus queried trials while they ran.
    Exposing {
        /// The endpoints without counters, each with its role.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        without: Vec<String>,
    },
    /// Files of each trial are kept, which takes time.
    Keeping {
        /// The files, as in study files.
        what: String,
    },
    /// An observer stopped the processes, so its trials are valid only for its counts.
    Stopped {
        /// The cell's label.
        cell: String,
        /// The observer's name.
        observer: String,
    },
    /// Privileged pods may have been active on nodes of the cluster.
    NodeAgents,
    /// A trial's loads were filmed, so only its Speed Index is valid.
    Filmed {
        /// The cell's label.
        cell: String,
    },
    /// Clients of a shared workload had different results.
    ClientsUneven {
        /// The cell's label.
        cell: String,
        /// The quantity that differs.
        what: String,
        /// The smallest value divided by the largest.
        share: f64,
    },
    /// Clients of a shared workload did not start together.
    ClientsApart {
        /// The cell's label.
        cell: String,
        /// Largest difference of their starts, as a share of the measured window.
        share: f64,
    },
    /// Open loop: requests started late, so the client could not keep the schedule.
    ScheduleLag {
        /// The cell's label.
        cell: String,
        /// P99 of the lag in nanoseconds.
        p99_ns: f64,
    },
}

impl Warning {
    /// The effect on the numbers, as a sentence.
    #[must_use]
    pub fn meaning(&self) -> String {
        match self {
            Self::ClientBound { cell, share } => format!(
                "In `{cell}` the client used {:.0} % of its processor time: the numbers show the client's limit, not the server's or the protocol's.",
                share * 100.0
            ),
            Self::LoopbackMtu { mtu } => format!(
                "The loopback interface has an MTU of {mtu} bytes, where real networks have 1500: costs per packet are far smaller than in a network."
            ),
            Self::Parity { what, values } => {
                format!("Compared cells differ in `{what}`, which is not a factor of the study: {}.", by_value(values))
            }
            Self::AaDiffers { cell, ratio } => format!(
                "The two halves of the A/A pair `{cell}` were told apart (ratio {ratio:.3}), though they are the same: something other than the cells changes between trials."
            ),
            Self::Drift { cell, metric, change } => format!(
                "`{metric}` of `{cell}` changed by {:+.1} % from the first to the last trial: the machine was not in a steady state.",
                change * 100.0
            ),
            Self::NotStationary { cell, slowest, fastest, ratio } => format!(
                "In `{cell}` the median response time is {ratio:.2} times as long in the {} fifth of the measured window as in the {}: its percentiles mix two states.",
                ordinal(*slowest),
                ordinal(*fastest)
            ),
            Self::TrialsFailed { cell, failed, of, reason } => {
                format!(
                    "{failed} of {of} trials of `{cell}` failed. Comparisons rank a trial that failed through the cell as the worst; estimates are of completed trials. Most frequent: {reason}."
                )
            }
            Self::RequestsFailed { cell, share, kind } => format!(
                "{:.2} % of the requests of `{cell}` failed, mostly `{kind}`. Percentiles rank them as slower than every success; means, minimum and maximum leave them out.",
                share * 100.0
            ),
            Self::TooFewBlocks { blocks, needed } => {
                format!(
                    "Only {blocks} complete blocks; a verdict needs {needed}. Everything here is a first impression."
                )
            }
            Self::NoPlace { lab, cells, why } => format!(
                "Left out of the study, because the lab `{lab}` cannot be it: `{}`. Reason: {why}.",
                cells.join("`, `")
            ),
            Self::EndpointMissing { endpoint, levels, why } => format!(
                "Left out of the study, because the endpoint `{endpoint}` cannot be used: `{}`. Reason: {why}.",
                levels.join("`, `")
            ),
            Self::ArchiveInPart { page, what } => {
                format!("Entries of the archive `{page}` are not answered: {}.", what.join(", "))
            }
            Self::BlocksRaised { from, to, comparisons } => format!(
                "The minimum number of blocks was raised from {from} to {to}: with {comparisons} comparisons under Holm's correction fewer cannot reach significance."
            ),
            Self::Drops { cell, counter, count } => {
                format!("The kernel counted {count} drops ({counter}) during trials of `{cell}`.")
            }
            Self::Stolen { trials, of, largest } => format!(
                "In {trials} of {of} trials the host of this virtual machine gave more than 2 % of the processors' time to others, up to {:.0} %: their times are partly the host's.",
                largest * 100.0
            ),
            Self::ResumptionMissed { cell, wanted, share } => {
                format!("Only {:.1} % of the connections of `{cell}` were `{wanted}` as the cell asks.", share * 100.0)
            }
            Self::BusyMachine { load, cores } => {
                format!(
                    "The load average was {load:.1} on {cores} processors when the run began: other work shared the machine."
                )
            }
            Self::ConditionsChanged { what } => format!(
                "The run was continued under other conditions than it was begun under: {}. Trials before and after are not comparable.",
                what.join("; ")
            ),
            Self::EmulatorBusy { cell, share } => format!(
                "In `{cell}` the emulated link took up to {:.0} % of a processor: it may have delayed packets, and what it took was missing elsewhere.",
                share * 100.0
            ),
            Self::Exposing { without } => {
                let shown = "Trials were shown to Prometheus while requests were measured: clients counted each of them once more, and each scrape took processor time.";
                match without.as_slice() {
                    [] => shown.to_owned(),
                    without => format!("{shown} Not shown, because they do not tell: {}.", without.join(", ")),
                }
            }
            Self::Keeping { what } => {
                format!(
                    "While requests were measured, files were written ({what}): that slows trials down, and not all of them alike."
                )
            }
            Self::Stopped { cell, observer } => format!(
                "In `{cell}` the observer `{observer}` stopped client and server at every system call: its counts are all that is measured there."
            ),
            Self::NodeAgents => {
                "Where packets or system calls were counted, pods with all privileges (node agents) were at work on the nodes of client and servers.".to_owned()
            }
            Self::Filmed { cell } => format!(
                "In `{cell}` the browser's window was filmed, which makes loads longer: the Speed Index is all that is measured there, and is to be compared with that of other films only."
            ),
            Self::ClientsUneven { cell, what, share } => format!(
                "In `{cell}` the {what} of one client was {:.0} % of that of another, though all had the same part of the workload: the merged numbers are those of a mixture.",
                share * 100.0
            ),
            Self::ClientsApart { cell, share } => format!(
                "In `{cell}` clients began up to {:.1} % of the measured window apart: at its begin and end not all of the load was there.",
                share * 100.0
            ),
            Self::ScheduleLag { cell, p99_ns } => format!(
                "In `{cell}` one request in a hundred started more than {:.2} ms late: the client could not keep its schedule.",
                p99_ns / 1e6
            ),
        }
    }

    /// The remedy.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::ClientBound { .. } => {
                "Give the client more threads (`client_threads`), or lower its load with `rate` or `workers`."
            }
            Self::LoopbackMtu { .. } => {
                "Use a lab whose links have an MTU of 1500 before deciding anything about a real network."
            }
            Self::Parity { .. } => {
                "Set it in `[workload]`, make it a factor, or read the comparison as one of whole implementations."
            }
            Self::AaDiffers { .. } => {
                "Stop other work on the machine, run more blocks, and distrust differences of this size."
            }
            Self::Drift { .. } => "Warm the machine up, stop other work on it, or run longer.",
            Self::NotStationary { .. } => {
                "Raise `warm_up` until the change lies before the window, or lengthen `duration` until it no longer matters."
            }
            Self::TrialsFailed { .. } => "Read the logs of the trials named in the journal.",
            Self::RequestsFailed { .. } => {
                "Look at the error kinds; raise time-outs or buffers only if the failure is not the finding."
            }
            Self::TooFewBlocks { .. } => "Choose a preset with more blocks, or raise `blocks.min`.",
            Self::NoPlace { .. } => {
                "Nothing, if the rest is what is wanted; otherwise use another lab (`wirelab labs` lists them), or change the cells as the reason says."
            }
            Self::EndpointMissing { .. } => {
                "Install what the endpoint needs (its folder has a README.md, `wirelab endpoints` says what can be used), and run again."
            }
            Self::ArchiveInPart { .. } => {
                "Nothing, unless the loads miss them, which their warnings then say; otherwise save the page again."
            }
            Self::BlocksRaised { .. } => "Nothing, or compare fewer cells.",
            Self::Drops { .. } => {
                "Raise the socket buffers (`udp_receive_buffer`) or the kernel's limits, or keep it as a finding."
            }
            Self::ResumptionMissed { .. } => {
                "Check that the server issues tickets, and that the client waits for them before it closes."
            }
            Self::Stolen { .. } => {
                "Run again when the host is quiet, or on a machine whose processors nobody shares; `machine_stolen_share` says which trials."
            }
            Self::BusyMachine { .. } => "Stop other work and run again.",
            Self::ConditionsChanged { .. } => "Measure again from the start before you rely on a comparison.",
            Self::EmulatorBusy { .. } => {
                "Lower the rate of the link or the load, or use a machine with more processors."
            }
            Self::Exposing { .. } => "Watch a run of a few blocks; take the numbers from a run without `--metrics`.",
            Self::Keeping { .. } => {
                "Keep it of a run of a few blocks, for looking into; take the numbers from a run without `keep`."
            }
            Self::Stopped { .. } => "Nothing; measure times in a run, or in cells, without it.",
            Self::NodeAgents => "Nothing, if you may; without `WIRELAB_KUBERNETES_NODE_AGENTS` there are none.",
            Self::Filmed { .. } => "Nothing; measure the times of loads in a run, or in cells, without `film`.",
            Self::ClientsUneven { .. } => {
                "Look at `clients` of the journal for which one; give each client a processor of its own, and nodes that are alike, or keep it as a finding."
            }
            Self::ClientsApart { .. } => "Set a longer `duration` or more `requests`, or use fewer clients.",
            Self::ScheduleLag { .. } => "Lower the rate, give the client more threads, or use a faster machine.",
        }
    }
}

fn ordinal(part: u32) -> &'static str {
    ["first", "second", "third", "fourth", "last"].get(part as usize).copied().unwrap_or("last")
}

/// Formats `2 in `a` and `b`, 50 in `c``: each value once, with the first cells that have it.
fn by_value(values: &[(String, String)]) -> String {
    const NAMED: usize = 4;
    let mut cells: IndexMap<&str, Vec<String>> = IndexMap::new();
    for (cell, value) in values {
        cells.entry(value).or_default().push(format!("`{cell}`"));
    }
    let words = cells.into_iter().map(|(value, mut cells)| {
        let more = cells.len().saturating_sub(NAMED);
        cells.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{value} in {}{more}", cells.join(" and "))
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_many_cells_have_is_named_once() {
        let cell = |number: usize| (format!("c{number}"), if number == 3 { "9" } else { "2" }.to_owned());
        let meaning = Warning::Parity { what: "threads".to_owned(), values: (0..7).map(cell).collect() }.meaning();
        assert!(meaning.ends_with(": 2 in `c0` and `c1` and `c2` and `c4` and 2 more, 9 in `c3`."), "{meaning}");
    }
}
