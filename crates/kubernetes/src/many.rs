//! The same for many pods, several at a time: nearly all of it is waiting for the API server.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use wirelab_lab::LabError;

/// So many at a time: most of the wait is gone, and an API server that lets a client have a few dozen requests at once is not crowded.
const AT_ONCE: usize = 16;

/// Does the work for each of these; the results are in their order.
///
/// # Errors
/// That of the first of them that failed. What had not begun by then is not begun.
pub(crate) fn each<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R, LabError> + Sync,
) -> Result<Vec<R>, LabError> {
    let workers = AT_ONCE.min(items.len());
    let waiting = Mutex::new(items.into_iter().enumerate());
    let done = Mutex::new(Vec::new());
    let has_failed = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while !has_failed.load(Ordering::Relaxed) {
                    let next = waiting.lock().expect("nothing panics with the lock").next();
                    let Some((number, item)) = next else { return };
                    let result = work(item);
                    has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    done.lock().expect("nothing panics with the lock").push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("nothing panics with the lock");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn the_work_is_done_for_several_at_a_time_and_its_results_are_in_order() {
        // Nobody gets past it unless so many work at the same time.
        let together = Barrier::new(AT_ONCE);
        let doubled = each((0..3 * AT_ONCE).collect(), |number| {
            together.wait();
            Ok(2 * number)
        });
        assert_eq!(doubled.unwrap(), (0..3 * AT_ONCE).map(|number| 2 * number).collect::<Vec<_>>());
        assert_eq!(each(Vec::<u8>::new(), Ok).unwrap(), Vec::<u8>::new());
    }

    #[test]
    fn after_a_failure_nothing_is_begun() {
        let begun = AtomicUsize::new(0);
        let outcome = each((0..100 * AT_ONCE).collect(), |number| {
            begun.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
            if number == 0 { Err(LabError("the first".to_owned())) } else { Ok(()) }
        });
        assert_eq!(outcome.unwrap_err().0, "the first");
        assert!(begun.into_inner() < 100 * AT_ONCE, "all were begun");
    }
}
