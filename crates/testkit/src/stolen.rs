//! Steal time: processor time that the host of a virtual machine took.

use std::fs;

/// Ticks of all processors, and the stolen ones among them (proc_stat(5)).
#[derive(Debug, Clone, Copy)]
pub struct ProcessorTime {
    all: u64,
    stolen: u64,
}

impl ProcessorTime {
    /// The ticks since the machine started.
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").expect("proc is mounted");
        let fields = text.lines().next().unwrap_or_default().split_ascii_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = fields.map(|field| field.parse().expect("a number of ticks")).collect();
        Self { all: ticks.iter().sum(), stolen: ticks[7] }
    }

    /// The ticks since an earlier moment.
    pub fn since(self) -> Self {
        let now = Self::now();
        Self { all: now.all - self.all, stolen: now.stolen - self.stolen }
    }

    /// Whether the host took at most 2 %, so that measurements are valid.
    pub fn is_ours(self) -> bool {
        self.stolen * 50 <= self.all
    }
}
