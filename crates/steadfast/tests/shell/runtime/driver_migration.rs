//! Clients with calls in quick succession, whose driver is polled on the workers meanwhile.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context as Polling, Poll};

use serde_json::{Value, json};
use steadfast::Revision;
use steadfast::client::NegotiationMode;
use steadfast::transport::child::{Child, Command};
use steadfast::transport::stream::StreamTransport;
use steadfast::transport::{HangupDirection, Transport};
use tokio::runtime::{Builder, Runtime};

use crate::*;

/// A client of a server on a thread of its own, which answers at once. Opened in the runtime that this is awaited in.
async fn quick() -> Client {
    quick_for(usize::MAX).await
}

/// The same of a server that leaves after so many calls.
async fn quick_for(calls: usize) -> Client {
    let (here, there) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut output = there.try_clone().unwrap();
        let mut answered = 0;
        for line in BufReader::new(there).lines() {
            let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let result = match request["method"].as_str() {
                Some("initialize") => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "quick", "version": "1"}}),
                Some("tools/call") => {
                    json!({"content": [{"type": "text", "text": request["params"]["arguments"]["text"]}]})
                }
                _ => continue,
            };
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            output.write_all(format!("{answer}\n").as_bytes()).unwrap();
            answered += usize::from(request["method"] == "tools/call");
            if answered == calls {
                break;
            }
        }
    });
    here.set_nonblocking(true).unwrap();
    let stream = StreamTransport::from(tokio::net::UnixStream::from_std(here).unwrap());
    Client::connect(stream).negotiation(NegotiationMode::Handshake(Revision::V2025_11_25)).await.unwrap()
}

async fn echoes(client: &Client, text: String) {
    let result = soon(client.call_tool("echo", json!({"text": text})).into_future()).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some(&*text));
}

/// Calls in quick succession, from a task.
async fn in_turn(client: &Client, calls: usize) {
    let client = client.clone();
    let calling = async move {
        for call in 0..calls {
            echoes(&client, call.to_string()).await;
        }
    };
    tokio::spawn(calling).await.unwrap();
}

fn workers(count: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(count).enable_all().build().unwrap()
}

/// L6: they had the driver, and are blocked with it.
#[test]
fn a_call_from_another_thread_is_answered_while_the_workers_are_blocked() {
    let (two, elsewhere) = (workers(2), workers(1));
    let client = two.block_on(async {
        let client = quick().await;
        in_turn(&client, 200).await;
        client
    });
    let (blocked, all_blocked) = mpsc::channel();
    let releases = [(); 2].map(|()| {
        let (release, released) = mpsc::channel::<()>();
        let blocked = blocked.clone();
        two.spawn(async move {
            blocked.send(()).unwrap();
            // Until the other end is gone.
            let _ = released.recv();
        });
        release
    });
    for _ in &releases {
        all_blocked.recv().unwrap();
    }
    elsewhere.block_on(echoes(&client, "still here".to_owned()));
    drop(releases);
    two.block_on(soon(client.close()));
}

/// L5, L10: the driver does not go with the runtime whose workers had it.
#[test]
fn a_client_outlives_the_workers_that_polled_its_driver() {
    for runtime in [workers(2), Builder::new_current_thread().enable_all().build().unwrap()] {
        let client = runtime.block_on(async {
            let client = quick().await;
            in_turn(&client, 200).await;
            client
        });
        drop(runtime);
        workers(1).block_on(async {
            in_turn(&client, 200).await;
            soon(client.close()).await;
        });
    }
}

/// Calls in turn bring the driver to the workers, and many at once bring it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequential_and_concurrent_calls_succeed_on_either_driver() {
    let client = quick().await;
    for round in 0..20 {
        in_turn(&client, 100).await;
        let at_once = (0..50).map(|call| {
            let client = client.clone();
            tokio::spawn(async move { echoes(&client, format!("{round}/{call}")).await })
        });
        for call in at_once.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    }
    soon(client.close()).await;
}

/// Nobody calls any more, and what comes is still seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exit_of_a_server_is_noticed_after_sequential_calls() {
    let client = quick_for(200).await;
    in_turn(&client, 200).await;
    soon(client.closed()).await;
}

/// A child process, and how often it was read from on another thread than that of drivers.
struct Observed(Child, Arc<AtomicUsize>);

impl Transport for Observed {
    fn poll_read(&mut self, cx: &mut Polling<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let away = std::thread::current().name() != Some("steadfast-io");
        self.1.fetch_add(usize::from(away), Ordering::SeqCst);
        self.0.poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Polling<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, buf)
    }

    fn poll_flush(&mut self, cx: &mut Polling<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_hangup(&mut self, cx: &mut Polling<'_>) -> Poll<HangupDirection> {
        self.0.poll_hangup(cx)
    }

    fn poll_close(&mut self, cx: &mut Polling<'_>) -> Poll<io::Result<()>> {
        self.0.poll_close(cx)
    }

    fn poll_gone(&mut self, cx: &mut Polling<'_>) -> Poll<()> {
        self.0.poll_gone(cx)
    }

    fn poll_exit_reason(&mut self, cx: &mut Polling<'_>) -> Poll<Option<String>> {
        self.0.poll_exit_reason(cx)
    }

    fn leave_runtime(&mut self) -> bool {
        self.0.leave_runtime()
    }
}

/// A server that responds without starting anything, and exits on request.
const QUICK: &str = r#"
while read -r line; do
  rest=${line#*\"id\":}; id=${rest%%[,\}]*}
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"quick","version":"1"}}}\n' "$id" ;;
    *'"die"'*) echo 'as I was told' >&2; exit 3 ;;
    *tools/call*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id" ;;
  esac
done
"#;

/// A process works wherever its driver runs: its output, its exit status, and that it ends.
#[test]
fn a_process_with_quick_calls_is_driven_on_the_workers_and_its_exit_is_noticed() {
    workers(2).block_on(async {
        let away = Arc::new(AtomicUsize::new(0));
        let child = Child::spawn(Command::new("sh").args(["-c", QUICK])).unwrap();
        let era = NegotiationMode::Handshake(Revision::V2025_11_25);
        let client = Client::connect(Observed(child, Arc::clone(&away))).negotiation(era).await.unwrap();
        let calling = async move {
            // On a machine that has much to do it may take a while until enough of them are quick.
            while away.load(Ordering::SeqCst) == 0 {
                client.call_tool("any", json!({})).await.unwrap();
            }
            client.call_tool("die", json!({})).await.unwrap_err()
        };
        let error = soon(async { tokio::spawn(calling).await.unwrap() }).await;
        assert_eq!(error.outcome(), steadfast::Outcome::Unknown);
        assert!(format!("{error:?}").contains("`sh` exited (exit status: 3):\n    as I was told"), "{error:?}");
    });
}
