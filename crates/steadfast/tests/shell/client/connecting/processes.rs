//! Child processes whose connect is dropped, or that die while they are connected.

use std::sync::{Mutex, mpsc};
use std::task::{Context as Polling, Waker};

use serde_json::json;
use steadfast::client::{ConnectBuilder, NegotiationMode, ReconnectPolicy};
use steadfast::transport::child::{Child, Command};
use steadfast::{ErrorKind, Outcome};

use crate::client::reconnecting::processes::SCRIPT;
use crate::*;

fn shell(script: &str) -> Command {
    let brief = Duration::from_millis(200);
    Command::new("sh").args(["-c", script]).leave_within(brief).terminate_within(brief)
}

/// The processes that were started.
type Started = Arc<Mutex<Vec<u32>>>;

fn starting(started: &Started, script: &'static str) -> ConnectBuilder {
    let started = Arc::clone(started);
    Client::connect(move || {
        let child = Child::spawn(shell(script));
        started.lock().unwrap().extend(child.as_ref().map(Child::id));
        std::future::ready(child)
    })
}

fn is_running(id: u32) -> bool {
    std::process::Command::new("kill").args(["-0", &id.to_string()]).output().unwrap().status.success()
}

async fn until_all_are_gone(started: &Started) {
    soon(async {
        while started.lock().unwrap().iter().any(|id| is_running(*id)) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// L5: however far an opening has come when it is dropped, its process ends.
#[tokio::test]
async fn a_connect_dropped_after_any_number_of_polls_leaves_no_process() {
    let started = Started::default();
    for polls in 0..12 {
        let mut connecting = starting(&started, SCRIPT).negotiation(NegotiationMode::Stateless).into_future();
        for _ in 0..polls {
            let mut cx = Polling::from_waker(Waker::noop());
            if connecting.as_mut().poll(&mut cx).is_ready() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(connecting);
    }
    assert!(started.lock().unwrap().len() > 8, "most of them are started");
    until_all_are_gone(&started).await;
}

/// L5: an opening goes with its runtime, and its process with it.
#[test]
fn dropping_the_runtime_during_a_connect_leaves_no_process() {
    let started = Started::default();
    let first = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    first.block_on(async {
        tokio::spawn(starting(&started, "while :; do sleep 0.01; done").into_future());
        soon(async {
            while started.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    });
    drop(first);
    let second = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    second.block_on(until_all_are_gone(&started));
}

/// L6: a `stderr` callback that blocks delays neither the error nor the end of the client.
#[tokio::test]
async fn the_exit_of_a_process_is_reported_although_its_output_is_delayed() {
    let (release, released) = mpsc::channel::<()>();
    let dying = shell("echo 'no database' >&2; echo more >&2; exit 3").on_stderr_line(move |_| {
        // Ends when the test lets go of the other end.
        let _ = released.recv();
    });
    let error = soon(Client::connect(dying).into_future()).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotSent);
    assert!(format!("{error:?}").contains("exit status: 3"), "{error:?}");
    drop(release);
}

/// L5, L10: standard error is not read, and the exit is reported all the same.
#[tokio::test]
async fn the_exit_reason_is_reported_with_inherited_and_null_standard_error() {
    for command in [shell(SCRIPT).stderr_inherit(), shell(SCRIPT).stderr_null()] {
        let client =
            soon(Client::connect(command).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
        let error = soon(client.call_tool("die", json!({})).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::Unknown));
        assert!(format!("{error:?}").contains("`sh` exited (exit status: 1)"), "{error:?}");
        soon(client.close()).await;
    }
}

/// L10: close, the total timeout and a cancellation end the wait for the exit reason, with the true outcome. A child of the
/// process delays the exit reason.
#[tokio::test]
async fn waiting_for_the_exit_reason_ends_with_the_call() {
    const SLOW_EXIT: &str = r#"
read -r line; id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}\n' "$id"
read -r line; (trap '' TERM; while :; do sleep 0.01; done) <&- >&- & exit 1
"#;
    for how in ["close", "cancel", "drop", "total"] {
        let started = Started::default();
        let client =
            soon(starting(&started, SLOW_EXIT).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
        let mut call = client.call_tool("any", json!({}));
        if how == "total" {
            call = call.total_timeout(Duration::from_millis(300));
        }
        let call = call.start();
        let canceller = call.canceller();
        let ended = tokio::spawn(call);
        let other = client.clone();
        soon(other.closed()).await;
        match how {
            "close" => other.close().await,
            "cancel" => canceller.cancel(),
            "drop" => ended.abort(),
            _ => {}
        }
        if how != "drop" {
            let error = soon(ended).await.unwrap().unwrap_err();
            assert_eq!(error.outcome(), Outcome::Unknown, "{how}: {error:?}");
        }
        soon(client.close()).await;
        until_all_are_gone(&started).await;
    }
}

/// L5: many wait for a return whose opening takes as long as it may, and the close ends all of them.
#[tokio::test]
async fn closing_a_client_ends_calls_that_wait_for_a_hanging_connect_and_its_process() {
    const ONCE: &str = r#"
[ -e "$MARK" ] && while :; do sleep 0.01; done
: > "$MARK"
read -r line; id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}\n' "$id"
read -r line; exit 1
"#;
    let mark = std::env::temp_dir().join(format!("steadfast-broken-{}", std::process::id()));
    let _ = std::fs::remove_file(&mark);
    let started = Started::default();
    let (noting, marked) = (Arc::clone(&started), mark.clone());
    let connecting = Client::connect(move || {
        let child = Child::spawn(shell(ONCE).env("MARK", &marked));
        noting.lock().unwrap().extend(child.as_ref().map(Child::id));
        std::future::ready(child)
    });
    let policy = ReconnectPolicy::default().first_pause(Duration::from_millis(1));
    let client =
        soon(connecting.negotiation(NegotiationMode::Stateless).reconnect(policy).into_future()).await.unwrap();
    assert!(soon(client.call_tool("die", json!({})).into_future()).await.is_err());
    let waiting: Vec<_> = (0..20).map(|_| tokio::spawn(client.call_tool("any", json!({})).into_future())).collect();
    soon(async {
        while started.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    soon(client.close()).await;
    assert!(!started.lock().unwrap().iter().any(|id| is_running(*id)), "the close waits for the process");
    for call in waiting {
        assert_eq!(soon(call).await.unwrap().unwrap_err().outcome(), Outcome::NotSent);
    }
    let _ = std::fs::remove_file(&mark);
}
