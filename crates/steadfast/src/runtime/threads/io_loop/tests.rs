use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::ThreadId;

use super::*;

/// Far longer than anything here takes: a test that would hang fails.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A handler that is a function, and where it was called.
struct TestHandler<F> {
    function: F,
    workers: Option<Handle>,
    called: mpsc::Sender<CalledOn>,
    spawn_panics: bool,
}

/// Panics with a payload whose destructor panics too.
fn panic_with_a_payload_that_panics() {
    struct PanicOnDrop;
    impl Drop for PanicOnDrop {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("in the destructor"));
        }
    }
    std::panic::resume_unwind(Box::new(PanicOnDrop));
}

#[derive(Debug, PartialEq)]
enum CalledOn {
    IoLoop(ThreadId),
    Worker,
    /// A worker of a runtime that is not the handler's.
    ForeignWorker,
    Spawned,
}

impl<F: FnOnce() + Send> QueuedHandler for TestHandler<F> {
    fn poll_on_io_loop(self: Box<Self>) {
        self.called.send(CalledOn::IoLoop(std::thread::current().id())).unwrap();
        (self.function)();
    }

    fn poll_on_worker(self: Box<Self>) {
        let is_own = self.workers.as_ref().is_some_and(|workers| workers.id() == Handle::current().id());
        self.called.send(if is_own { CalledOn::Worker } else { CalledOn::ForeignWorker }).unwrap();
        (self.function)();
    }

    fn spawn(self: Box<Self>) {
        self.called.send(CalledOn::Spawned).unwrap();
        if self.spawn_panics {
            panic_with_a_payload_that_panics();
        }
    }

    fn user_runtime(&self) -> Option<&Handle> {
        self.workers.as_ref()
    }
}

/// The tests share the spare threads of the process, and each needs one that the others do not take.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An I/O loop of its own for each test: loops are watched and never end.
fn io_loop() -> Arc<IoLoop> {
    wait_for_spare();
    IoLoop::start().unwrap()
}

/// Waits until a handler would be polled on a loop.
fn wait_for_spare() {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !takeover::monitor().has_spare() {
        assert!(Instant::now() < deadline, "no spare thread was started");
        std::thread::yield_now();
    }
}

fn quick_history() -> Arc<FirstPollHistory> {
    let history = Arc::new(FirstPollHistory::default());
    (0..64).for_each(|_| history.record(Duration::from_micros(1), true));
    history
}

/// Queues a handler as a driver does: from a task on the loop.
fn queue(
    io_loop: &Arc<IoLoop>,
    history: &Arc<FirstPollHistory>,
    function: impl FnOnce() + Send + 'static,
) -> mpsc::Receiver<CalledOn> {
    let (called, receiver) = mpsc::channel();
    let (queued_on, history) = (Arc::clone(io_loop), Arc::clone(history));
    drop(io_loop.handle().spawn(async move {
        queued_on.poll_soon(history, Box::new(TestHandler { function, workers: None, called, spawn_panics: false }));
    }));
    receiver
}

/// Whether the loop runs its tasks and its timers.
fn assert_alive(io_loop: &IoLoop) {
    let (sender, receiver) = mpsc::channel();
    drop(io_loop.handle().spawn(async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        sender.send(()).unwrap();
    }));
    receiver.recv_timeout(TEST_TIMEOUT).expect("the loop should run its tasks");
}

#[test]
fn quick_handlers_are_polled_on_the_thread_of_the_loop() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    let (sender, threads) = mpsc::channel();
    drop(io_loop.handle().spawn(async move { sender.send(std::thread::current().id()).unwrap() }));
    let holder = threads.recv_timeout(TEST_TIMEOUT).unwrap();
    for _ in 0..100 {
        let called = queue(&io_loop, &quick_history(), || {}).recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!(called, CalledOn::IoLoop(holder));
    }
}

#[test]
fn a_handler_is_polled_outside_of_the_runtime_of_the_loop() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    let (sender, outside) = mpsc::channel();
    let _called = queue(&io_loop, &quick_history(), move || sender.send(Handle::try_current().is_err()).unwrap());
    assert!(outside.recv_timeout(TEST_TIMEOUT).unwrap());
}

#[test]
fn a_handler_that_blocks_loses_the_loop_to_another_thread() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    let (release, released) = mpsc::channel::<()>();
    let called = queue(&io_loop, &quick_history(), move || released.recv().unwrap_or_default());
    assert!(matches!(called.recv_timeout(TEST_TIMEOUT).unwrap(), CalledOn::IoLoop(_)));
    assert_alive(&io_loop);
    // Quick handlers are still polled on the loop, and the thread that was stuck does no harm when it returns.
    wait_for_spare();
    assert!(matches!(queue(&io_loop, &quick_history(), || {}).recv_timeout(TEST_TIMEOUT), Ok(CalledOn::IoLoop(_))));
    drop(release);
    assert_alive(&io_loop);
}

#[test]
fn handlers_that_block_together_are_taken_over_one_after_the_other() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    let lock = Arc::new(Mutex::new(()));
    let held = lock.lock().unwrap();
    let called: Vec<_> = (0..16)
        .map(|_| {
            let lock = Arc::clone(&lock);
            queue(&io_loop, &quick_history(), move || drop(lock.lock()))
        })
        .collect();
    for called in called {
        called.recv_timeout(TEST_TIMEOUT).expect("each handler should be polled or spawned");
    }
    assert_alive(&io_loop);
    drop(held);
    assert_alive(&io_loop);
}

#[test]
fn what_is_queued_behind_a_handler_that_blocks_is_judged_again() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    let history = quick_history();
    let (release, released) = mpsc::channel::<()>();
    let (called, receiver) = mpsc::channel();
    let (queued_on, same) = (Arc::clone(&io_loop), Arc::clone(&history));
    drop(io_loop.handle().spawn(async move {
        let first = move || released.recv().unwrap_or_default();
        let handler = TestHandler { function: first, workers: None, called: called.clone(), spawn_panics: false };
        queued_on.poll_soon(Arc::clone(&same), Box::new(handler));
        for _ in 0..3 {
            let handler = TestHandler { function: || {}, workers: None, called: called.clone(), spawn_panics: false };
            queued_on.poll_soon(Arc::clone(&same), Box::new(handler));
        }
    }));
    let all: Vec<_> = (0..4).map(|_| receiver.recv_timeout(TEST_TIMEOUT).unwrap()).collect();
    assert!(matches!(all[0], CalledOn::IoLoop(_)));
    assert_eq!(all[1..], [CalledOn::Spawned, CalledOn::Spawned, CalledOn::Spawned]);
    assert!(!history.is_quick());
    drop(release);
}

#[test]
fn a_panic_in_a_queued_handler_does_not_end_the_loop() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    queue(&io_loop, &quick_history(), panic_with_a_payload_that_panics).recv_timeout(TEST_TIMEOUT).unwrap();
    assert_alive(&io_loop);
}

#[test]
fn a_panic_while_a_handler_is_spawned_does_not_end_the_loop() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    let (called, receiver) = mpsc::channel();
    let queued_on = Arc::clone(&io_loop);
    drop(io_loop.handle().spawn(async move {
        let handler = TestHandler { function: || {}, workers: None, called, spawn_panics: true };
        // A handler without a history of quick polls is spawned by the holder.
        queued_on.poll_soon(Arc::default(), Box::new(handler));
    }));
    assert_eq!(receiver.recv_timeout(TEST_TIMEOUT).unwrap(), CalledOn::Spawned);
    assert_alive(&io_loop);
}

#[tokio::test]
async fn a_loop_whose_thread_could_not_be_started_is_dropped_in_a_runtime_without_a_panic() {
    IoLoop::new().unwrap().shut_down();
}

#[test]
fn a_task_that_is_woken_while_the_holder_is_stuck_runs_after_the_takeover() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    let (wakers, registered) = mpsc::channel();
    let (sender, receiver) = mpsc::channel();
    let woken = Arc::new(AtomicBool::new(false));
    let is_woken = Arc::clone(&woken);
    drop(io_loop.handle().spawn(async move {
        std::future::poll_fn(|cx| {
            if is_woken.load(Ordering::SeqCst) {
                return Poll::Ready(());
            }
            wakers.send(cx.waker().clone()).unwrap();
            Poll::Pending
        })
        .await;
        sender.send(()).unwrap();
    }));
    let waker = registered.recv_timeout(TEST_TIMEOUT).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let woken_on = Arc::clone(&io_loop);
    // As a handler does that reports progress and then blocks.
    let _called = queue(&io_loop, &quick_history(), move || {
        woken.store(true, Ordering::SeqCst);
        woken_on.wake(waker);
        released.recv().unwrap_or_default();
    });
    receiver.recv_timeout(TEST_TIMEOUT).unwrap();
    drop(release);
}

#[test]
fn workers_help_with_a_long_queue() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (called, receiver) = mpsc::channel();
    let history = Arc::new(FirstPollHistory::default());
    (0..100).for_each(|_| history.record(Duration::from_micros(150), true));
    let (queued_on, workers) = (Arc::clone(&io_loop), runtime.handle().clone());
    // The holder waits for a worker in its first handler: only if a worker helps does this end before a takeover.
    let (helped, by_worker) = mpsc::channel::<()>();
    drop(io_loop.handle().spawn(async move {
        let wait = move || by_worker.recv_timeout(TEST_TIMEOUT).unwrap_or_default();
        let handler =
            TestHandler { function: wait, workers: Some(workers.clone()), called: called.clone(), spawn_panics: false };
        queued_on.poll_soon(Arc::clone(&history), Box::new(handler));
        for _ in 0..64 {
            let handler = TestHandler {
                function: || {},
                workers: Some(workers.clone()),
                called: called.clone(),
                spawn_panics: false,
            };
            queued_on.poll_soon(Arc::clone(&history), Box::new(handler));
        }
    }));
    let all: Vec<_> = (0..65).map(|_| receiver.recv_timeout(TEST_TIMEOUT).unwrap()).collect();
    drop(helped);
    assert!(all.contains(&CalledOn::Worker), "{all:?}");
}

#[test]
fn workers_do_not_help_with_handlers_of_another_runtime() {
    let _one_at_a_time = one_at_a_time();
    let io_loop = io_loop();
    let runtimes = [(); 2].map(|()| Builder::new_multi_thread().worker_threads(2).build().unwrap());
    let handles = runtimes.each_ref().map(|runtime| runtime.handle().clone());
    let (called, receiver) = mpsc::channel();
    let history = Arc::new(FirstPollHistory::default());
    (0..100).for_each(|_| history.record(Duration::from_micros(150), true));
    let queued_on = Arc::clone(&io_loop);
    drop(io_loop.handle().spawn(async move {
        for workers in handles.iter().cycle().take(200) {
            let function = || std::thread::sleep(Duration::from_micros(150));
            let workers = Some(workers.clone());
            let handler = TestHandler { function, workers, called: called.clone(), spawn_panics: false };
            queued_on.poll_soon(Arc::clone(&history), Box::new(handler));
        }
    }));
    let all: Vec<_> = (0..200).map(|_| receiver.recv_timeout(TEST_TIMEOUT).unwrap()).collect();
    assert!(!all.contains(&CalledOn::ForeignWorker), "{all:?}");
}

#[test]
fn tasks_are_handed_to_the_workers_one_or_many() {
    let _one_at_a_time = one_at_a_time();
    let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("worker").build().unwrap();
    let io_loop = io_loop();
    for count in [1, 3, TASKS_PER_HAND_OFF, 5 * TASKS_PER_HAND_OFF + 1] {
        let (sender, receiver) = mpsc::channel();
        let (handle, handed_by) = (runtime.handle().clone(), Arc::clone(&io_loop));
        drop(io_loop.handle().spawn(async move {
            for _ in 0..count {
                let sender = sender.clone();
                let task = async move { sender.send(std::thread::current().name() == Some("worker")).unwrap() };
                handed_by.hand_off(&handle, Box::pin(task));
            }
        }));
        assert!((0..count).all(|_| receiver.recv_timeout(TEST_TIMEOUT).unwrap()));
    }
}

#[test]
fn tasks_for_a_runtime_that_is_gone_are_dropped() {
    let _one_at_a_time = one_at_a_time();
    struct SendOnDrop(mpsc::Sender<()>);
    impl Drop for SendOnDrop {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (io_loop, handle) = (io_loop(), runtime.handle().clone());
    drop(runtime);
    let (sender, receiver) = mpsc::channel();
    let handed_by = Arc::clone(&io_loop);
    drop(io_loop.handle().spawn(async move {
        for _ in 0..2 {
            let sender = SendOnDrop(sender.clone());
            handed_by.hand_off(&handle, Box::pin(async move { drop(sender) }));
        }
    }));
    receiver.recv_timeout(TEST_TIMEOUT).unwrap();
    receiver.recv_timeout(TEST_TIMEOUT).unwrap();
}
