//! Signals to a process that serves more than once.

use std::net::TcpListener;
use std::time::Duration;

use rustix::process::{self, Signal as UnixSignal};
use serde_json::json;
use steadfast::prelude::*;

use crate::support::alone;
use crate::{Signal, server, soon, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_has_ended_does_not_cut_the_shutdown_of_another_short() {
    // It signals its process.
    if !alone("runtime::signals::a_server_that_has_ended_does_not_cut_the_shutdown_of_another_short") {
        return;
    }
    let (begun, release) = (Signal::default(), Signal::default());
    let waits = {
        let (begun, release) = (begun.clone(), release.clone());
        ServerTool::new("waits").handler(move || {
            let (begun, release) = (begun.clone(), release.clone());
            async move {
                begun.set();
                release.wait().await;
                "answered"
            }
        })
    };
    let listen = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        (listener, url)
    };
    let (listener, url) = listen();
    let ended = tokio::spawn(server([]).serve_http_on(listener).run());
    soon(Client::connect(&*url).into_future()).await.unwrap().close().await;
    ended.abort();
    let _ = ended.await;

    let (listener, url) = listen();
    let serving = tokio::spawn(server([waits]).serve_http_on(listener).run());
    let client = soon(Client::connect(&*url).into_future()).await.unwrap();
    let call = client.call_tool("waits", json!({})).start();
    soon(begun.wait()).await;
    process::kill_process(process::getpid(), UnixSignal::TERM).unwrap();
    // By then the signal has been handled; a process that it ends does not get further.
    tokio::time::sleep(Duration::from_millis(100)).await;
    release.set();
    assert_eq!(text(&soon(call).await.unwrap()), "answered");
    soon(serving).await.unwrap().unwrap();
}
