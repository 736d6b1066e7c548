//! Deadlines with almost no cost while they are kept.
//!
//! Arming a timer for every request would insert it into the runtime's timer wheel and remove it again. Instead one
//! timer per lane stays armed; if it fires before the current request's deadline, it is armed again.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Instant;

use tokio::task::coop::unconstrained;
use tokio::time::{Instant as TokioInstant, Sleep, sleep_until};

/// The deadline expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

/// A timer for successive futures. Granularity: a millisecond, never early.
#[derive(Debug)]
pub struct Deadline(Pin<Box<Sleep>>);

impl Deadline {
    /// Creates a timer that is armed at its first use.
    #[must_use]
    pub fn new(first: Instant) -> Self {
        Self(Box::pin(sleep_until(first.into())))
    }

    /// Returns the future's output if it completes before `at`; otherwise drops the future.
    pub async fn guard<F: Future>(&mut self, at: Instant, future: F) -> Result<F::Output, Elapsed> {
        let at = TokioInstant::from_std(at);
        if self.0.deadline() > at {
            self.0.as_mut().reset(at);
        }
        let mut future = pin!(future);
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            // Without the runtime's budget: a future that never waits, such as the body of a flood, uses it up.
            while pin!(unconstrained(self.0.as_mut())).poll(cx).is_ready() {
                if TokioInstant::now() >= at {
                    return Poll::Ready(Err(Elapsed));
                }
                self.0.as_mut().reset(at);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn now() -> Instant {
        TokioInstant::now().into_std()
    }

    #[tokio::test]
    async fn a_future_that_uses_up_the_budget_of_its_task_is_stopped_too() {
        let mut deadline = Deadline::new(now() + Duration::from_secs(60));
        let busy = async {
            loop {
                tokio::task::coop::consume_budget().await;
            }
        };
        let ended: Result<(), Elapsed> = deadline.guard(now() + Duration::from_millis(20), busy).await;
        assert_eq!(ended, Err(Elapsed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_future_that_ends_in_time_gives_its_output_and_one_that_does_not_is_stopped_at_the_deadline() {
        let start = now();
        let mut deadline = Deadline::new(start + Duration::from_secs(1));
        let sleep = |ms| tokio::time::sleep(Duration::from_millis(ms));
        assert_eq!(deadline.guard(start + Duration::from_millis(500), sleep(100)).await, Ok(()));
        // The timer is still armed for 500 ms; a later deadline moves it.
        assert_eq!(deadline.guard(start + Duration::from_millis(900), sleep(700)).await, Ok(()));
        assert_eq!(deadline.guard(start + Duration::from_millis(1000), sleep(700)).await, Err(Elapsed));
        assert!(now() - start < Duration::from_millis(1003));
        // A deadline earlier than the armed one works too.
        let start = now();
        assert_eq!(deadline.guard(start + Duration::from_secs(60), sleep(1)).await, Ok(()));
        assert_eq!(deadline.guard(start + Duration::from_millis(50), sleep(700)).await, Err(Elapsed));
        assert!(now() - start < Duration::from_millis(53));
    }
}
