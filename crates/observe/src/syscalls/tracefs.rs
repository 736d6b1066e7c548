//! Tracepoint ids, from the kernel's tracing file system.

use std::fs;
use std::io;
use std::path::Path;

use wirelab_model::missing::Missing;

/// Mount points: the current one, and that of older systems.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The folder of tracepoints. Mounts the file system at its usual place if it is not mounted, as other tracing tools
/// do.
///
/// # Errors
/// If it cannot be mounted or read.
pub fn events() -> Result<String, Missing> {
    if let Some(events) = mounted()? {
        return Ok(events);
    }
    let failed = |error: io::Error| Missing::NotPermitted {
        attempt: "the kernel's tracing file system is not mounted, and mounting it failed".to_owned(),
        cause: error.into(),
        remedy: format!("mount -t tracefs tracefs {}", MOUNTS[0]),
    };
    mount().map_err(failed)?;
    mounted()?.ok_or_else(|| failed(io::Error::other("the mounted folder has no tracepoints")))
}

/// The id of a tracepoint; `None` if this kernel does not have it.
///
/// # Errors
/// If its file cannot be read, or holds no number.
pub fn number(events: &str, tracepoint: &str) -> Result<Option<u64>, Missing> {
    let path = format!("{events}/{tracepoint}/id");
    let read = fs::read_to_string(&path).and_then(|text| text.trim().parse().map_err(io::Error::other));
    match read {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Missing::unreadable(path, error)),
    }
}

/// The folder of tracepoints, if the file system is mounted.
fn mounted() -> Result<Option<String>, Missing> {
    let mut unreadable = None;
    for mount in MOUNTS {
        let events = format!("{mount}/events");
        match fs::read_dir(&events) {
            Ok(_) => return Ok(Some(events)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                unreadable.get_or_insert_with(|| Missing::NotPermitted {
                    attempt: format!("{events} cannot be read"),
                    cause: error.into(),
                    remedy: format!("run wirelab as root, or mount -o remount,mode=755 {mount}"),
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
        assert!(matches!(number("bad"), Err(Missing::Unreadable { .. })));
        fs::remove_dir_all(&folder).unwrap();
    }
}
