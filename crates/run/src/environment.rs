//! Reads the description of the machine. Unreadable facts are absent, with a reason in the record.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wirelab_model::environment::Environment;
use wirelab_model::warning::Warning;

/// Kernel parameters that affect the protocols, below `/proc/sys`.
const SYSCTLS: [&str; 30] = [
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.core.optmem_max",
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.udp_mem",
    "kernel.sched_rt_runtime_us",
];

/// Load per processor above which a machine counts as busy.
const BUSY: f64 = 0.5;

/// Reads the description of this machine.
#[must_use]
pub fn read() -> Environment {
    let mut notes = Notes::default();
    let cpuinfo = notes.file("cpu", "/proc/cpuinfo").unwrap_or_default();
    let cores = std::thread::available_parallelism();
    let cpu_model = cpu_model(&cpuinfo, &mut notes);
    let processors = Path::new("/sys/devices/system/cpu");
    let caches = notes.entries("caches", &processors.join("cpu0/cache"), cache);
    let mitigations = notes.entries("mitigations", &processors.join("vulnerabilities"), mitigation);
    let hypervisor = hypervisor(&cpuinfo, &mut notes);
    let mut sysctls = IndexMap::new();
    for name in SYSCTLS {
        if let Some(value) = notes.file(name, &format!("/proc/sys/{}", name.replace('.', "/"))) {
            // Values such as tcp_rmem are separated by tabs.
            sysctls.insert(name.to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    for (name, path) in [("lo.mtu", "/sys/class/net/lo/mtu"), ("cpu.smt", "/sys/devices/system/cpu/smt/active")] {
        if let Some(value) = notes.file(name, path) {
            sysctls.insert(name.to_owned(), value);
        }
    }
    Environment {
        wirelab: format!(
            "{} ({} build)",
            env!("CARGO_PKG_VERSION"),
            if cfg!(debug_assertions) { "debug" } else { "release" }
        ),
        // Known to the program only.
        commit: None,
        kernel: kernel(&mut notes),
        system: notes.field("system", "/etc/os-release", "PRETTY_NAME", '=').unwrap_or_default(),
        cpu: cpu(&cpuinfo, &mut notes),
        cpu_model,
        caches,
        mitigations,
        cores: match &cores {
            Ok(cores) => u32::try_from(cores.get()).unwrap_or(u32::MAX),
            Err(error) => {
                notes.unknown("cores", format!("the number of usable processors cannot be read: {error}"));
                0
            }
        },
        governor: notes.file("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        hypervisor,
        memory: memory(&mut notes),
        clock_source: notes.file("clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_step_ns: clock_step(&mut notes),
        load_average: load_average(&mut notes),
        congestion_controls: notes
            .file("congestion_controls", "/proc/sys/net/ipv4/tcp_available_congestion_control")
            .map(|list| list.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        sysctls,
        unknown: notes.0,
    }
}

/// Warnings of a report about a run in this environment.
#[must_use]
pub fn warnings(environment: &Environment) -> Vec<Warning> {
    match environment.load_average {
        Some(load) if environment.cores > 0 && load > BUSY * f64::from(environment.cores) => {
            vec![Warning::BusyMachine { load, cores: environment.cores }]
        }
        _ => Vec::new(),
    }
}

/// Differences between two environments that make numbers incomparable.
#[must_use]
pub fn differences(before: &Environment, now: &Environment) -> Vec<String> {
    let differs = |what: &str, before: &dyn ToString, now: &dyn ToString| {
        let (before, now) = (before.to_string(), now.to_string());
        (before != now).then(|| format!("{what} was `{before}` and is `{now}`"))
    };
    let governor = |environment: &Environment| environment.governor.clone().unwrap_or_else(|| "unknown".to_owned());
    // Older records lack some facts.
    let differs_if_known = |what: &str, before: &Option<String>, now: &Option<String>| match (before, now) {
        (Some(before), Some(now)) => differs(what, before, now),
        _ => None,
    };
    [
        differs("wirelab", &before.wirelab, &now.wirelab),
        differs_if_known("wirelab's commit", &before.commit, &now.commit),
        differs("the kernel", &before.kernel, &now.kernel),
        differs("the processor", &before.cpu, &now.cpu),
        differs_if_known("the processor's model", &before.cpu_model, &now.cpu_model),
        differs("the number of processors", &before.cores, &now.cores),
        differs("the frequency governor", &governor(before), &governor(now)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Reasons for missing facts.
#[derive(Default)]
struct Notes(IndexMap<String, String>);

impl Notes {
    fn unknown(&mut self, fact: &str, why: String) {
        self.0.insert(fact.to_owned(), why);
    }

    /// Trimmed content of a small file.
    fn file(&mut self, fact: &str, path: &str) -> Option<String> {
        match fs::read_to_string(path) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(error) => {
                self.unknown(fact, format!("`{path}` cannot be read: {error}"));
                None
            }
        }
    }

    /// The `fact` of each entry of a folder, in the order of their names.
    fn entries(
        &mut self,
        name: &str,
        folder: &Path,
        fact: fn(&Path) -> Option<(String, String)>,
    ) -> IndexMap<String, String> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.unknown(name, format!("`{}` cannot be read: {error}", folder.display()));
                return IndexMap::new();
            }
        };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().filter_map(|path| fact(path)).collect()
    }

    /// Value of `NAME: value` or `NAME=value` in a file, without quotes.
    fn field(&mut self, fact: &str, path: &str, name: &str, separator: char) -> Option<String> {
        let text = self.file(fact, path)?;
        let value = field(&text, name, separator);
        if value.is_none() {
            self.unknown(fact, format!("`{path}` has no `{name}`"));
        }
        value
    }
}

fn field(text: &str, name: &str, separator: char) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once(separator));
    lines
        .map(|(key, value)| (key.trim(), value.trim()))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.trim_matches('"').to_owned())
}

fn kernel(notes: &mut Notes) -> String {
    let name = notes.file("kernel", "/proc/sys/kernel/ostype");
    let release = notes.file("kernel", "/proc/sys/kernel/osrelease");
    [name, release].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn cpu(cpuinfo: &str, notes: &mut Notes) -> String {
    // x86 has `model name`; Arm's kernel has only numbers.
    let name = field(cpuinfo, "model name", ':')
        .or_else(|| field(cpuinfo, "CPU part", ':').map(|part| format!("Arm part {part}")));
    name.unwrap_or_else(|| {
        notes.unknown("cpu", "`/proc/cpuinfo` has neither `model name` nor `CPU part`".to_owned());
        String::new()
    })
}

/// `family 25, model 17, stepping 1, microcode 0x1000065`; on Arm the implementer, variant, part and revision.
fn cpu_model(cpuinfo: &str, notes: &mut Notes) -> Option<String> {
    const NAMES: [(&str, &str); 8] = [
        ("family", "cpu family"),
        ("model", "model"),
        ("stepping", "stepping"),
        ("microcode", "microcode"),
        ("implementer", "CPU implementer"),
        ("variant", "CPU variant"),
        ("part", "CPU part"),
        ("revision", "CPU revision"),
    ];
    let known = NAMES.iter().filter_map(|(name, key)| Some(format!("{name} {}", field(cpuinfo, key, ':')?)));
    let known = known.collect::<Vec<_>>().join(", ");
    if known.is_empty() {
        notes.unknown("cpu_model", "`/proc/cpuinfo` has no numbers of the processor's model".to_owned());
        return None;
    }
    Some(known)
}

/// `L1 Data` and `32K` of a folder such as `/sys/devices/system/cpu/cpu0/cache/index0`.
fn cache(folder: &Path) -> Option<(String, String)> {
    let of = |name: &str| fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned());
    Some((format!("L{} {}", of("level")?, of("type")?), of("size")?))
}

/// A weakness that this processor has, and what the kernel does about it.
fn mitigation(path: &Path) -> Option<(String, String)> {
    let state = fs::read_to_string(path).ok()?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    (state.trim() != "Not affected").then(|| (name, state.trim().to_owned()))
}

/// Product name of the hypervisor, if the processor's flag reports one.
fn hypervisor(cpuinfo: &str, notes: &mut Notes) -> Option<String> {
    let Some(flags) = field(cpuinfo, "flags", ':') else {
        notes.unknown("hypervisor", "the processor does not list its flags".to_owned());
        return None;
    };
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return None;
    }
    let product = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| fs::read_to_string(Path::new("/sys/class/dmi/id").join(name)).ok())
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    Some(if product.is_empty() { "yes (its product is not named)".to_owned() } else { product })
}

fn memory(notes: &mut Notes) -> u64 {
    let total = notes.field("memory", "/proc/meminfo", "MemTotal", ':');
    let kib =
        total.as_deref().and_then(|text| text.strip_suffix("kB")).and_then(|text| text.trim().parse::<u64>().ok());
    if total.is_some() && kib.is_none() {
        notes.unknown("memory", "`MemTotal` of `/proc/meminfo` is not in kB".to_owned());
    }
    kib.unwrap_or(0) * 1024
}

fn load_average(notes: &mut Notes) -> Option<f64> {
    let text = notes.file("load_average", "/proc/loadavg")?;
    let load = text.split_whitespace().next().and_then(|first| first.parse().ok());
    if load.is_none() {
        notes.unknown("load_average", format!("`/proc/loadavg` holds `{text}`"));
    }
    load
}

/// The smallest step between two readings of the monotonic clock: its resolution or the cost of reading it, whichever
/// is larger. Smaller time differences are meaningless.
fn clock_step(notes: &mut Notes) -> u64 {
    let mut smallest = Duration::MAX;
    let mut before = Instant::now();
    for _ in 0..100_000 {
        let now = Instant::now();
        let step = now - before;
        if !step.is_zero() {
            smallest = smallest.min(step);
            before = now;
        }
    }
    if smallest == Duration::MAX {
        notes.unknown("clock_step_ns", "the clock did not move while it was read 100,000 times".to_owned());
        return 0;
    }
    u64::try_from(smallest.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn every_fact_of_this_machine_is_known_or_its_absence_explained() {
        let environment = read();
        assert!(environment.cores > 0 && environment.memory > 1 << 20, "{environment:?}");
        assert!(environment.kernel.starts_with("Linux "), "{}", environment.kernel);
        assert!(environment.clock_step_ns > 0 && environment.clock_step_ns < 1_000_000_000);
        for (fact, known) in [
            ("governor", environment.governor.is_some()),
            ("clock_source", environment.clock_source.is_some()),
            ("load_average", environment.load_average.is_some()),
            ("system", !environment.system.is_empty()),
            ("cpu", !environment.cpu.is_empty()),
            ("cpu_model", environment.cpu_model.is_some()),
        ] {
            assert!(known != environment.unknown.contains_key(fact), "{fact}: {environment:?}");
        }
        for name in SYSCTLS {
            assert!(environment.sysctls.contains_key(name) != environment.unknown.contains_key(name), "{name}");
        }
        assert!(environment.unknown.values().all(|why| !why.is_empty()));
    }

    #[test]
    fn a_machine_with_half_its_processors_at_work_is_called_busy() {
        let at = |load| Environment { cores: 4, load_average: Some(load), ..Environment::default() };
        assert_eq!(warnings(&at(2.0)), []);
        assert_eq!(warnings(&at(2.1)), [Warning::BusyMachine { load: 2.1, cores: 4 }]);
    }

    #[test]
    fn a_change_of_kernel_is_named_with_both_versions() {
        let before = Environment { kernel: "Linux 6.1".to_owned(), ..Environment::default() };
        let now = Environment { kernel: "Linux 6.2".to_owned(), load_average: Some(3.0), ..Environment::default() };
        assert_eq!(differences(&before, &now), ["the kernel was `Linux 6.1` and is `Linux 6.2`"]);
    }

    #[test]
    fn fields_are_read_with_spaces_and_quotes_around_them() {
        assert_eq!(field("a : 1\nmodel name\t: X Y\n", "model name", ':'), Some("X Y".to_owned()));
        assert_eq!(field("PRETTY_NAME=\"Debian 13\"", "PRETTY_NAME", '='), Some("Debian 13".to_owned()));
    }

    #[test]
    fn a_processor_is_described_by_what_its_kernel_says() {
        let model = |cpuinfo: &str| cpu_model(cpuinfo, &mut Notes::default());
        let x86 = "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\nmicrocode\t: 0x1000065\n";
        assert_eq!(model(x86).as_deref(), Some("family 25, model 17, stepping 1, microcode 0x1000065"));
        let arm = "CPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
        assert_eq!(model(arm).as_deref(), Some("implementer 0x41, variant 0x3, part 0xd0c, revision 1"));
        assert_eq!(model("processor\t: 0\n"), None);

        let folder = tempfile::tempdir().unwrap();
        for (name, state) in [("spectre_v2", "Mitigation: Retpolines\n"), ("mds", "Not affected\n")] {
            fs::write(folder.path().join(name), state).unwrap();
        }
        let mut notes = Notes::default();
        let found = notes.entries("mitigations", folder.path(), mitigation);
        assert_eq!(found, [("spectre_v2".to_owned(), "Mitigation: Retpolines".to_owned())].into());
        let index = folder.path().join("index0");
        fs::create_dir(&index).unwrap();
        for (name, value) in [("level", "1\n"), ("type", "Data\n"), ("size", "32K\n")] {
            fs::write(index.join(name), value).unwrap();
        }
        assert_eq!(cache(&index), Some(("L1 Data".to_owned(), "32K".to_owned())));
        assert!(notes.entries("caches", &folder.path().join("absent"), cache).is_empty());
        assert!(notes.0["caches"].contains("cannot be read"), "{:?}", notes.0);
    }
}
