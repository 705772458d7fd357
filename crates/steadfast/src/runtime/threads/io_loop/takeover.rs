//! The takeover monitor: gives an I/O loop to a spare thread when its holder is stuck in a handler.
//!
//! The monitor is a thread that reads a timer. While handlers are polled on I/O loops, it looks every [`LOOK_INTERVAL`] at the
//! word of each loop. A loop whose word says twice in a row that the same poll is in progress is taken over, so a poll is overdue
//! after one to two intervals. After a takeover the monitor looks more often for a moment, and holders poll one handler in each
//! round: handlers that block together, on one lock for example, then cost other connections less.
//!
//! The timer is a timerfd where there are such: setting it is one system call that wakes no thread, and a holder that
//! polls handlers only now and then unsets it right after the poll. So if holders poll no handlers, or only now and
//! then, the takeover monitor does not run at all. On other systems the monitor's thread is woken by the first poll
//! and looks until there were no polls for a while.
//!
//! Spares are started in advance, one for each loop that polls handlers at the same time as others. A holder polls a handler only
//! if there are more idle spares than other holders that poll ([`TakeoverMonitor::try_begin_poll`]), so that each of them can be
//! taken over; otherwise the handler goes to the workers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use super::IoLoop;
use super::timer::LookTimer;
use crate::runtime::tokio::nanos_since_origin;

/// How often the takeover monitor checks the I/O loops. A poll of a handler is overdue after one to two intervals.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// How often the takeover monitor checks the I/O loops after a takeover, and for how long it checks that often.
const ALERT_INTERVAL: Duration = Duration::from_micros(250);
const ALERT_TIME: Duration = Duration::from_millis(20);

/// Starting a spare is not tried again for this long after the system has refused a thread.
const RETRY_START: Duration = Duration::from_secs(1);

/// Where the timer cannot be unset by a holder, the monitor stops to look after so many looks without a poll.
const IDLE_LOOKS: u32 = 25;

/// The maximum number of threads that hold a loop, wait as a spare or are stuck in a handler. If all threads for I/O
/// loops are stuck in handlers, other handlers are polled on the workers.
const MAX_THREADS: usize = 64;

/// The maximum number of spare threads that wait for an I/O loop, if there are not more loops than this; further spare
/// threads end.
const MAX_IDLE_SPARES: usize = 2;

/// The takeover monitor of the process, which watches all I/O loops.
pub(super) fn monitor() -> &'static TakeoverMonitor {
    static MONITOR: LazyLock<TakeoverMonitor> = LazyLock::new(TakeoverMonitor::new);
    &MONITOR
}

pub(super) struct TakeoverMonitor {
    loops: Mutex<Vec<Arc<IoLoop>>>,
    /// Polls in progress, without those whose loop was taken over. Never more than `idle_spares`, apart from polls that are
    /// about to be refused.
    polls: AtomicUsize,
    /// Whether the timer of the takeover monitor is set. The flag `is_watching` is changed only while `timer` is
    /// locked.
    is_watching: AtomicBool,
    timer: Mutex<LookTimer>,
    timer_set: Condvar,
    /// When a handler was last polled, in nanoseconds since the origin of the process's clock.
    last_poll: AtomicU64,
    /// The poll in progress is the first one for a while, so that the timer is not worth keeping after it.
    is_single_poll: AtomicBool,
    is_alert: AtomicBool,
    spares: Mutex<SpareThreads>,
    assigned: Condvar,
    /// Spares that wait for a loop.
    idle_spares: AtomicUsize,
    start: Once,
    /// The thread of the monitor runs. Without it there are no spares.
    is_running: AtomicBool,
}

#[derive(Default)]
struct SpareThreads {
    /// The number of threads that the takeover monitor has started to hold I/O loops, and that have not ended.
    threads: usize,
    /// How many of `threads` have been started and do not wait for a loop yet.
    starting: usize,
    /// Until then no thread is started, because the system has refused one.
    retry_at: Option<Instant>,
    /// Loops that were taken over, each with the turn of its next holder.
    assignments: VecDeque<(Arc<IoLoop>, u64)>,
}

impl TakeoverMonitor {
    fn new() -> Self {
        Self {
            loops: Mutex::default(),
            polls: AtomicUsize::new(0),
            is_watching: AtomicBool::new(false),
            timer: Mutex::new(LookTimer::new()),
            timer_set: Condvar::new(),
            last_poll: AtomicU64::new(0),
            is_single_poll: AtomicBool::new(false),
            is_alert: AtomicBool::new(false),
            spares: Mutex::default(),
            assigned: Condvar::new(),
            idle_spares: AtomicUsize::new(0),
            start: Once::new(),
            is_running: AtomicBool::new(false),
        }
    }

    /// Watches a loop from now on.
    pub(super) fn watch(&self, io_loop: &Arc<IoLoop>) {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(io_loop));
    }

    /// Whether a spare thread could take over a loop. The first call starts the monitor and a spare.
    pub(super) fn has_spare(&'static self) -> bool {
        self.start.call_once(|| {
            let thread = std::thread::Builder::new().name("steadfast-takeover".to_owned());
            if self.timer().is_available() && thread.spawn(|| self.run()).is_ok() {
                self.is_running.store(true, Ordering::SeqCst);
            }
        });
        let has_spare = self.idle_spares.load(Ordering::SeqCst) > 0;
        if !has_spare && self.is_running.load(Ordering::SeqCst) {
            self.start_spares(1);
        }
        has_spare
    }

    /// Whether a loop was taken over a moment ago.
    pub(super) fn is_alert(&self) -> bool {
        self.is_alert.load(Ordering::Relaxed)
    }

    /// A holder wants to poll a handler. Returns false if no spare thread could take over its loop, because each of them may be
    /// needed for another loop: then the handler must not be polled on the loop.
    pub(super) fn try_begin_poll(&'static self, now: Instant) -> bool {
        let polls = self.polls.fetch_add(1, Ordering::SeqCst);
        if self.idle_spares.load(Ordering::SeqCst) <= polls {
            self.polls.fetch_sub(1, Ordering::SeqCst);
            self.start_spares(polls + 1);
            return false;
        }
        let now = nanos_since_origin(now);
        let last = self.last_poll.swap(now, Ordering::Relaxed);
        let is_single = Duration::from_nanos(now.saturating_sub(last)) > LOOK_INTERVAL;
        self.is_single_poll.store(is_single, Ordering::Relaxed);
        if !self.is_watching.load(Ordering::SeqCst) {
            let mut timer = self.timer();
            timer.set(Some(LOOK_INTERVAL));
            self.is_watching.store(true, Ordering::SeqCst);
            drop(timer);
            self.timer_set.notify_one();
        }
        true
    }

    /// The poll has ended, and the loop was not taken over.
    pub(super) fn end_poll(&self) {
        let last = self.polls.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && LookTimer::CAN_BE_UNSET && self.is_single_poll.load(Ordering::Relaxed) {
            self.stop_watching();
        }
    }

    /// Unsets the timer if no handler is polled. A holder that begins to poll meanwhile either is seen here, or sees that the timer
    /// has to be set.
    fn stop_watching(&self) {
        let mut timer = self.timer();
        self.is_watching.store(false, Ordering::SeqCst);
        if self.polls.load(Ordering::SeqCst) == 0 {
            timer.set(None);
        } else {
            self.is_watching.store(true, Ordering::SeqCst);
        }
    }

    /// The main function of the takeover monitor's thread.
    fn run(&'static self) {
        let mut seen = Vec::new();
        let mut idle_looks = 0;
        let mut alert_until = None;
        loop {
            LookTimer::wait(&self.timer, &self.timer_set);
            let looked = self.look(&mut seen);
            if looked.took_over {
                self.set_alert(true);
                alert_until = Some(Instant::now() + ALERT_TIME);
            } else if alert_until.is_some_and(|until| until <= Instant::now()) {
                self.set_alert(false);
                alert_until = None;
            }
            idle_looks = if looked.any_poll { 0 } else { idle_looks + 1 };
            if alert_until.is_none() && (idle_looks > IDLE_LOOKS || LookTimer::CAN_BE_UNSET && idle_looks > 0) {
                self.stop_watching();
            }
        }
    }

    /// Checks every I/O loop once, and takes over those whose poll of a handler is overdue. `seen` has the word of
    /// each I/O loop at the previous check, and when the monitor first saw that word. Two checks may follow each other at once, if
    /// the thread of the monitor ran late, so that the time counts and not the number of checks.
    fn look(&'static self, seen: &mut Vec<(u64, Instant)>) -> LookResult {
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (now, overdue_after) = (Instant::now(), if self.is_alert() { ALERT_INTERVAL } else { LOOK_INTERVAL } / 2);
        seen.resize(loops.len(), (0, now));
        let mut looked = LookResult::default();
        for (io_loop, (seen, since)) in loops.iter().zip(seen) {
            let word = io_loop.poll.word.load(Ordering::SeqCst);
            looked.any_poll |= word != *seen || word & 1 == 1;
            if word != *seen {
                (*seen, *since) = (word, now);
            } else if word & 1 == 1 && now - *since >= overdue_after {
                looked.took_over |= self.take_over(io_loop, word);
            }
        }
        looked
    }

    /// Gives a loop to a spare thread, unless the poll has just ended. There is a spare: otherwise the poll would not have begun.
    fn take_over(&'static self, io_loop: &Arc<IoLoop>, word: u64) -> bool {
        let mut spares = self.spares();
        let Some(turn) = io_loop.poll.take_over(word) else { return false };
        // In this order: a holder that begins to poll meanwhile sees too few spares, and not too few polls.
        self.idle_spares.fetch_sub(1, Ordering::SeqCst);
        self.polls.fetch_sub(1, Ordering::SeqCst);
        spares.assignments.push_back((Arc::clone(io_loop), turn));
        drop(spares);
        self.assigned.notify_one();
        self.start_spares(1);
        true
    }

    /// Starts a spare, unless this many wait already or there are too many threads.
    fn start_spares(&'static self, wanted: usize) {
        let mut spares = self.spares();
        let is_enough = self.idle_spares.load(Ordering::SeqCst) + spares.starting >= wanted;
        let is_too_early = spares.retry_at.is_some_and(|retry_at| Instant::now() < retry_at);
        if is_enough || spares.threads >= MAX_THREADS || is_too_early {
            return;
        }
        spares.threads += 1;
        spares.starting += 1;
        spares.retry_at = None;
        drop(spares);
        let thread = std::thread::Builder::new().name("steadfast-io".to_owned());
        let started = thread.spawn(|| {
            self.spares().starting -= 1;
            self.wait_as_spare();
            self.spares().threads -= 1;
        });
        if started.is_err() {
            let mut spares = self.spares();
            spares.threads -= 1;
            spares.starting -= 1;
            spares.retry_at = Some(Instant::now() + RETRY_START);
        }
    }

    /// Holds one loop after the other, as they are taken over. Returns when enough other spare threads wait for an
    /// I/O loop to take over.
    pub(super) fn wait_as_spare(&self) {
        loop {
            let max_idle = self.loops.lock().unwrap_or_else(PoisonError::into_inner).len().max(MAX_IDLE_SPARES);
            let mut spares = self.spares();
            if self.idle_spares.load(Ordering::SeqCst) >= max_idle {
                return;
            }
            self.idle_spares.fetch_add(1, Ordering::SeqCst);
            let (io_loop, turn) = loop {
                if let Some(assignment) = spares.assignments.pop_front() {
                    break assignment;
                }
                spares = self.assigned.wait(spares).unwrap_or_else(PoisonError::into_inner);
            };
            drop(spares);
            io_loop.hold(turn);
        }
    }

    fn set_alert(&self, alert: bool) {
        self.is_alert.store(alert, Ordering::Relaxed);
        let mut timer = self.timer();
        if timer.is_set() {
            timer.set(Some(if alert { ALERT_INTERVAL } else { LOOK_INTERVAL }));
        }
    }

    fn timer(&self) -> MutexGuard<'_, LookTimer> {
        self.timer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spares(&self) -> MutexGuard<'_, SpareThreads> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of one check of all I/O loops by the takeover monitor.
#[derive(Default)]
struct LookResult {
    /// A handler is polled, or was since the look before.
    any_poll: bool,
    took_over: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holder_that_polls_needs_a_spare_of_its_own() {
        let monitor: &'static TakeoverMonitor = Box::leak(Box::new(TakeoverMonitor::new()));
        let now = Instant::now();
        monitor.idle_spares.store(1, Ordering::SeqCst);
        assert!(monitor.try_begin_poll(now));
        assert!(!monitor.try_begin_poll(now), "the only spare is for the first holder");
        // The refusal has started another spare.
        let deadline = Instant::now() + Duration::from_secs(60);
        while monitor.idle_spares.load(Ordering::SeqCst) < 2 {
            assert!(Instant::now() < deadline, "no spare was started");
            std::thread::yield_now();
        }
        assert!(monitor.try_begin_poll(now));
        assert!(!monitor.try_begin_poll(now));
        assert_eq!(monitor.polls.load(Ordering::SeqCst), 2);
    }
}
