//! The processors on which processes may run, as the kernel shows them (`Cpus_allowed_list`, proc_pid_status(5)).

use std::collections::BTreeSet;

use wirelab_model::missing::Missing;
use wirelab_model::processors::ProcessorSet;

use crate::tree;

/// The processors on which some thread of these processes, or of their descendants, may run.
///
/// # Errors
/// If a process has ended, or `/proc` cannot be read.
pub fn allowed(roots: &[u32]) -> Result<ProcessorSet, Missing> {
    let mut allowed = BTreeSet::new();
    for (thread, pid) in tree::threads(roots)? {
        let task = tree::process(pid).and_then(|process| process.task_from_tid(thread.cast_signed()));
        // A thread may end after it was listed.
        let ranges = task.and_then(|task| task.status()).ok().and_then(|status| status.cpus_allowed_list);
        allowed.extend(ranges.into_iter().flatten().flat_map(|(first, last)| first..=last));
    }
    ProcessorSet::of(allowed).ok_or(Missing::NoAffinity)
}

#[cfg(test)]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    #[test]
    fn the_processors_of_all_threads_are_read() {
        // Other tests are threads of this process, and none of them is confined.
        let all = sched_getaffinity(None).unwrap();
        let numbers = (0..=ProcessorSet::LARGEST).filter(|number| all.is_set(*number as usize));
        let all = ProcessorSet::of(numbers).unwrap();
        std::thread::spawn(move || {
            let mut one = CpuSet::new();
            one.set(all.iter().next().unwrap() as usize);
            sched_setaffinity(None, &one).unwrap();
            assert_eq!(allowed(&[std::process::id()]), Ok(all));
        })
        .join()
        .unwrap();
    }
}
