//! Tracepoint ids, from the kernel's tracing file system.

use std::fs;
use std::io;
use std::path::Path;

/// Mount points: the current one, and that of older systems.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The folder of tracepoints. Mounts the file system at its usual place if it is not mounted, as other tracing tools
/// do.
///
/// # Errors
/// The reason for the report, with the remedy.
pub fn events() -> Result<String, String> {
    if let Some(events) = mounted()? {
        return Ok(events);
    }
    let failed = "the kernel's tracing file system is not mounted, and mounting it failed";
    let remedy = format!("Remedy: mount -t tracefs tracefs {}", MOUNTS[0]);
    mount().map_err(|error| format!("{failed}: {error}. {remedy}"))?;
    mounted()?.ok_or_else(|| format!("{failed}: the mounted folder has no tracepoints. {remedy}"))
}

/// The id of a tracepoint; `None` if this kernel does not have it.
///
/// # Errors
/// The reason for the report.
pub fn number(events: &str, tracepoint: &str) -> Result<Option<u64>, String> {
    let path = format!("{events}/{tracepoint}/id");
    match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map(Some).map_err(|_| format!("{path} holds no number")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{path} cannot be read: {error}")),
    }
}

/// The folder of tracepoints, if the file system is mounted.
fn mounted() -> Result<Option<String>, String> {
    let mut unreadable = None;
    for mount in MOUNTS {
        let events = format!("{mount}/events");
        match fs::read_dir(&events) {
            Ok(_) => return Ok(Some(events)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                unreadable = unreadable.or_else(|| {
                    let remedy = format!("run wirelab as root, or mount -o remount,mode=755 {mount}");
                    Some(format!("{events} cannot be read: {error}. Remedy: {remedy}"))
                });
            }
        }
    }
    unreadable.map_or(Ok(None), Err)
}

fn mount() -> io::Result<()> {
    if !Path::new(MOUNTS[0]).is_dir() {
        return Err(io::Error::other(format!("this kernel has no {}", MOUNTS[0])));
    }
    // SAFETY: all three strings end in zero and live through the call; this file system takes no data.
    let status = unsafe {
        libc::mount(
            c"tracefs".as_ptr(),
            c"/sys/kernel/tracing".as_ptr(),
            c"tracefs".as_ptr(),
            libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
            std::ptr::null(),
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_tracepoint_is_none_and_a_file_without_a_number_is_an_error() {
        let folder = std::env::temp_dir().join(format!("wirelab-tracefs-{}", std::process::id()));
        for (tracepoint, text) in [("good", "443\n"), ("bad", "\n")] {
            fs::create_dir_all(folder.join(tracepoint)).unwrap();
            fs::write(folder.join(tracepoint).join("id"), text).unwrap();
        }
        let number = |tracepoint: &str| number(folder.to_str().unwrap(), tracepoint);
        assert_eq!(number("good"), Ok(Some(443)));
        assert_eq!(number("none"), Ok(None));
        assert!(number("bad").unwrap_err().ends_with("holds no number"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
