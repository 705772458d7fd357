//! Sleeps, timeouts and backoff in the time of the [`Runtime`], which is virtual in a simulator.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use steadfast_proto::Moment;

use super::Runtime;

/// Sleeps for `duration`.
pub(crate) async fn sleep(runtime: &dyn Runtime, duration: Duration) {
    sleep_until(runtime, runtime.now() + duration).await;
}

/// Sleeps until `when`.
pub(crate) async fn sleep_until(runtime: &dyn Runtime, when: Moment) {
    if when <= runtime.now() {
        return;
    }
    let mut timer = runtime.timer();
    timer.reset(Some(when));
    std::future::poll_fn(|cx| timer.poll(cx)).await;
}

/// The output of `work`; `None` if it is not ready before the deadline.
pub(crate) async fn timeout_at<T>(
    runtime: &dyn Runtime,
    deadline: Option<Moment>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut timer = runtime.timer();
    timer.reset(deadline);
    unless_stopped(std::future::poll_fn(|cx| timer.poll(cx)), work).await
}

/// The output of `work`; `None` if `stop` is ready first. If both are ready, the output counts.
pub(crate) async fn unless_stopped<T>(stop: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let (mut stop, mut work) = (pin!(stop), pin!(work));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        Pin::new(&mut stop).poll(cx).map(|()| None)
    })
    .await
}

/// Returns the delay before a retry, which is `first` doubled for each failed attempt, and at most `max`.
pub(crate) fn exponential_backoff(first: Duration, failures: u32, max: Duration) -> Duration {
    first.saturating_mul(1 << failures.min(20)).min(max)
}

/// A random delay between half of `delay` and all of it, so that many clients do not retry at the same moment.
pub(crate) fn with_jitter(runtime: &dyn Runtime, delay: Duration) -> Duration {
    let mut random = [0_u8; 1];
    // Without random numbers, all of it.
    match runtime.fill_random(&mut random) {
        Ok(()) => delay / 2 + delay.mul_f64(f64::from(random[0]) / 512.0),
        Err(_) => delay,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_maximum() {
        let delay = |failures| exponential_backoff(Duration::from_millis(3), failures, Duration::from_secs(1));
        assert_eq!([delay(0), delay(1), delay(4)], [3, 6, 48].map(Duration::from_millis));
        assert_eq!([delay(9), delay(u32::MAX)], [Duration::from_secs(1); 2]);
        assert_eq!(exponential_backoff(Duration::MAX, 5, Duration::MAX), Duration::MAX);
    }

    #[tokio::test]
    async fn work_that_is_ready_when_it_is_stopped_counts() {
        assert_eq!(unless_stopped(std::future::ready(()), std::future::ready(7)).await, Some(7));
        assert_eq!(unless_stopped(std::future::ready(()), std::future::pending::<()>()).await, None);
    }
}
