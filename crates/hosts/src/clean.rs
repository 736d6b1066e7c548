//! Removes what earlier runs left on hosts, for example after a reboot.

use std::time::{Duration, Instant};

use wirelab_agent::{Call, HOLDER};
use wirelab_lab::LabError;

use crate::inventory::Inventory;
use crate::ssh::Ssh;

/// Time-out for a host.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Prints each folder of a run of this user whose agent has ended, and removes it unless the first argument is `list`.
/// The number of an ended agent may belong to another process by now, so its command line is compared.
const SCRIPT: &str = r#"
for folder in "${TMPDIR:-/tmp}"/wirelab-????????; do
    [ -O "$folder" ] && [ -f "$folder/wirelab" ] || continue
    holder=$(cat "$folder/HOLDER" 2>/dev/null)
    if [ -n "$holder" ] && tr '\0' ' ' < "/proc/$holder/cmdline" 2>/dev/null | grep -qF "$folder"; then continue; fi
    [ "$0" = list ] || rm -rf "$folder"
    printf 'wirelab-left %s\n' "$folder"
done"#;

/// A folder that an earlier run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Name of its host.
    pub host: String,
    /// Path there.
    pub folder: String,
}

/// Removes the folders that ended runs left on the hosts; with `dry_run` only lists them.
///
/// # Errors
/// If a host cannot be reached.
pub fn clean(inventory: &Inventory, dry_run: bool) -> Result<Vec<Left>, LabError> {
    let mut left = Vec::new();
    for host in &inventory.host {
        let script = SCRIPT.replace("HOLDER", HOLDER);
        let session = Ssh::single(&host.ssh).start(&["sh", "-c", &script, if dry_run { "list" } else { "remove" }])?;
        let mut call = Call::over(Box::new(session), format!("the clean-up of {}", host.name()), Vec::new());
        let answer = call.answer(Instant::now() + TIMEOUT)?;
        let answer = answer.ok_or_else(|| LabError::process(format!("{} did not answer in time", host.name())))?;
        let text = String::from_utf8_lossy(&answer).into_owned();
        let folders = text.lines().filter_map(|line| line.strip_prefix("wirelab-left "));
        left.extend(folders.map(|folder| Left { host: host.name().to_owned(), folder: folder.to_owned() }));
    }
    Ok(left)
}
