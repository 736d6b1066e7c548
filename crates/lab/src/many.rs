//! Parallel execution of tasks that mostly wait.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Number of parallel tasks: hides most of the waiting without crowding an API server, which accepts a few dozen
/// requests per client.
const AT_ONCE: usize = 16;

/// Runs `work` on every item in parallel; the results are in item order.
///
/// # Errors
/// The error of the first item, in item order, that failed. After a failure no further items start, and successful
/// results are dropped.
pub fn each<T: Send, R: Send, E: Send>(items: Vec<T>, work: impl Fn(T) -> Result<R, E> + Sync) -> Result<Vec<R>, E> {
    let done = Mutex::new(Vec::with_capacity(items.len()));
    spread(items.into_iter().enumerate().collect(), |(number, item)| {
        let result = work(item);
        let continues = result.is_ok();
        done.lock().expect("nothing panics with the lock").push((number, result));
        continues
    });
    let mut done = done.into_inner().expect("nothing panics with the lock");
    done.sort_by_key(|(number, _)| *number);
    let (mut succeeded, mut failed) = (Vec::new(), None);
    for (_, result) in done {
        match result {
            Ok(result) => succeeded.push(result),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    match failed {
        None => Ok(succeeded),
        Some(error) => {
            drop_all(succeeded);
            Err(error)
        }
    }
}

/// Drops the items in parallel, for items whose drop takes time.
pub fn drop_all<T: Send>(items: Vec<T>) {
    spread(items, |item| {
        drop(item);
        true
    });
}

/// Runs `work` on the items in parallel, until it returns false. The calling thread works, too, so all is done even
/// where the system refuses more threads.
fn spread<T: Send>(items: Vec<T>, work: impl Fn(T) -> bool + Sync) {
    let workers = AT_ONCE.min(items.len());
    let waiting = Mutex::new(items.into_iter());
    let stopped = AtomicBool::new(false);
    let worker = || {
        while !stopped.load(Ordering::Relaxed) {
            let next = waiting.lock().expect("nothing panics with the lock").next();
            let Some(item) = next else { return };
            if !work(item) {
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers {
            if thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn items_run_in_parallel_with_results_in_order() {
        // The barrier opens only if this many tasks run in parallel.
        let barrier = Barrier::new(AT_ONCE);
        let doubled = each((0..3 * AT_ONCE).collect(), |number| {
            barrier.wait();
            Ok::<_, ()>(2 * number)
        });
        assert_eq!(doubled.unwrap(), (0..3 * AT_ONCE).map(|number| 2 * number).collect::<Vec<_>>());
        assert_eq!(each(Vec::<u8>::new(), Ok::<_, ()>).unwrap(), Vec::<u8>::new());
    }

    #[test]
    fn after_a_failure_no_item_starts() {
        // Each worker begins at most one item, because every item fails.
        let begun = AtomicUsize::new(0);
        let outcome = each((0..100 * AT_ONCE).collect(), |number| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(number)
        });
        assert_eq!(outcome.unwrap_err(), 0, "the first in item order");
        assert!(begun.into_inner() <= AT_ONCE);
    }

    /// Its drop returns only when this many drops run in parallel.
    struct SlowDrop<'a>(&'a Barrier);

    impl Drop for SlowDrop<'_> {
        fn drop(&mut self) {
            self.0.wait();
        }
    }

    #[test]
    fn slow_drops_run_in_parallel_also_after_a_failure() {
        let barrier = Barrier::new(AT_ONCE);
        drop_all((0..2 * AT_ONCE).map(|_| SlowDrop(&barrier)).collect());

        // The last item fails only after all others have succeeded.
        let succeeded = AtomicUsize::new(0);
        let outcome = each((0..=AT_ONCE).collect(), |number| {
            if number < AT_ONCE {
                succeeded.fetch_add(1, Ordering::Relaxed);
                return Ok(SlowDrop(&barrier));
            }
            while succeeded.load(Ordering::Relaxed) < AT_ONCE {
                thread::yield_now();
            }
            Err("the last")
        });
        assert_eq!(outcome.err(), Some("the last"));
    }
}
