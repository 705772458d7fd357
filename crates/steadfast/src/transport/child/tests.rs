//! Tests with real processes: `sh`, `cat`, `sleep`. Their end is detected by something that only an end can cause (a hangup,
//! a status, a process that does not exist any more), never by the time it took.

use std::fs::File;
use std::future::Future;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::*;
use crate::transport::testing::{
    close, elsewhere, fill, hangup, no_hangup, read_exactly, read_to_end, settle, write_all,
};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(50);

/// A shell script whose end is never forced, unless the test says so.
fn shell(script: &str) -> Command {
    Command::new("sh").args(["-c", script]).leave_within(LONG).terminate_within(LONG).stderr_inherit()
}

fn is_running(id: u32) -> bool {
    rustix::process::test_kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap()).is_ok()
}

/// The process id that a script printed.
async fn printed_id(child: &mut Child) -> u32 {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.extend(read_exactly(child, 1).await);
    }
    String::from_utf8(line).unwrap().trim().parse().unwrap()
}

/// A process outside of the group, which only the test ends.
struct Outsider(u32);

impl Drop for Outsider {
    fn drop(&mut self) {
        if let Some(process) = i32::try_from(self.0).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }
}

/// The rest of what was written to a tether, when its last writer is gone.
async fn rest_of(mut hold: File) -> String {
    elsewhere(move || {
        let mut rest = String::new();
        hold.read_to_string(&mut rest).unwrap();
        rest
    })
    .await
}

/// All lines, when the thread that delivers them has ended.
async fn all<T: Send + 'static>(received: mpsc::Receiver<T>) -> Vec<T> {
    elsewhere(move || received.iter().collect()).await
}

/// Blocks this thread on a future, without any runtime.
fn block<F: Future>(future: F) -> F::Output {
    struct ThreadWaker(std::thread::Thread);
    impl Wake for ThreadWaker {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    let mut future = pin!(future);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => {
                assert!(Instant::now() < deadline, "nothing happened for a minute");
                std::thread::park_timeout(Duration::from_secs(1));
            }
        }
    }
}

/// A named pipe that hangs up when the last process that writes to it is gone.
struct Tether(PathBuf);

impl Tether {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("steadfast-tether-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let path = std::env::temp_dir().join(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self(path)
    }

    /// Opens it, which waits for a process to write to it.
    async fn hold(&self) -> File {
        let path = self.0.clone();
        elsewhere(|| File::open(path).unwrap()).await
    }
}

impl Drop for Tether {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_process_answers_until_its_input_is_closed() {
    let mut child = Child::spawn(shell("exec cat")).unwrap();
    write_all(&mut child, b"hello").await.unwrap();
    assert_eq!(read_exactly(&mut child, 5).await, b"hello");
    no_hangup(&mut child).await;
    close(&mut child).await.unwrap();
    assert_eq!(read_to_end(&mut child).await, b"");
    let status = settle(child.exit()).await.unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn large_traffic_passes_unharmed() {
    let mut child = Child::spawn(shell("exec cat")).unwrap();
    let sent: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let (mut offset, mut received, mut buf) = (0, Vec::new(), vec![0; 1 << 16]);
    // Both at once, as a driver does: the process would otherwise be stuck with a full pipe.
    settle(std::future::poll_fn(|cx| {
        loop {
            let mut moved = false;
            if offset < sent.len()
                && let Poll::Ready(count) = child.poll_write(cx, &sent[offset..])
            {
                offset += count.unwrap();
                moved = true;
            }
            if let Poll::Ready(count) = child.poll_read(cx, &mut buf) {
                received.extend_from_slice(&buf[..count.unwrap()]);
                moved = true;
            }
            if received.len() == sent.len() {
                return Poll::Ready(());
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }))
    .await;
    assert!(received == sent);
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_an_error() {
    let error = Child::spawn(Command::new("/nonexistent/steadfast")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[tokio::test]
async fn shutdown_is_the_close_of_standard_input_first() {
    let child = Child::spawn(shell("cat; exit 7")).unwrap();
    let status = settle(child.shutdown()).await.unwrap();
    assert_eq!(status.code(), Some(7));
}

#[tokio::test]
async fn a_process_that_ignores_its_input_gets_sigterm() {
    let command = shell("trap 'exit 9' TERM; echo; while :; do sleep 0.01; done").leave_within(SHORT);
    let mut child = Child::spawn(command).unwrap();
    assert_eq!(read_exactly(&mut child, 1).await, b"\n");
    let status = settle(child.shutdown()).await.unwrap();
    assert_eq!(status.code(), Some(9));
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed() {
    let command = shell("trap '' TERM; echo; while :; do sleep 0.01; done").leave_within(SHORT).terminate_within(SHORT);
    let mut child = Child::spawn(command).unwrap();
    assert_eq!(read_exactly(&mut child, 1).await, b"\n");
    let id = child.id();
    let status = settle(child.shutdown()).await.unwrap();
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    assert!(!is_running(id));
}

#[tokio::test]
async fn a_process_that_is_stopped_is_killed() {
    let command = shell("echo; kill -STOP $$").leave_within(SHORT).terminate_within(SHORT);
    let mut child = Child::spawn(command).unwrap();
    assert_eq!(read_exactly(&mut child, 1).await, b"\n");
    let status = settle(child.shutdown()).await.unwrap();
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
}

#[tokio::test]
async fn no_zombie_is_left() {
    let child = Child::spawn(shell("exec cat")).unwrap();
    let id = child.id();
    settle(child.shutdown()).await.unwrap();
    // A zombie can still be signalled.
    assert!(!is_running(id));
}

#[tokio::test]
async fn helpers_that_a_process_leaves_behind_end_with_it() {
    let tether = Tether::new();
    let script = format!("sleep 3600 >'{}' 2>&1 & cat", tether.0.display());
    let child = Child::spawn(shell(&script)).unwrap();
    let hold = tether.hold().await;
    settle(child.shutdown()).await.unwrap();
    rest_of(hold).await;
}

#[tokio::test]
async fn stubborn_helpers_are_killed_with_the_whole_group() {
    let tether = Tether::new();
    let script = format!(
        "trap '' TERM; (trap '' TERM; echo; while :; do sleep 0.01; done) >'{}' 2>&1 & while :; do sleep 0.01; done",
        tether.0.display()
    );
    let child = Child::spawn(shell(&script).leave_within(SHORT).terminate_within(SHORT)).unwrap();
    let mut hold = tether.hold().await;
    hold.read_exact(&mut [0]).unwrap();
    let status = settle(child.shutdown()).await.unwrap();
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    rest_of(hold).await;
}

#[tokio::test]
async fn a_wrapper_that_dies_of_sigterm_does_not_cost_the_server_its_cleanup() {
    let tether = Tether::new();
    // The shell that we start dies of SIGTERM at once. The one inside it needs a moment, and tells of it.
    let script = format!(
        "sh -c \"trap 'sleep 0.2; echo cleaned; exit' TERM; echo ready; while :; do sleep 0.01; done\" >'{}' & wait",
        tether.0.display()
    );
    let child = Child::spawn(shell(&script).leave_within(SHORT)).unwrap();
    let mut hold = tether.hold().await;
    hold.read_exact(&mut [0; 6]).unwrap();
    let status = settle(child.shutdown()).await.unwrap();
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    assert_eq!(rest_of(hold).await, "cleaned\n");
}

#[tokio::test]
async fn a_process_outside_the_group_that_keeps_the_pipes_open_does_not_delay_the_end() {
    let (lines, received) = mpsc::channel();
    let command = shell("setsid sh -c 'echo outside >&2; echo $$; exec sleep 3600' & cat >/dev/null")
        .on_stderr_line(move |line| lines.send(line.to_owned()).unwrap());
    let mut child = Child::spawn(command).unwrap();
    let outsider = Outsider(printed_id(&mut child).await);
    let handle = child.handle();
    settle(child.shutdown()).await.unwrap();
    assert!(is_running(outsider.0), "it was not waited for, and is not ours to kill");
    // The thread that reads standard error ends as well: it drops its sender.
    assert_eq!(all(received).await, ["outside"]);
    assert!(settle(handle.exit()).await.unwrap().success());
}

#[tokio::test]
async fn the_stream_ends_with_the_process_even_if_another_process_holds_the_pipe() {
    let command = shell("setsid sh -c 'echo $$; exec sleep 3600' <&0 & read line; echo done; exit 3");
    let mut child = Child::spawn(command).unwrap();
    let outsider = Outsider(printed_id(&mut child).await);
    no_hangup(&mut child).await;
    write_all(&mut child, b"go\n").await.unwrap();
    assert_eq!(read_to_end(&mut child).await, b"done\n");
    assert_eq!(hangup(&mut child).await, HangupDirection::Input);
    assert_eq!(hangup(&mut child).await, HangupDirection::Output);
    no_hangup(&mut child).await;
    assert_eq!(write_all(&mut child, b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(settle(child.exit()).await.unwrap().code(), Some(3));
    assert!(is_running(outsider.0));
}

#[tokio::test]
async fn what_was_written_before_the_end_is_read_after_it() {
    let mut child = Child::spawn(shell("echo last words")).unwrap();
    settle(child.exit()).await.unwrap();
    assert_eq!(hangup(&mut child).await, HangupDirection::Input);
    assert_eq!(read_to_end(&mut child).await, b"last words\n");
}

#[tokio::test]
async fn a_process_that_stops_reading_and_leaves_is_noticed() {
    let mut child = Child::spawn(shell("exec sleep 0.2")).unwrap();
    assert!(fill(&mut child).await > 0);
    assert_eq!(hangup(&mut child).await, HangupDirection::Input);
    assert_eq!(hangup(&mut child).await, HangupDirection::Output);
}

#[tokio::test]
async fn a_process_that_is_stuck_writing_can_still_leave_by_itself() {
    // Nobody reads its megabyte any more; it exits with 5 only if it can write all of it and then reads the end of input.
    let child = Child::spawn(shell("head -c 1000000 /dev/zero; cat; exit 5")).unwrap();
    let status = settle(child.shutdown()).await.unwrap();
    assert_eq!(status.code(), Some(5));
}

#[tokio::test]
async fn dropping_a_child_ends_it_in_the_same_way() {
    let child = Child::spawn(shell("head -c 1000000 /dev/zero; cat; exit 5")).unwrap();
    let handle = child.handle();
    drop(child);
    assert_eq!(settle(handle.group_exit()).await.unwrap().code(), Some(5));
    assert!(!is_running(handle.id()));
}

#[test]
fn dropping_a_child_with_its_runtime_gone_ends_it_too() {
    let command = shell("trap '' TERM; echo; while :; do sleep 0.01; done").leave_within(SHORT).terminate_within(SHORT);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut child = runtime.block_on(async { Child::spawn(command).unwrap() });
    runtime.block_on(read_exactly(&mut child, 1));
    let handle = child.handle();
    runtime.shutdown_background();
    drop(child);
    assert_eq!(block(handle.group_exit()).unwrap().signal(), Some(Signal::KILL.as_raw()));
    assert!(!is_running(handle.id()));
}

#[test]
fn a_child_that_was_never_polled_needs_no_runtime_at_all() {
    let child = Child::spawn(shell("cat; exit 4")).unwrap();
    assert_eq!(block(child.shutdown()).unwrap().code(), Some(4));
}

#[tokio::test]
async fn a_handle_can_end_a_child_that_a_driver_owns() {
    let mut child = Child::spawn(shell("cat; exit 6")).unwrap();
    let handle = child.handle();
    let driver = tokio::spawn(async move {
        let first = hangup(&mut child).await;
        (first, read_to_end(&mut child).await, child)
    });
    tokio::task::yield_now().await;
    handle.shutdown();
    let (first, rest, child) = settle(driver).await.unwrap();
    assert_eq!(first, HangupDirection::Output);
    assert_eq!(rest, b"");
    assert_eq!(settle(handle.group_exit()).await.unwrap().code(), Some(6));
    drop(child);
}

#[tokio::test]
async fn a_handle_can_kill_at_once() {
    let mut child = Child::spawn(shell("trap '' TERM; echo; while :; do sleep 0.01; done")).unwrap();
    assert_eq!(read_exactly(&mut child, 1).await, b"\n");
    child.handle().kill();
    assert_eq!(settle(child.exit()).await.unwrap().signal(), Some(Signal::KILL.as_raw()));
    child.handle().kill();
    assert_eq!(read_to_end(&mut child).await, b"");
}

#[tokio::test]
async fn several_tasks_can_wait_for_the_same_end() {
    let child = Child::spawn(shell("cat; exit 2")).unwrap();
    let waiting: Vec<_> = (0..10).map(|_| tokio::spawn(child.exit())).collect();
    drop(child.exit());
    tokio::task::yield_now().await;
    settle(child.shutdown()).await.unwrap();
    for exit in waiting {
        assert_eq!(settle(exit).await.unwrap().unwrap().code(), Some(2));
    }
}

#[tokio::test]
async fn standard_error_arrives_line_by_line() {
    let (lines, received) = mpsc::channel();
    let script = r"printf 'one\r\ntwo\n\377bad\nlooooong\nlast' >&2";
    let command = shell(script).stderr_line_limit(4).on_stderr_line(move |line| lines.send(line.to_owned()).unwrap());
    let child = Child::spawn(command).unwrap();
    settle(child.shutdown()).await.unwrap();
    assert_eq!(all(received).await, ["one", "two", "\u{fffd}bad", "looo", "oong", "last"]);
}

#[tokio::test]
async fn a_flood_on_standard_error_does_not_stop_the_conversation() {
    let (lines, received) = mpsc::channel();
    let command = shell("head -c 3000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; exec cat")
        .on_stderr_line(move |line| lines.send(line.len()).unwrap());
    let mut child = Child::spawn(command).unwrap();
    write_all(&mut child, b"hello").await.unwrap();
    assert_eq!(read_exactly(&mut child, 5).await, b"hello");
    settle(child.shutdown()).await.unwrap();
    let lengths: Vec<usize> = all(received).await;
    assert_eq!(lengths.iter().sum::<usize>(), 3_000_000);
    assert!(lengths.iter().all(|&length| length <= 16 * 1024));
}

#[tokio::test]
async fn a_callback_that_panics_does_no_harm() {
    let command = shell("echo one >&2; echo two >&2; exec cat")
        .on_stderr_line(|_| std::panic::resume_unwind(Box::new("a wrong callback")));
    let mut child = Child::spawn(command).unwrap();
    write_all(&mut child, b"hello").await.unwrap();
    assert_eq!(read_exactly(&mut child, 5).await, b"hello");
    assert!(settle(child.shutdown()).await.unwrap().success());
}

#[tokio::test]
async fn the_environment_and_the_directory_are_as_asked() {
    let directory = std::env::temp_dir().canonicalize().unwrap();
    let command = shell("pwd -P; echo \"$ONE,$TWO,$HOME,${PATH:+path}\"")
        .env("TWO", "forgotten")
        .env_only(["PATH", "STEADFAST_NOT_SET"])
        .env("ONE", "1")
        .current_dir(&directory);
    let mut child = Child::spawn(command).unwrap();
    let received = String::from_utf8(read_to_end(&mut child).await).unwrap();
    assert_eq!(received, format!("{}\n1,,,path\n", directory.display()));
}

#[tokio::test]
async fn a_process_has_a_group_of_its_own() {
    let mut child = Child::spawn(shell("ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat")).unwrap();
    assert_eq!(printed_id(&mut child).await, child.id());
}

#[test]
fn the_debug_output_of_a_command_contains_no_secrets() {
    let command = Command::new("server").arg("--token=secret").env("KEY", "secret");
    assert_eq!(format!("{command:?}"), "Command { program: \"server\", .. }");
}

#[tokio::test]
async fn the_last_output_is_read_even_without_a_readiness_event() {
    let mut child = Child::spawn(shell("read line; echo last words")).unwrap();
    let mut buf = [0; 64];
    let first = std::future::poll_fn(|cx| Poll::Ready(child.poll_read(cx, &mut buf).is_pending())).await;
    assert!(first, "the process has written before it got input");
    write_all(&mut child, b"go\n").await.unwrap();
    // Blocks the thread of the runtime, so that no readiness event can arrive.
    block(child.exit());
    let last = std::future::poll_fn(|cx| Poll::Ready(child.poll_read(cx, &mut buf))).await;
    assert!(matches!(last, Poll::Ready(Ok(11))), "{last:?}");
}

/// Why a child exited, as its driver gets to know it.
async fn exit_reason(child: &mut Child) -> Option<String> {
    settle(std::future::poll_fn(|cx| child.poll_exit_reason(cx))).await
}

#[tokio::test]
async fn the_exit_reason_is_the_program_its_status_and_its_last_lines() {
    let command = Command::new("sh").args(["-c", "echo one >&2; echo two >&2; exit 3"]);
    let mut child = Child::spawn(command).unwrap();
    assert_eq!(read_to_end(&mut child).await, b"");
    let reason = "`sh` exited (exit status: 3):\n    one\n    two";
    assert_eq!(exit_reason(&mut child).await.as_deref(), Some(reason));
}

#[tokio::test]
async fn there_is_no_exit_reason_after_a_requested_end() {
    let mut child = Child::spawn(shell("cat; exit 3")).unwrap();
    settle(std::future::poll_fn(|cx| child.poll_gone(cx))).await;
    assert_eq!(exit_reason(&mut child).await, None);
}

#[tokio::test]
async fn the_exit_reason_of_a_process_that_closed_its_pipes_is_not_our_signal() {
    let command = shell("exec >&-; while :; do sleep 0.01; done").leave_within(SHORT);
    let mut child = Child::spawn(command).unwrap();
    assert_eq!(read_to_end(&mut child).await, b"");
    settle(std::future::poll_fn(|cx| child.poll_gone(cx))).await;
    let reason = "`sh` closed its standard input or output and was terminated";
    assert_eq!(exit_reason(&mut child).await.as_deref(), Some(reason));
}

#[tokio::test]
async fn the_exit_reason_of_a_killed_process_says_so() {
    let mut child = Child::spawn(shell("cat")).unwrap();
    child.handle().kill();
    assert_eq!(read_to_end(&mut child).await, b"");
    assert_eq!(exit_reason(&mut child).await.as_deref(), Some("`sh` was killed by this program"));
}

#[tokio::test]
async fn a_callback_that_never_returns_does_not_delay_the_end() {
    let (held, hold) = mpsc::channel::<()>();
    let command = shell("echo stuck >&2; exit 3").on_stderr_line(move |_| {
        let _ = hold.recv();
    });
    let mut child = Child::spawn(command).unwrap();
    assert_eq!(read_to_end(&mut child).await, b"");
    let reason = "`sh` exited (exit status: 3):\n    stuck";
    assert_eq!(exit_reason(&mut child).await.as_deref(), Some(reason));
    drop(held);
}
