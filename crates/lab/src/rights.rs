//! The rights of root that programs of others do without.

use std::io;

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};

/// Rights over the whole machine (capabilities(7)): mounts and namespaces, modules of the kernel, devices, the clock,
/// the files of other users, programs in the kernel, and the machine's logs. A program keeps its rights over its own
/// files, its network, its user and its sockets.
const WITHHELD: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_BOOT)
    .union(CapabilitySet::SYS_TIME)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SYS_PACCT)
    .union(CapabilitySet::SYS_TTY_CONFIG)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::AUDIT_CONTROL)
    .union(CapabilitySet::AUDIT_READ)
    .union(CapabilitySet::MAC_ADMIN)
    .union(CapabilitySet::MAC_OVERRIDE)
    .union(CapabilitySet::WAKE_ALARM)
    .union(CapabilitySet::BLOCK_SUSPEND);

/// Gives up these rights, for this thread and what it starts, also if that belongs to root and is set-user-ID. Makes
/// system calls only, so it may be called between fork and exec.
///
/// # Errors
/// If the kernel refuses.
pub fn withhold() -> io::Result<()> {
    let mut held = capabilities(None)?;
    if !held.permitted.intersects(WITHHELD) {
        return Ok(());
    }
    for right in WITHHELD.iter() {
        match remove_capability_from_bounding_set(right) {
            // An older kernel does not have this right. Without the right to change the set, a program that belongs
            // to root cannot be prevented from having them.
            Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for set in [&mut held.effective, &mut held.permitted, &mut held.inheritable] {
        set.remove(WITHHELD);
    }
    Ok(set_capabilities(None, held)?)
}
