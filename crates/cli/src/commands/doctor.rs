//! `wirelab doctor`: checks what this machine can measure, with a remedy for each gap.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;
use wirelab_browser::Browser;
use wirelab_observe::syscalls::Available;

use crate::args::DoctorArgs;
use crate::failure::Result;
use crate::output::{print, print_json};

/// The result of a check.
#[derive(Debug, Serialize)]
struct Finding {
    /// The subject of the check.
    what: &'static str,
    state: State,
    /// The observation.
    seen: String,
    /// The remedy; empty if the state is good.
    remedy: String,
}

/// The state of the machine in one respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// No restriction.
    Good,
    /// Measurements work, but are less exact or cover less.
    Limited,
    /// A kind of measurement is impossible.
    Missing,
}

/// Runs all checks and prints their results.
pub fn doctor(args: &DoctorArgs) -> Result {
    let findings = vec![
        processors(),
        load(),
        governor(),
        clock(),
        loopback(),
        udp_buffers(),
        fast_open(),
        congestion(),
        open_files(),
        clear_refs(),
        namespaces(),
        services(),
        cluster(),
        system_calls(),
        packets(),
        python(),
        browsers(),
        disk(),
    ];
    if args.json {
        return print_json(&findings);
    }
    let mut text = String::new();
    for finding in &findings {
        let mark = match finding.state {
            State::Good => "good   ",
            State::Limited => "limited",
            State::Missing => "missing",
        };
        let _ = writeln!(text, "{mark}  {}: {}", finding.what, finding.seen);
        if !finding.remedy.is_empty() {
            let _ = writeln!(text, "         remedy: {}", finding.remedy);
        }
    }
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let (good, limited, missing) = (count(State::Good), count(State::Limited), count(State::Missing));
    let _ = writeln!(text, "\n{} checks: {good} good, {limited} limited, {missing} missing.", findings.len());
    print(&text)
}

fn good(what: &'static str, seen: impl Into<String>) -> Finding {
    Finding { what, state: State::Good, seen: seen.into(), remedy: String::new() }
}

fn limited(what: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { what, state: State::Limited, seen: seen.into(), remedy: remedy.into() }
}

fn missing(what: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { what, state: State::Missing, seen: seen.into(), remedy: remedy.into() }
}

/// A file of the kernel without a usable value.
enum Unreadable {
    /// It cannot be read.
    File(String, io::Error),
    /// It holds no number.
    NoNumber(String),
}

impl From<Unreadable> for String {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::File(path, error) => format!("cannot read {path}: {error}"),
            Unreadable::NoNumber(path) => format!("{path} holds no number"),
        }
    }
}

fn read(path: &str) -> std::result::Result<String, Unreadable> {
    let text = fs::read_to_string(path).map_err(|error| Unreadable::File(path.to_owned(), error))?;
    Ok(text.trim().to_owned())
}

fn number(path: &str) -> std::result::Result<u64, Unreadable> {
    read(path)?.parse().map_err(|_| Unreadable::NoNumber(path.to_owned()))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn processors() -> Finding {
    const WHAT: &str = "processors";
    match cores() {
        1 => limited(
            WHAT,
            "1",
            "use a machine with at least two: client and server share the processor and slow each other down",
        ),
        count => good(WHAT, count.to_string()),
    }
}

fn load() -> Finding {
    const WHAT: &str = "load by other processes";
    let average = read("/proc/loadavg").ok().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    match average {
        None => limited(WHAT, "the load average cannot be read", "mount /proc"),
        Some(load) if load > 0.5 * cores() as f64 => {
            limited(WHAT, format!("load average {load:.2}"), "stop other processes before measuring")
        }
        Some(load) => good(WHAT, format!("load average {load:.2}")),
    }
}

fn governor() -> Finding {
    const WHAT: &str = "processor frequency";
    match read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") {
        Ok(name) if name == "performance" => good(WHAT, "governor performance"),
        Ok(name) => limited(
            WHAT,
            format!("governor {name}"),
            "`cpupower frequency-set -g performance` keeps the frequency constant between trials",
        ),
        Err(_) => limited(
            WHAT,
            "no governor visible (a virtual machine?)",
            "none here; interleaved blocks and the A/A pair show how stable the machine is",
        ),
    }
}

fn clock() -> Finding {
    const WHAT: &str = "clock";
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match read(SOURCE) {
        Ok(name) if matches!(name.as_str(), "tsc" | "kvm-clock" | "arch_sys_counter") => good(WHAT, name),
        Ok(name) => limited(
            WHAT,
            name,
            "use tsc (kernel parameter clocksource=tsc); this source needs a system call for each reading",
        ),
        Err(error) => limited(WHAT, error, "mount /sys"),
    }
}

fn loopback() -> Finding {
    const WHAT: &str = "loopback MTU";
    match number("/sys/class/net/lo/mtu") {
        Ok(mtu) if mtu > 1500 => limited(
            WHAT,
            format!("{mtu} bytes"),
            "`ip link set lo mtu 1500` (as root) sets the MTU of most real networks",
        ),
        Ok(mtu) => good(WHAT, format!("{mtu} bytes")),
        Err(error) => missing(WHAT, error, "mount /sys"),
    }
}

fn udp_buffers() -> Finding {
    const WHAT: &str = "UDP receive buffers (QUIC, HTTP/3)";
    match number("/proc/sys/net/core/rmem_max") {
        Ok(bytes) if bytes < 2_500_000 => limited(
            WHAT,
            format!("at most {bytes} bytes without privileges"),
            "`sysctl -w net.core.rmem_max=7500000 net.core.wmem_max=7500000`, or run as root",
        ),
        Ok(bytes) => good(WHAT, format!("up to {bytes} bytes")),
        Err(error) => missing(WHAT, error, "mount /proc"),
    }
}

fn fast_open() -> Finding {
    const WHAT: &str = "TCP Fast Open";
    match number("/proc/sys/net/ipv4/tcp_fastopen") {
        Ok(bits) if bits & 3 == 3 => good(WHAT, "client and server"),
        Ok(bits) => limited(
            WHAT,
            format!("net.ipv4.tcp_fastopen is {bits}: {}", if bits & 1 == 1 { "client only" } else { "no client" }),
            "`sysctl -w net.ipv4.tcp_fastopen=3`; until then `fast_open = true` is unsupported",
        ),
        Err(error) => missing(WHAT, error, "use a kernel with TCP Fast Open"),
    }
}

fn congestion() -> Finding {
    const WHAT: &str = "TCP congestion control";
    let available = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
    match available {
        Ok(names) if ["cubic", "bbr", "reno"].iter().all(|name| names.split(' ').any(|n| n == *name)) => {
            good(WHAT, names)
        }
        Ok(names) => limited(WHAT, names, "`modprobe tcp_bbr`; algorithms that are not listed are unsupported"),
        Err(error) => missing(WHAT, error, "mount /proc"),
    }
}

fn open_files() -> Finding {
    const WHAT: &str = "open files";
    let limit = read("/proc/self/limits").ok().and_then(|text| {
        text.lines().find(|line| line.starts_with("Max open files"))?.split_whitespace().nth(3)?.parse::<u64>().ok()
    });
    match limit {
        Some(limit) if limit < 4096 => {
            limited(WHAT, format!("at most {limit}"), "`ulimit -n 65536` for studies with many connections")
        }
        Some(limit) => good(WHAT, format!("at most {limit}")),
        None => good(WHAT, "unlimited"),
    }
}

fn clear_refs() -> Finding {
    const WHAT: &str = "peak memory of the measured window";
    match fs::write("/proc/self/clear_refs", "5") {
        Ok(()) => good(WHAT, "can be reset when the window begins"),
        Err(error) => limited(
            WHAT,
            format!("/proc/PID/clear_refs: {error}"),
            "use a kernel with CONFIG_PROC_PAGE_MONITOR; until then peaks include the start of the process",
        ),
    }
}

fn namespaces() -> Finding {
    const WHAT: &str = "network namespaces (lab netns)";
    let tried = std::env::current_exe()
        .map_err(|error| error.to_string())
        .and_then(|program| wirelab_lab::Netns::start(&program).map(drop).map_err(|error| error.to_string()));
    match tried {
        Ok(()) => good(WHAT, "can be created, connected and entered"),
        Err(error) => missing(WHAT, error, "follow the message, or use the lab loopback"),
    }
}

fn services() -> Finding {
    const WHAT: &str = "services with several servers (lab netns)";
    match wirelab_lab::netns::service::available() {
        Ok(()) => good(WHAT, "`nft` is installed; it translates addresses of services"),
        Err(error) => missing(WHAT, error.to_string(), "install `nft` (Debian: `apt-get install nftables`)"),
    }
}

fn cluster() -> Finding {
    const WHAT: &str = "cluster (lab kubernetes)";
    match wirelab_kubernetes::lacking() {
        Ok((version, lacking)) if lacking.is_empty() => {
            good(WHAT, format!("Kubernetes {version}, with all necessary rights"))
        }
        Ok((version, lacking)) => missing(
            WHAT,
            format!("Kubernetes {version}, without the rights to {}", lacking.join(", ")),
            "an administrator can bind the role that `wirelab labs rbac` prints to you",
        ),
        Err(error) => missing(WHAT, error.to_string(), "follow the message; only the lab kubernetes needs a cluster"),
    }
}

fn system_calls() -> Finding {
    const WHAT: &str = "counting system calls (observers syscalls, syscalls_by_name)";
    match wirelab_observe::syscalls::available() {
        Ok(Available::Program) => good(WHAT, "kernel tracepoints can be counted by an eBPF program"),
        Ok(Available::Counters { why }) => {
            let how = "by perf counters on every thread, which cost more";
            good(WHAT, format!("kernel tracepoints can be counted {how} ({why})"))
        }
        Err(error) => missing(
            WHAT,
            error.to_string(),
            "run as root, or with CAP_PERFMON and a readable /sys/kernel/tracing; until then use `--observe strace` in a separate run",
        ),
    }
}

fn packets() -> Finding {
    const WHAT: &str = "capturing packets (observer packets, captures)";
    match wirelab_observe::Witness::default().can_capture() {
        Ok(()) => good(WHAT, "works in network namespaces (lab netns)"),
        Err(error) => missing(
            WHAT,
            error.to_string(),
            "run as root, or with CAP_NET_RAW and CAP_SYS_ADMIN, or let users create namespaces \
             (sysctl user.max_user_namespaces=10000); a kernel with CONFIG_PACKET",
        ),
    }
}

fn python() -> Finding {
    const WHAT: &str = "python3 (endpoints in Python)";
    let version = Command::new("python3").arg("--version").stdin(Stdio::null()).output();
    match version {
        Ok(output) if output.status.success() => good(WHAT, String::from_utf8_lossy(&output.stdout).trim()),
        Ok(output) => missing(WHAT, format!("python3 --version: {}", output.status), "install Python 3.9 or newer"),
        Err(error) => missing(WHAT, error.to_string(), "install Python 3.9 or newer"),
    }
}

fn browsers() -> Finding {
    const WHAT: &str = "browsers (`wirelab page`)";
    let installed: Vec<_> =
        Browser::ALL.into_iter().filter_map(|browser| Some((browser, browser.find().ok()?))).collect();
    let missing: Vec<_> = Browser::ALL.into_iter().filter_map(|browser| browser.find().err()).collect();
    let seen: Vec<_> =
        installed.iter().map(|(browser, program)| format!("{browser} ({})", program.display())).collect();
    let remedy: Vec<_> = missing.iter().map(ToString::to_string).collect();
    match (installed.is_empty(), missing.is_empty()) {
        (false, true) => good(WHAT, seen.join(", ")),
        (false, false) => limited(WHAT, seen.join(", "), remedy.join("; ")),
        (true, _) => self::missing(WHAT, "none", remedy.join("; ")),
    }
}

fn disk() -> Finding {
    const WHAT: &str = "disk space for runs";
    let here = Path::new(".");
    let output = Command::new("df").args(["-Pk", "."]).stdin(Stdio::null()).output();
    let free = output.ok().and_then(|output| {
        String::from_utf8_lossy(&output.stdout).lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok()
    });
    let writable = create_and_remove_file(here);
    match (free, writable) {
        (_, Err(error)) => missing(WHAT, format!("this folder is not writable: {error}"), "use --out DIR"),
        (Some(kib), _) if kib < 1 << 20 => {
            limited(WHAT, format!("{} MiB free here", kib >> 10), "free some space, or use --out DIR")
        }
        (Some(kib), _) => good(WHAT, format!("{} GiB free here", kib >> 20)),
        (None, _) => limited(WHAT, "the free space is unknown", "check it with `df`"),
    }
}

/// Creates and removes a file in the folder, to test whether it is writable.
fn create_and_remove_file(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".wirelab-doctor-{}", std::process::id()));
    fs::File::create_new(&path)?;
    fs::remove_file(&path)
}
