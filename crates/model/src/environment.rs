//! The record of the machine that a run was made on. Absolute numbers are comparable only within one such record.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Everything about the machine that can change a number. A fact that could not be read is absent, and `unknown` says why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// wirelab's version, and its build profile.
    pub wirelab: String,
    /// The kernel, as `uname -sr`.
    pub kernel: String,
    /// The distribution's name.
    pub system: String,
    /// The processor's name.
    pub cpu: String,
    /// Processors that wirelab may use.
    pub cores: u32,
    /// The frequency governor.
    pub governor: Option<String>,
    /// The hypervisor, if the processor says that it runs under one.
    pub hypervisor: Option<String>,
    /// Bytes of memory.
    pub memory: u64,
    /// The clock source of the kernel.
    pub clock_source: Option<String>,
    /// The smallest step of the monotonic clock that was seen, in nanoseconds.
    pub clock_step_ns: u64,
    /// The load average over one minute when the run began.
    pub load_average: Option<f64>,
    /// Kernel parameters that bear on the protocols, by name.
    pub sysctls: IndexMap<String, String>,
    /// The congestion controls that the kernel offers.
    pub congestion_controls: Vec<String>,
    /// What could not be read, and why.
    pub unknown: IndexMap<String, String>,
}
