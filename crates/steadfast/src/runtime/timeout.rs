//! Waiting, in the time of the [`Runtime`]: virtual in a simulator.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use steadfast_proto::Moment;

use super::Runtime;

/// Waits for so long.
pub(crate) async fn sleep(runtime: &dyn Runtime, duration: Duration) {
    sleep_until(runtime, runtime.now() + duration).await;
}

/// Waits until then.
pub(crate) async fn sleep_until(runtime: &dyn Runtime, when: Moment) {
    if when <= runtime.now() {
        return;
    }
    let mut timer = runtime.timer();
    timer.reset(Some(when));
    std::future::poll_fn(|cx| timer.poll(cx)).await;
}

/// What the work comes to, if it does before the deadline.
pub(crate) async fn before<T>(
    runtime: &dyn Runtime,
    deadline: Option<Moment>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut timer = runtime.timer();
    timer.reset(deadline);
    unless(std::future::poll_fn(|cx| timer.poll(cx)), work).await
}

/// What the work comes to, unless something else happens first. Work that is done when it happens is done.
pub(crate) async fn unless<T>(stop: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let (mut stop, mut work) = (pin!(stop), pin!(work));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        Pin::new(&mut stop).poll(cx).map(|()| None)
    })
    .await
}

/// A pause that doubles each time, up to a ceiling.
pub(crate) fn doubled(first: Duration, times: u32, ceiling: Duration) -> Duration {
    first.saturating_mul(1 << times.min(20)).min(ceiling)
}

/// Between half of it and all of it, so that many do not come back at the same moment.
pub(crate) fn jittered(runtime: &dyn Runtime, pause: Duration) -> Duration {
    let mut random = [0_u8; 1];
    // Without random numbers, all of it.
    match runtime.fill_random(&mut random) {
        Ok(()) => pause / 2 + pause.mul_f64(f64::from(random[0]) / 512.0),
        Err(_) => pause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_ceiling_however_often() {
        let pause = |times| doubled(Duration::from_millis(3), times, Duration::from_secs(1));
        assert_eq!([pause(0), pause(1), pause(4)], [3, 6, 48].map(Duration::from_millis));
        assert_eq!([pause(9), pause(u32::MAX)], [Duration::from_secs(1); 2]);
        assert_eq!(doubled(Duration::MAX, 5, Duration::MAX), Duration::MAX);
    }

    #[tokio::test]
    async fn work_that_is_done_when_it_is_stopped_is_done() {
        assert_eq!(unless(std::future::ready(()), std::future::ready(7)).await, Some(7));
        assert_eq!(unless(std::future::ready(()), std::future::pending::<()>()).await, None);
    }
}
