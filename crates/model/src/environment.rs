//! The record of a run's machine. Absolute numbers are comparable only between runs with the same record.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Facts about the machine that can change a number. An unreadable fact is absent, and `unknown` gives the reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// wirelab's version and build profile.
    pub wirelab: String,
    /// The commit that wirelab was built from, with `, modified` if the sources differed from it; absent if the build
    /// did not know it, and in records before 2026-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The kernel, as from `uname -sr`.
    pub kernel: String,
    /// The distribution's name.
    pub system: String,
    /// The processor's name.
    pub cpu: String,
    /// The processor's family, model, stepping and microcode, because several models may have one name; absent in
    /// records before 2026-11-25, as are the caches and the mitigations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Sizes of the caches that the first processor uses, by level and type.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub caches: IndexMap<String, String>,
    /// The kernel's measure against each weakness of the processor. It can double the time of a system call.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub mitigations: IndexMap<String, String>,
    /// Number of processors that wirelab may use.
    pub cores: u32,
    /// The frequency governor.
    pub governor: Option<String>,
    /// The hypervisor, if the processor reports one.
    pub hypervisor: Option<String>,
    /// Memory in bytes.
    pub memory: u64,
    /// The clock source of the kernel.
    pub clock_source: Option<String>,
    /// The smallest observed step of the monotonic clock, in nanoseconds.
    pub clock_step_ns: u64,
    /// The one-minute load average at the start of the run.
    pub load_average: Option<f64>,
    /// Kernel parameters that affect the protocols, by name.
    pub sysctls: IndexMap<String, String>,
    /// The congestion controls that the kernel offers.
    pub congestion_controls: Vec<String>,
    /// Unreadable facts by name, each with the reason.
    pub unknown: IndexMap<String, String>,
}
