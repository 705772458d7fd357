//! The timer of the takeover monitor: a timerfd where there are such, and the monitor's own sleep elsewhere.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A timer that fires again and again while it is set.
#[cfg(target_os = "linux")]
pub(super) struct LookTimer {
    /// `None` if the system provides none; then no loop is watched, and the monitor has no spares.
    descriptor: Option<std::sync::Arc<std::os::fd::OwnedFd>>,
    interval: Option<Duration>,
}

#[cfg(target_os = "linux")]
impl LookTimer {
    /// Whether unsetting the timer keeps the monitor from running.
    pub(super) const CAN_BE_UNSET: bool = true;

    pub(super) fn new() -> Self {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok().map(std::sync::Arc::new);
        Self { descriptor, interval: None }
    }

    pub(super) fn is_available(&self) -> bool {
        self.descriptor.is_some()
    }

    pub(super) fn is_set(&self) -> bool {
        self.interval.is_some()
    }

    pub(super) fn set(&mut self, interval: Option<Duration>) {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        if self.interval == interval {
            return;
        }
        self.interval = interval;
        let nanos = interval.map_or(0, |interval| interval.subsec_nanos());
        let time = Timespec { tv_sec: 0, tv_nsec: nanos.into() };
        if let Some(descriptor) = &self.descriptor {
            // Fails for invalid arguments only.
            let _ = timerfd_settime(
                descriptor,
                TimerfdTimerFlags::empty(),
                &Itimerspec { it_interval: time, it_value: time },
            );
        }
    }

    /// Blocks the thread of the takeover monitor until the timer fires.
    pub(super) fn wait(timer: &Mutex<Self>, _set: &Condvar) {
        let descriptor = timer.lock().unwrap_or_else(PoisonError::into_inner).descriptor.clone();
        // Without a descriptor the monitor is not started.
        let Some(descriptor) = descriptor else { return std::thread::park() };
        let mut expirations = [0; 8];
        if let Err(error) = rustix::io::read(&*descriptor, &mut expirations)
            && error != rustix::io::Errno::INTR
        {
            // Does not happen to a timer; without this pause the loop would spin if it did.
            std::thread::sleep(super::takeover::LOOK_INTERVAL);
        }
    }
}

/// A timer that fires again and again while it is set.
#[cfg(not(target_os = "linux"))]
pub(super) struct LookTimer {
    interval: Option<Duration>,
}

#[cfg(not(target_os = "linux"))]
impl LookTimer {
    /// Whether unsetting the timer keeps the monitor from running.
    pub(super) const CAN_BE_UNSET: bool = false;

    pub(super) fn new() -> Self {
        Self { interval: None }
    }

    pub(super) fn is_available(&self) -> bool {
        true
    }

    pub(super) fn is_set(&self) -> bool {
        self.interval.is_some()
    }

    pub(super) fn set(&mut self, interval: Option<Duration>) {
        self.interval = interval;
    }

    /// Blocks the thread of the takeover monitor until the timer fires.
    pub(super) fn wait(timer: &Mutex<Self>, set: &Condvar) {
        let mut timer = timer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(interval) = timer.interval {
                drop(timer);
                return std::thread::sleep(interval);
            }
            timer = set.wait(timer).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
