//! Warnings: rules of measurement that a trial or a run violated, each with its meaning and a remedy.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::path::PathProperty;
use crate::spec::Congestion;

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
    /// Compared cells differ in the largest payload of a packet.
    PacketSizes {
        /// The sending side: `client` or `server`.
        side: String,
        /// Payload by cell label.
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
        metric: String,
        /// Change from first to last trial, as a share of the median.
        change: f64,
    },
    /// A link or path changed between its measurements.
    LinkChanged {
        /// The placement, with the hosts if it has any.
        link: String,
        what: PathProperty,
        /// The first measurement, as a phrase.
        from: String,
        /// The most different measurement, as a phrase.
        to: String,
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
    /// Warm-ups reached their longest time before response times were steady.
    NotWarmedUp {
        /// The cell's label.
        cell: String,
        /// Trials whose response times were still changing.
        changing: u32,
        /// Trials with too few or too noisy requests to tell.
        cannot_tell: u32,
        /// Number of trials.
        of: u32,
    },
    /// A closed loop spent a considerable part of its time in few requests, which percentiles hide.
    Stalls {
        /// The cell's label; absent: a load without cells.
        cell: Option<String>,
        /// Share of the service time of all requests.
        share: f64,
    },
    /// Values of a table resemble the values in the rows before them.
    RowsDepend {
        metric: String,
        /// Rank correlation of consecutive values of a cell.
        correlation: f64,
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
    /// The client is a program of the user.
    OwnClient {
        /// The labels of the cells.
        cells: Vec<String>,
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
    /// The study names processors, but the lab does not control them.
    ProcessorsNotControlled {
        /// The cell's label.
        cell: String,
        /// The setting `cpus`.
        cpus: String,
        lab: String,
    },
    /// The two sides have different processors, but of one core.
    CoreShared {
        /// The cell's label.
        cell: String,
    },
    /// Other work used the machine at the start of the run.
    BusyMachine {
        /// Load average over one minute.
        load: f64,
        /// Processors.
        cores: u32,
    },
    /// The built-in endpoints were compiled without optimisation.
    NotOptimised,
    /// The kernel forbids the default congestion control to this user, so all cells have another one.
    CongestionReplaced {
        /// The default.
        wanted: Congestion,
        /// The algorithm of all cells.
        used: Congestion,
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
    /// Records of the journal are damaged.
    DamagedRecords {
        /// Their lines in the journal, from 1.
        lines: Vec<u64>,
    },
    /// The journal has more than one record of a trial.
    RepeatedRecords {
        /// The lines of the superfluous records, from 1.
        lines: Vec<u64>,
    },
    /// Files of samples are missing, unreadable or changed.
    DamagedFiles {
        /// The files, relative to the run folder.
        files: Vec<String>,
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
                "In `{cell}` the client used {:.0} % of its processor time: the numbers show the limit of the client, not of the server or the protocol.",
                share * 100.0
            ),
            Self::LoopbackMtu { mtu } => format!(
                "The loopback interface has an MTU of {mtu} bytes instead of the usual 1500: costs per packet are far lower than in a network."
            ),
            Self::Parity { what, values } => {
                format!("Compared cells differ in `{what}`, which is not a factor of the study: {}.", by_value(values))
            }
            Self::PacketSizes { side, values } => format!(
                "The largest packets of the {side} differ between compared cells: their payload is at most {}. The cost per byte depends on the packets' size.",
                by_value(values)
            ),
            Self::AaDiffers { cell, ratio } => format!(
                "The two halves of the A/A pair `{cell}` differ significantly (ratio {ratio:.3}) although they are equal: an uncontrolled influence changes between trials."
            ),
            Self::Drift { cell, metric, change } => format!(
                "`{metric}` of `{cell}` changed by {:+.1} % from the first to the last trial: the machine was not in a steady state.",
                change * 100.0
            ),
            Self::LinkChanged { link, what, from, to } => format!(
                "Between measurements of the link `{link}` its {what} changed from {from} to {to}: trials before and after met different conditions."
            ),
            Self::NotStationary { cell, slowest, fastest, ratio } => format!(
                "In `{cell}` the median response time is {ratio:.2} times as long in the {} fifth of the measured window as in the {}: its percentiles mix two states.",
                ordinal(*slowest),
                ordinal(*fastest)
            ),
            Self::NotWarmedUp { cell, changing, cannot_tell, of } => {
                let known = [(*changing, "response times were still changing"), (*cannot_tell, "requests were too few or too noisy to tell")];
                let parts = known.iter().filter(|(trials, _)| *trials > 0);
                let parts: Vec<_> = parts.map(|(trials, what)| format!("in {trials} of {of} trials {what}")).collect();
                format!("The warm-up of `{cell}` ended at its longest time without a steady state: {}.", parts.join(", and "))
            }
            Self::Stalls { cell, share } => {
                let requests =
                    cell.as_ref().map_or_else(|| "Requests".to_owned(), |cell| format!("In `{cell}` requests"));
                format!(
                    "{requests} that took more than ten times the P99 used {:.0} % of the clients' time: a closed loop sends nothing meanwhile, so its percentiles hide these stalls.",
                    share * 100.0
                )
            }
            Self::RowsDepend { metric, correlation } => format!(
                "`{metric}` depends on the order of the rows (correlation of consecutive values of a cell {correlation:.2}): the rows are sorted by it, or conditions changed while they were measured. Intervals are then too narrow and P is too small; if the levels were measured one after the other, the change appears as a difference between them."
            ),
            Self::TrialsFailed { cell, failed, of, reason } => {
                format!(
                    "{failed} of {of} trials of `{cell}` failed. Estimates cover completed trials only; comparisons rank failures of the cell's endpoints as worst. Most frequent reason: {reason}."
                )
            }
            Self::RequestsFailed { cell, share, kind } => format!(
                "{:.2} % of the requests of `{cell}` failed, mostly with `{kind}`. Percentiles rank them as slower than every success; mean, minimum and maximum exclude them.",
                share * 100.0
            ),
            Self::OwnClient { cells } => format!(
                "The client is your program: `{}`. The measured window includes its start, and wirelab cannot check the response times that it prints.",
                cells.join("`, `")
            ),
            Self::TooFewBlocks { blocks, needed } => {
                let noun = if *blocks == 1 { "block" } else { "blocks" };
                format!("{blocks} complete {noun}; {needed} needed. All results are preliminary.")
            }
            Self::NoPlace { lab, cells, why } => format!(
                "Omitted, because the lab `{lab}` does not support it: `{}`. Reason: {why}.",
                cells.join("`, `")
            ),
            Self::EndpointMissing { endpoint, levels, why } => format!(
                "Omitted, because the endpoint `{endpoint}` cannot be used: `{}`. Reason: {why}.",
                levels.join("`, `")
            ),
            Self::ArchiveInPart { page, what } => {
                format!("Entries of the archive `{page}` get no answer: {}.", what.join(", "))
            }
            Self::BlocksRaised { from, to, comparisons } => format!(
                "The minimum number of blocks was raised from {from} to {to}: fewer cannot reach significance for {comparisons} comparisons under Holm's correction."
            ),
            Self::Drops { cell, counter, count } => {
                format!("The kernel counted {count} drops ({counter}) during trials of `{cell}`.")
            }
            Self::Stolen { trials, of, largest } => format!(
                "In {trials} of {of} trials the hypervisor took more than 2 % of the processor time, up to {:.0} %: timings may be inflated by the hypervisor.",
                largest * 100.0
            ),
            Self::ResumptionMissed { cell, wanted, share } => {
                format!("Only {:.1} % of the connections of `{cell}` were `{wanted}` as configured.", share * 100.0)
            }
            Self::ProcessorsNotControlled { cell, cpus, lab } => format!(
                "`{cell}` sets `cpus` to {cpus}, but the lab `{lab}` does not control processors: it is not known where client and server ran."
            ),
            Self::CoreShared { cell } => format!(
                "In `{cell}` client and server ran on two processors of one physical core (hyperthreads): each slowed the other."
            ),
            Self::BusyMachine { load, cores } => {
                format!(
                    "The load average was {load:.1} on {cores} processors at the start of the run: other work used the machine."
                )
            }
            Self::NotOptimised => {
                "wirelab was compiled without optimisation: its built-in endpoints take several times the processor time of a release.".to_owned()
            }
            Self::CongestionReplaced { wanted, used } => format!(
                "The kernel forbids the congestion control `{}`, the default, to this user: every cell uses `{}` instead.",
                wanted.token(),
                used.token()
            ),
            Self::ConditionsChanged { what } => format!(
                "The run was resumed under changed conditions: {}. Trials before and after the change are not comparable.",
                what.join("; ")
            ),
            Self::EmulatorBusy { cell, share } => format!(
                "In `{cell}` the link emulator used up to {:.0} % of a processor: it may have delayed packets and slowed other processes.",
                share * 100.0
            ),
            Self::DamagedRecords { lines } => {
                format!("Lines of the journal that do not have their checksum are not used: {}.", list(lines))
            }
            Self::RepeatedRecords { lines } => {
                format!("Lines of the journal that repeat an earlier trial are not used: {}.", list(lines))
            }
            Self::DamagedFiles { files } => format!(
                "Files of samples are missing or damaged, so the report has no distributions of their cells: {}.",
                list(files)
            ),
            Self::Exposing { without } => {
                let shown = "Prometheus scraped the trials while requests were measured: clients counted each request once more, and each scrape took processor time.";
                match without.as_slice() {
                    [] => shown.to_owned(),
                    without => format!("{shown} Endpoints without metrics: {}.", without.join(", ")),
                }
            }
            Self::Keeping { what } => {
                format!(
                    "Trials wrote files during the measured window ({what}): this slows trials down to different degrees."
                )
            }
            Self::Stopped { cell, observer } => format!(
                "In `{cell}` the observer `{observer}` stopped client and server at every system call: only its counts are measured there."
            ),
            Self::NodeAgents => {
                "Privileged pods (node agents) counted packets or system calls on the nodes of client and servers."
                    .to_owned()
            }
            Self::Filmed { cell } => format!(
                "In `{cell}` the browser's window was filmed, which slows loads down: only the Speed Index is measured there, and it is comparable with other films only."
            ),
            Self::ClientsUneven { cell, what, share } => format!(
                "In `{cell}` the {what} of one client was {:.0} % of that of another, although all had the same share of the workload: the merged numbers describe a mixture.",
                share * 100.0
            ),
            Self::ClientsApart { cell, share } => format!(
                "In `{cell}` the clients started up to {:.1} % of the measured window apart: the load was incomplete at its start and end.",
                share * 100.0
            ),
            Self::ScheduleLag { cell, p99_ns } => format!(
                "In `{cell}` 1 % of the requests started more than {:.2} ms late: the client did not keep its schedule.",
                p99_ns / 1e6
            ),
        }
    }

    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::ClientBound { .. } => {
                "Give the client more threads (`client_threads`), or lower its load with `rate` or `workers`."
            }
            Self::LoopbackMtu { .. } => "Use a lab with an MTU of 1500 for conclusions about real networks.",
            Self::Parity { .. } => {
                "Set it in `[workload]`, make it a factor, or interpret the comparison as one of whole implementations."
            }
            Self::PacketSizes { .. } => {
                "Use a link with an MTU of 1500, or raise `max_udp_payload` to the size that the link carries."
            }
            Self::AaDiffers { .. } => {
                "Stop other work on the machine, run more blocks, and treat differences of this size with caution."
            }
            Self::Drift { .. } => "Warm up the machine, stop other work on it, or run longer.",
            Self::LinkChanged { .. } => {
                "None, if the intervals are narrow enough: blocks spread a change over all cells. Otherwise run more blocks, or at a quieter time."
            }
            Self::NotStationary { .. } => {
                "Raise `warm_up` until the change lies before the window, or lengthen `duration` until its share of the window is negligible."
            }
            Self::NotWarmedUp { .. } => {
                "Raise its longest time (`warm_up = \"until steady within 20 s\"`), or make the machine quieter; the label of the percentiles says whether the window is stationary."
            }
            Self::Stalls { .. } => {
                "Measure with an open loop (`rate`), whose percentiles count the requests that a stall delays; `response_max` shows the longest one."
            }
            Self::RowsDepend { .. } => {
                "Measure again in blocks, one value of every level in random order, and name the column of blocks."
            }
            Self::TrialsFailed { .. } => "Read the logs of the trials named in the journal.",
            Self::RequestsFailed { .. } => {
                "Check the kinds of errors. Raise time-outs or buffers only if the failures are not the result of interest."
            }
            Self::OwnClient { .. } => {
                "Compare times of one program only. Send so many requests that its start takes a small part of the window."
            }
            Self::TooFewBlocks { .. } => "Choose a preset with more blocks, or raise `blocks.min`.",
            Self::NoPlace { .. } => {
                "None, if the remaining cells suffice. Otherwise use another lab (`wirelab labs` lists them), or change the cells according to the reason."
            }
            Self::EndpointMissing { .. } => {
                "Install the requirements of the endpoint (see its README.md; `wirelab endpoints` lists usable endpoints), and run again."
            }
            Self::ArchiveInPart { .. } => {
                "None, unless warnings name loads that miss these entries; then save the page again."
            }
            Self::BlocksRaised { .. } => "None; compare fewer cells to need fewer blocks.",
            Self::Drops { .. } => {
                "Raise the socket buffers (`udp_receive_buffer`) or the kernel's limits, or report the drops as a result."
            }
            Self::ResumptionMissed { .. } => {
                "Check that the server issues tickets and that the client waits for them before it closes."
            }
            Self::Stolen { .. } => {
                "Run again on a quiet host or on dedicated processors; the metric `machine_stolen_share` shows the affected trials."
            }
            Self::ProcessorsNotControlled { .. } => {
                "Use the lab `loopback` or `netns`, or give the pods processors of their own by the cluster's CPU manager."
            }
            Self::CoreShared { .. } => "Use a machine with more cores, or set `cpus = \"shared\"`.",
            Self::BusyMachine { .. } => "Stop other work and run again.",
            Self::NotOptimised => {
                "Build with `make build`, without another `opt-level` in a configuration of cargo, and run again."
            }
            Self::CongestionReplaced { .. } => {
                "Run as root, or add the algorithm to the sysctl `net.ipv4.tcp_allowed_congestion_control`; `congestion` in the study chooses one on purpose."
            }
            Self::DamagedRecords { .. } => {
                "Restore the journal from a copy, or repeat the lost trials with `wirelab resume`."
            }
            Self::RepeatedRecords { .. } => "Restore the journal from a copy: only wirelab may write to it.",
            Self::DamagedFiles { .. } => "Restore the files from a copy, or repeat the run.",
            Self::ConditionsChanged { .. } => "Repeat the run from the start before you rely on a comparison.",
            Self::EmulatorBusy { .. } => {
                "Lower the rate of the link or the load, or use a machine with more processors."
            }
            Self::Exposing { .. } => "Use `--metrics` for a short run; take the numbers from a run without it.",
            Self::Keeping { .. } => {
                "Use `keep` for a short run, as a diagnostic; take the numbers from a run without it."
            }
            Self::Stopped { .. } => "None; measure times in a run or in cells without this observer.",
            Self::NodeAgents => {
                "None, if the cluster permits it; without `WIRELAB_KUBERNETES_NODE_AGENTS` wirelab starts no privileged pods."
            }
            Self::Filmed { .. } => "None; measure load times in a run or in cells without `film`.",
            Self::ClientsUneven { .. } => {
                "Check `clients` in the journal. Give each client its own processor and equal nodes, or report the difference as a result."
            }
            Self::ClientsApart { .. } => "Set a longer `duration` or more `requests`, or use fewer clients.",
            Self::ScheduleLag { .. } => "Lower the rate, give the client more threads, or use a faster machine.",
        }
    }
}

/// The name of a fifth of the measured window, 0 for the first: `first` to `last`.
#[must_use]
pub fn ordinal(part: u32) -> &'static str {
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

/// The first items with commas, and the number of the others.
fn list(items: &[impl ToString]) -> String {
    const NAMED: usize = 8;
    let named: Vec<_> = items.iter().take(NAMED).map(ToString::to_string).collect();
    match items.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
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
