//! Both tasks, polled by hand, in a time of their own.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicUsize;

use steadfast_proto::connection::Limits;

use super::*;
use crate::runtime::RuntimeTask;

#[derive(Default)]
struct Clock(Mutex<Moment>);

impl Clock {
    fn pass(&self, time: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = *now + time;
    }
}

struct OnTime(Arc<Clock>);

impl Runtime for OnTime {
    fn now(&self) -> Moment {
        *self.0.0.lock().unwrap()
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Alarm { clock: Arc::clone(&self.0), when: None })
    }

    fn spawn(&self, _task: RuntimeTask) {}

    fn spawn_thread(&self, _job: Box<dyn FnOnce() + Send>) {}
}

struct Alarm {
    clock: Arc<Clock>,
    when: Option<Moment>,
}

impl Timer for Alarm {
    fn reset(&mut self, when: Option<Moment>) {
        self.when = when;
    }

    fn poll(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        let now = *self.clock.0.lock().unwrap();
        if self.when.take_if(|when| *when <= now).is_some() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// What a driver does, and did.
#[derive(Default)]
struct Record {
    polls: AtomicUsize,
    busy: AtomicUsize,
    ends: AtomicUsize,
    panics: AtomicUsize,
    dropped: AtomicUsize,
    deaf: AtomicUsize,
    neglected: AtomicUsize,
}

struct Fake(Arc<Record>);

impl Future for Fake {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        self.0.polls.fetch_add(1, Ordering::SeqCst);
        assert_eq!(self.0.panics.load(Ordering::SeqCst), 0, "as it does");
        if self.0.ends.load(Ordering::SeqCst) > 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl MigratableDriver for Fake {
    fn leave_runtime(&mut self) -> bool {
        true
    }

    fn was_busy(&mut self) -> bool {
        self.0.busy.swap(0, Ordering::SeqCst) > 0
    }

    fn was_heard(&mut self) -> bool {
        self.0.deaf.load(Ordering::SeqCst) == 0
    }

    fn is_neglected(&self) -> bool {
        self.0.neglected.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

struct World {
    clock: Arc<Clock>,
    mailbox: Arc<DriverMailbox>,
    record: Arc<Record>,
    apart: Option<IoThreadDriverTask<Fake>>,
    among: Option<WorkerDriverTask<Fake>>,
}

impl World {
    /// In the runtime that this is called in, with both tasks polled once.
    fn new() -> Self {
        let (clock, record) = (Arc::new(Clock::default()), Arc::new(Record::default()));
        let runtime: Arc<dyn Runtime> = Arc::new(OnTime(Arc::clone(&clock)));
        let mailbox = DriverMailbox::new(&Limits::default(), None);
        let (apart, among) = tasks(Fake(Arc::clone(&record)), &mailbox, &runtime, &Handle::current());
        let mut world = Self { clock, mailbox, record, apart: Some(apart), among: Some(among) };
        assert!(!world.poll_among() && !world.poll_apart());
        world
    }

    /// One whose driver is with the workers.
    fn on_workers() -> Self {
        let mut world = Self::new();
        world.call(IN_TURN, Duration::ZERO);
        assert!(!world.poll_among());
        assert!(world.is_polled_by_workers());
        world
    }

    fn poll_apart(&mut self) -> bool {
        let apart = Pin::new(self.apart.as_mut().unwrap());
        apart.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn poll_among(&mut self) -> bool {
        let among = Pin::new(self.among.as_mut().unwrap());
        among.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// So many calls, that long one after the other.
    fn call(&mut self, calls: u32, each: Duration) {
        for _ in 0..calls {
            self.mailbox.callers().unwrap().note();
            self.clock.pass(each);
            assert!(!self.poll_apart());
        }
    }

    fn polls(&self) -> usize {
        self.record.polls.load(Ordering::SeqCst)
    }

    fn is_polled_by_workers(&mut self) -> bool {
        let before = self.polls();
        assert!(!self.poll_among());
        self.polls() > before
    }

    fn is_polled_apart(&mut self) -> bool {
        let before = self.polls();
        assert!(!self.poll_apart());
        self.polls() > before
    }
}

#[tokio::test]
async fn a_driver_that_is_called_in_turn_and_quickly_goes_to_the_workers() {
    let mut world = World::on_workers();
    assert!(!world.is_polled_apart());
}

#[tokio::test]
async fn one_that_is_called_slowly_stays() {
    let mut world = World::new();
    world.call(4 * IN_TURN, 2 * WITHIN / IN_TURN);
    assert!(world.is_polled_apart() && !world.is_polled_by_workers());
}

#[tokio::test]
async fn one_that_is_busy_stays() {
    let mut world = World::new();
    for _ in 0..4 * IN_TURN {
        world.record.busy.store(1, Ordering::SeqCst);
        world.call(1, Duration::ZERO);
    }
    assert!(world.is_polled_apart() && !world.is_polled_by_workers());
}

#[tokio::test]
async fn one_that_is_called_from_elsewhere_stays() {
    let mut world = World::new();
    for _ in 0..4 {
        world.call(IN_TURN - 1, Duration::ZERO);
        std::thread::scope(|scope| scope.spawn(|| world.mailbox.callers().unwrap().note()).join()).unwrap();
    }
    assert!(world.is_polled_apart() && !world.is_polled_by_workers());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_outside_of_the_workers_is_elsewhere() {
    // A test is no task.
    let mut world = World::new();
    world.call(4 * IN_TURN, Duration::ZERO);
    assert!(world.is_polled_apart() && !world.is_polled_by_workers());
}

#[tokio::test]
async fn one_that_is_busy_comes_back() {
    let mut world = World::on_workers();
    world.record.busy.store(1, Ordering::SeqCst);
    assert!(!world.poll_among());
    assert!(world.is_polled_apart() && !world.is_polled_by_workers());
}

/// L6: blocked workers keep nothing from being seen.
#[tokio::test]
async fn workers_that_do_not_poll_it_lose_it_with_the_second_look() {
    let mut world = World::on_workers();
    world.clock.pass(CHECK_INTERVAL);
    // They have polled it since the last look.
    assert!(!world.is_polled_apart());
    world.clock.pass(CHECK_INTERVAL);
    assert!(world.is_polled_apart() && !world.is_polled_by_workers());
}

/// L6: a runtime that is too busy to look at its descriptors may poll it all the same.
#[tokio::test]
async fn workers_on_which_nothing_is_heard_lose_it_though_they_poll_it() {
    let mut world = World::on_workers();
    world.record.deaf.store(1, Ordering::SeqCst);
    for _ in 0..2 {
        assert!(!world.is_polled_apart());
        assert!(world.is_polled_by_workers());
        world.clock.pass(CHECK_INTERVAL);
    }
    assert!(world.is_polled_apart() && !world.is_polled_by_workers());
}

#[tokio::test]
async fn one_that_was_neglected_stays_for_a_while_and_for_longer_each_time() {
    let mut world = World::on_workers();
    for stay in [STAY, 2 * STAY, 4 * STAY] {
        world.record.neglected.store(1, Ordering::SeqCst);
        for _ in 0..2 {
            world.clock.pass(CHECK_INTERVAL);
            assert!(!world.poll_apart());
        }
        assert!(!world.is_polled_by_workers());
        world.clock.pass(stay.saturating_sub(CHECK_INTERVAL));
        world.call(2 * IN_TURN, Duration::ZERO);
        assert!(!world.is_polled_by_workers(), "it stays for {stay:?}");
        world.clock.pass(CHECK_INTERVAL);
        world.call(2 * IN_TURN, Duration::ZERO);
        assert!(world.is_polled_by_workers());
    }
}

#[tokio::test]
async fn workers_that_poll_it_keep_it_however_long() {
    let mut world = World::on_workers();
    for _ in 0..100 {
        assert!(world.is_polled_by_workers());
        world.clock.pass(CHECK_INTERVAL);
        assert!(!world.is_polled_apart());
    }
}

#[tokio::test]
async fn it_goes_to_the_workers_again_when_it_is_called_in_turn_again() {
    let mut world = World::on_workers();
    for _ in 0..2 {
        world.clock.pass(CHECK_INTERVAL);
        assert!(!world.poll_apart());
    }
    assert!(!world.is_polled_by_workers());
    world.call(IN_TURN, Duration::ZERO);
    assert!(world.is_polled_by_workers());
}

#[tokio::test]
async fn it_stays_when_the_runtime_of_the_workers_goes() {
    let mut world = World::on_workers();
    world.among = None;
    assert!(world.is_polled_apart());
    world.call(4 * IN_TURN, Duration::ZERO);
    assert!(world.is_polled_apart());
}

#[test]
fn a_runtime_that_watches_no_descriptors_never_has_it() {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let mut world = World::new();
        world.call(IN_TURN, Duration::ZERO);
        let before = world.polls();
        assert!(world.poll_among(), "its task has ended");
        assert_eq!(world.polls(), before);
        assert!(world.is_polled_apart());
    });
}

#[tokio::test]
async fn one_that_ends_with_the_workers_is_over_for_both() {
    let mut world = World::on_workers();
    world.record.ends.store(1, Ordering::SeqCst);
    assert!(world.poll_among() && world.poll_apart());
    assert_eq!(world.record.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn one_that_ends_apart_is_over_for_both() {
    let mut world = World::new();
    world.record.ends.store(1, Ordering::SeqCst);
    assert!(world.poll_apart() && world.poll_among());
    assert_eq!(world.record.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn one_that_panics_with_the_workers_is_over() {
    let mut world = World::on_workers();
    world.record.panics.store(1, Ordering::SeqCst);
    std::panic::catch_unwind(AssertUnwindSafe(|| world.poll_among())).unwrap_err();
    // As a runtime does with a task that panicked.
    world.among = None;
    assert!(world.poll_apart());
    assert_eq!(world.record.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn it_goes_with_the_thread_of_drivers_wherever_it_is() {
    for mut world in [World::new(), World::on_workers()] {
        world.apart = None;
        assert!(world.poll_among());
        assert_eq!(world.record.dropped.load(Ordering::SeqCst), 1);
    }
}
