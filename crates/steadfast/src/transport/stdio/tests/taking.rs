//! Tests of `Stdio::take`, each in a process of its own: this test binary, started again for one test.

use std::process::{Command, Stdio as Standard};

use super::*;

const INSIDE: &str = "STEADFAST_TEST_TAKES_STDIO";

/// Starts this test binary again to run `test` alone. What the test harness prints to standard output before the test
/// begins comes first; the test marks where its own output starts.
fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    command.args([name.as_str(), "--exact", "--nocapture", "--test-threads=1"]).env(INSIDE, "1");
    command.stdin(Standard::piped()).stdout(Standard::piped()).stderr(Standard::piped());
    command
}

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// The output after the mark.
fn after_mark(output: &[u8]) -> &str {
    let text = std::str::from_utf8(output).unwrap();
    text.split_once("MARK\n").unwrap_or_else(|| panic!("no mark in {text:?}")).1
}

#[test]
fn strays_go_to_standard_error_and_children_eat_nothing() {
    if is_inside() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(async {
            println!("MARK");
            let mut transport = Stdio::take().unwrap();
            println!("a stray line");
            // A child that would read all of standard input, and prints what it has read.
            let status = Command::new("sh").args(["-c", "cat; echo a stray child"]).status().unwrap();
            assert!(status.success());
            let again = Stdio::take().unwrap_err();
            assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(read_exactly(&mut transport, 8).await, b"request\n");
            write_all(&mut transport, b"answer\n").await.unwrap();
            assert_eq!(read_to_end(&mut transport).await, b"last");
            assert_eq!(hangup(&mut transport).await, HangupDirection::Input);
        });
    }
    let mut process = again("strays_go_to_standard_error_and_children_eat_nothing").spawn().unwrap();
    process.stdin.take().unwrap().write_all(b"request\nlast").unwrap();
    let output = process.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(after_mark(&output.stdout), "answer\n");
    assert!(errors.contains("a stray line\n") && errors.contains("a stray child\n"), "{errors}");
}

#[test]
fn a_thread_that_waits_for_input_does_not_keep_the_process_from_ending() {
    if is_inside() {
        println!("MARK");
        let mut transport = Stdio::take().unwrap();
        // A thread is blocked in a read. The process exits nevertheless.
        assert!(transport.poll_read(&mut crate::transport::testing::noop_context(), &mut [0; 8]).is_pending());
        return;
    }
    // There may be no terminal; a datagram socket is read by a thread too.
    let (silent, _held) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let mut command = again("a_thread_that_waits_for_input_does_not_keep_the_process_from_ending");
    let output = command.stdin(Standard::from(std::os::fd::OwnedFd::from(silent))).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_parent_keeps_a_blocking_descriptor() {
    if is_inside() {
        println!("MARK");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(async {
            let mut transport = Stdio::take().unwrap();
            assert_eq!(read_to_end(&mut transport).await, b"hello");
            write_all(&mut transport, b"hello\n").await.unwrap();
        });
    }
    let (input, mut to) = io::pipe().unwrap();
    let (mut from, output) = io::pipe().unwrap();
    let shared = (input.try_clone().unwrap(), output.try_clone().unwrap());
    let mut command = again("the_parent_keeps_a_blocking_descriptor");
    let mut process = command.stdin(input).stdout(output).stderr(Standard::inherit()).spawn().unwrap();
    to.write_all(b"hello").unwrap();
    drop((to, command));
    assert!(process.wait().unwrap().success());
    assert!(!flags(&shared.0).contains(OFlags::NONBLOCK));
    assert!(!flags(&shared.1).contains(OFlags::NONBLOCK));
    drop(shared);
    let mut all = Vec::new();
    from.read_to_end(&mut all).unwrap();
    assert_eq!(after_mark(&all), "hello\n");
}
