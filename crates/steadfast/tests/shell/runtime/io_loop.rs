//! Handlers that are polled on the thread of an I/O loop: what they may rely on, and that one that blocks delays no other request.

use serde_json::json;
use steadfast::prelude::*;
use steadfast::transport::stream::StreamTransport;
use steadfast::{JsonObject, ToolResult};
use tokio::sync::watch;

use crate::{echo, server, soon, text};

/// So many calls, and a handler is known to be quick.
const QUICK_CALLS: usize = 1_000;

/// A tool that answers at once, or blocks its thread until it is released if it is called with `block`.
fn sometimes_blocks(released: &watch::Receiver<bool>, plain: bool) -> ServerTool {
    let released = released.clone();
    let call = move |arguments: &JsonObject| {
        let mut released = released.clone();
        let blocks = arguments["block"].as_bool().unwrap_or_default();
        // An error: the test has failed, and does not release it any more.
        while blocks && released.has_changed().is_ok() && !*released.borrow_and_update() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if blocks { "blocked" } else { "quick" }
    };
    let tool = ServerTool::new("sometimes_blocks");
    if plain {
        tool.blocking_handler(move |arguments: JsonObject| call(&arguments))
    } else {
        tool.handler(move |arguments: JsonObject| {
            let call = call.clone();
            async move { call(&arguments) }
        })
    }
}

/// How clients reach the server of a test.
#[derive(Clone, Copy)]
enum Over {
    Memory,
    Tcp,
}

impl Over {
    /// Serves that many connections, and returns their clients.
    async fn connect(self, server: &Server, count: usize) -> Vec<Client> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut clients = Vec::new();
        for _ in 0..count {
            let connecting = match self {
                Self::Memory => Client::connect(server.clone()),
                Self::Tcp => {
                    let near = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                    let (far, _) = listener.accept().await.unwrap();
                    // Sockets that stayed on this runtime, as those of `StreamTransport::new` do, would be served by its
                    // workers, which the handlers block.
                    tokio::spawn(server.clone().serve(StreamTransport::from(far)).into_future());
                    Client::connect(StreamTransport::from(near))
                }
            };
            clients.push(soon(connecting.into_future()).await.unwrap());
        }
        clients
    }
}

/// One client calls a tool that is quick for long and then blocks, many times at once, while 100 others use the same threads.
async fn quick_and_then_blocked(plain: bool, over: Over) {
    let (release, released) = watch::channel(false);
    let server = server([sometimes_blocks(&released, plain), echo()]);
    let mut others = over.connect(&server, 101).await;
    let client = others.pop().unwrap();
    for _ in 0..QUICK_CALLS {
        let called = soon(client.call_tool("sometimes_blocks", json!({"block": false})).into_future()).await.unwrap();
        assert_eq!(text(&called), "quick");
        let called = soon(client.call_tool("echo", json!({"text": "quick"})).into_future()).await.unwrap();
        assert_eq!(text(&called), "quick");
    }
    let blocked: Vec<_> =
        (0..8).map(|_| client.call_tool("sometimes_blocks", json!({"block": true})).start()).collect();
    for other in others.iter().chain([&client]) {
        soon(other.list_tools().into_future()).await.unwrap();
    }
    release.send_replace(true);
    for call in blocked {
        assert_eq!(text(&soon(call).await.unwrap()), "blocked");
    }
    for other in &others {
        let called = soon(other.call_tool("echo", json!({"text": "after"})).into_future()).await.unwrap();
        assert_eq!(text(&called), "after");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_after_many_quick_calls_delays_no_other_connection() {
    quick_and_then_blocked(false, Over::Memory).await;
    quick_and_then_blocked(false, Over::Tcp).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_function_that_blocks_after_many_quick_calls_delays_no_other_connection() {
    quick_and_then_blocked(true, Over::Memory).await;
    quick_and_then_blocked(true, Over::Tcp).await;
}

/// Only plain functions: an `async` handler that blocks the only worker blocks this test too, once it runs there.
#[tokio::test]
async fn a_plain_function_that_blocks_delays_no_other_connection_on_a_runtime_with_one_thread() {
    quick_and_then_blocked(true, Over::Memory).await;
}

tokio::task_local! {
    static LOCAL: &'static str;
}

/// Tries what handlers do with the runtime that they run in, and returns the name of its thread and whether it is in a task.
fn uses_runtime() -> ServerTool {
    ServerTool::new("uses_runtime").handler(|arguments: JsonObject| async move {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        let in_task = tokio::task::try_id().is_some();
        if arguments["all"].as_bool().unwrap_or_default() {
            // Before the first await this is the first poll, which is on the I/O loop after quick calls.
            assert_eq!(tokio::task::block_in_place(|| 1), 1);
            assert!(std::panic::catch_unwind(|| tokio::task::spawn_local(async {})).is_err(), "as on a worker");
            assert_eq!(LOCAL.scope("local", async { LOCAL.with(|local| *local) }).await, "local");
            let nested = std::panic::catch_unwind(|| tokio::runtime::Handle::current().block_on(async {}));
            assert!(nested.is_err(), "a nested block_on panics, as it does on a worker");
            let runtime = tokio::runtime::Handle::current().id();
            let spawned = tokio::spawn(async move { tokio::runtime::Handle::current().id() == runtime });
            assert!(spawned.await.unwrap());
            assert_eq!(tokio::task::spawn_blocking(|| 1).await.unwrap(), 1);
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        format!("{thread} {in_task}")
    })
}

async fn thread_of_quick_calls(server: Server) -> Vec<String> {
    let client = soon(Client::connect(server).into_future()).await.unwrap();
    let mut threads = Vec::new();
    for _ in 0..QUICK_CALLS {
        let called = soon(client.call_tool("uses_runtime", json!({"all": false})).into_future()).await.unwrap();
        threads.push(text(&called).to_owned());
    }
    let all = soon(client.call_tool("uses_runtime", json!({"all": true})).into_future()).await.unwrap();
    assert_ne!(all.is_error, Some(true), "{all:?}");
    threads
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quick_handler_is_polled_on_the_io_loop_in_the_context_of_the_users_runtime() {
    let threads = thread_of_quick_calls(server([uses_runtime()])).await;
    // Its first calls are on a worker, in a task; later ones are in no task.
    assert!(threads[0].ends_with("true") && !threads[0].starts_with("steadfast"), "{threads:?}");
    assert!(threads.iter().any(|thread| thread == "steadfast-io false"), "{threads:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_can_be_kept_on_the_workers() {
    let on_workers = Server::builder("test", "1").tool(uses_runtime()).handlers_on_workers().build();
    let threads = thread_of_quick_calls(on_workers).await;
    assert!(threads.iter().all(|thread| thread.ends_with("true") && !thread.starts_with("steadfast")), "{threads:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_tool_can_be_kept_on_the_workers() {
    let in_task = || async { tokio::task::try_id().is_some().to_string() };
    let kept = ServerTool::new("kept").on_workers().handler(in_task);
    let client = soon(Client::connect(server([kept])).into_future()).await.unwrap();
    for _ in 0..QUICK_CALLS {
        assert_eq!(text(&soon(client.call_tool("kept", json!({})).into_future()).await.unwrap()), "true");
    }
}

/// A first poll on the I/O loop that is pending goes on as a task, and nothing that wakes it in between is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quick_handler_that_waits_for_once_goes_on_as_a_task() {
    let (sender, receiver) = watch::channel(0_u64);
    let waits = ServerTool::new("waits").handler(move |arguments: JsonObject| {
        let mut receiver = receiver.clone();
        async move {
            let wanted = arguments["until"].as_u64().unwrap_or_default();
            *receiver.wait_for(|seen| *seen >= wanted).await.unwrap()
        }
    });
    let client = soon(Client::connect(server([waits])).into_future()).await.unwrap();
    for round in 1..=50 {
        for _ in 0..QUICK_CALLS / 10 {
            soon(client.call_tool("waits", json!({"until": 0})).into_future()).await.unwrap();
        }
        let call = client.call_tool("waits", json!({"until": round})).start();
        sender.send_replace(round);
        soon(call).await.unwrap();
    }
}

/// A panic on the I/O loop is a response, as on a worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_on_the_io_loop_is_an_error_response() {
    let panics = ServerTool::new("panics").handler(|arguments: JsonObject| async move {
        if arguments["panic"].as_bool().unwrap_or_default() {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        "fine"
    });
    let client = soon(Client::connect(server([panics])).into_future()).await.unwrap();
    for _ in 0..QUICK_CALLS {
        soon(client.call_tool("panics", json!({"panic": false})).into_future()).await.unwrap();
    }
    soon(client.call_tool("panics", json!({"panic": true})).into_future()).await.unwrap_err();
    soon(client.call_tool("panics", json!({"panic": false})).into_future()).await.unwrap();
}

/// Handlers that were quick are not polled in a runtime that was shut down: their timers would panic.
#[test]
fn a_runtime_that_is_shut_down_leaves_no_request_without_a_response() {
    let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let here = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server_end, client_end) = steadfast::transport::memory::pair(4096);
    workers.spawn(server([echo()]).serve(server_end).into_future());
    here.block_on(async {
        let client = soon(Client::connect(client_end).into_future()).await.unwrap();
        for _ in 0..QUICK_CALLS {
            soon(client.call_tool("echo", json!({"text": ""})).into_future()).await.unwrap();
        }
        workers.shutdown_background();
        // The server is gone with its runtime: each call gets a response or the end of the connection.
        for _ in 0..10 {
            drop(soon(client.call_tool("echo", json!({"text": ""})).into_future()).await);
        }
    });
}

/// Answers keep their order per connection: progress that a handler reports before it blocks is sent while it is blocked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_sent_although_the_handler_blocks_after_it() -> ToolResult<()> {
    let (release, released) = watch::channel(false);
    let reports = ServerTool::new("reports").handler(move |arguments: JsonObject, ctx: Context| {
        let mut released = released.clone();
        async move {
            if arguments["block"].as_bool().unwrap_or_default() {
                ctx.progress(1.0, "about to block");
                while released.has_changed().is_ok() && !*released.borrow_and_update() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        }
    });
    let client = soon(Client::connect(server([reports])).into_future()).await.unwrap();
    for _ in 0..QUICK_CALLS {
        soon(client.call_tool("reports", json!({"block": false})).into_future()).await.unwrap();
    }
    let (mut progress, call) = client.call_tool("reports", json!({"block": true})).start_with_progress();
    soon(progress.next()).await.expect("progress should arrive while the handler blocks");
    release.send_replace(true);
    soon(call).await.unwrap();
    Ok(())
}
